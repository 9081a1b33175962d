"""The cluster of a run is the plan's."""

import pytest

from migrate.apply.run import refuse_other_cluster
from migrate.errors import Refused
from tests.unit.plans import clusters, plan, row


def test_a_cluster_that_is_not_the_plans_is_refused_by_both_ids() -> None:
    target, _ = clusters(plan(row("g")))
    with pytest.raises(Refused, match="The plan is for target cluster another-id, and B is target-id"):
        refuse_other_cluster(target, "another-id")


@pytest.mark.parametrize("planned_id", ["target-id", ""])
def test_the_plans_cluster_is_taken_and_a_plan_that_was_made_without_it_cannot_tell(planned_id: str) -> None:
    target, _ = clusters(plan(row("g")))
    refuse_other_cluster(target, planned_id)

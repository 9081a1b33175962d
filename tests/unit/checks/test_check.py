"""What all checks share: who counts as stopped, which groups, and for whom a check holds."""

import pytest

from migrate.checks.check import groups_of, is_without_members
from migrate.model import Failure, GroupState
from migrate.row_table import PlanRows
from tests.unit.checkscene import row


@pytest.mark.parametrize(
    ("state", "stopped"),
    [
        (GroupState("Empty"), True),
        (GroupState("Dead"), True),
        (GroupState("Absent"), True),
        (GroupState("Stable", 1), False),
        (GroupState("Unknown"), False),
        (Failure("GROUP_AUTHORIZATION_FAILED", "no"), False),
        (None, False),
    ],
)
def test_a_group_is_without_members_only_where_that_was_seen(state, stopped):
    assert is_without_members(state) is stopped


def test_groups_of_rows_come_once_and_in_order():
    assert groups_of(PlanRows.of([row("h"), row("h", "u"), row("g")])) == ["g", "h"]

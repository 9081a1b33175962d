"""A status as JSON: what is not known is null, and nothing is ready that the newest look did not see."""

import pytest

from migrate.plan.status import Status
from migrate.show.status import status_document
from migrate.watch import Freshness, Waiting

READY = Status(
    time_ms=0, source_alias="A", target_alias="B", source_down="", topics=(), groups=(), mm2_topics=(),
    positions_unknown="", checks=(), commits=1,
)  # fmt: skip


def test_what_is_not_known_is_null():
    document = status_document(READY)
    assert document["ready"] is True
    unknown = ("source_down", "time_left", "forecast", "waiting", "problem", "positions_unknown")
    assert [document[key] for key in unknown] == [None] * len(unknown)


@pytest.mark.parametrize(
    "freshness", [Freshness(settling=True), Freshness(problem="x"), Freshness(waiting=Waiting("log ends", 9.0))]
)
def test_nothing_is_ready_that_the_newest_whole_look_did_not_see(freshness):
    assert READY.is_ready and status_document(READY, freshness=freshness)["ready"] is False

"""A status as JSON, and what a watch says; whole screens are in `tests/unit/plan` (`test_status`, `test_watch`)."""

import pytest

from migrate.plan.status import Status
from migrate.plan.watch import Pace, TimeLeft
from migrate.show.status import late_text, left_text, status_document
from migrate.survey.drain import Lag
from migrate.watch import Freshness, Waiting


@pytest.mark.parametrize(("lag", "left", "said"), [
    (Lag(0, True), TimeLeft(Pace.TOO_EARLY), "everything is copied"),
    (Lag(None, False), TimeLeft(Pace.TOO_EARLY), "an unknown number of records left"),
    (Lag(1, True), TimeLeft(Pace.STALLED), "1 record left: nothing is being copied: restart MM2, or your replicator"),
    (Lag(90, False), TimeLeft(Pace.GROWING), "about 90 records left: producers are faster than MM2"),
])  # fmt: skip
def test_why_nobody_can_tell_how_long_is_said(lag, left, said):
    assert left_text(left, lag) == said


def test_who_does_not_answer_is_said_escaped_and_since_when():
    freshness = Freshness(problem="it\x1b failed", waiting=Waiting("log ends of A", 75.0))
    assert late_text(freshness) == r"it\x1b failed NO ANSWER for 75 s: log ends of A"
    assert late_text(Freshness()) == ""


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

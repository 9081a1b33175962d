"""A verification, a status, a difference and waves as text and JSON: what was left out is never silent."""

import json

import pytest

from migrate.apply.history import JournalState
from migrate.apply.verify import Standing, Verification, VerifyFinding
from migrate.apply.waves import Wave
from migrate.model import TopicPartition
from migrate.plan.status import Status
from migrate.plan.watch import Pace, TimeLeft
from migrate.show.status import late_text, left_text, status_document
from migrate.show.verify import ROWS_SHOWN, verify_document, verify_lines
from migrate.show.waves import NAMED, wave_document
from migrate.survey.drain import Lag
from migrate.watch import Freshness, Waiting
from tests.builders import make_plan, make_row

PLAN = make_plan([make_row("g")])
PLACE = TopicPartition("A.orders", 0)
EQUAL = VerifyFinding(("g", "orders", 0), PLACE, 650, 650, Standing.EQUAL, "as planned")
BEHIND = next(s for s in Standing if not EQUAL._replace(standing=s).is_good)
LEFT_OUT = VerifyFinding(("h", "orders", 0), PLACE, None, None, Standing.BLOCKED, "its block", reason="drained")


def test_rows_beyond_what_is_shown_are_counted_and_the_document_has_all_and_what_was_not_compared():
    found = Verification((EQUAL._replace(standing=BEHIND),) * (ROWS_SHOWN + 5))
    told = "\n".join(verify_lines(found, PLAN, 100, False))
    assert told.startswith("NOT AS PLANNED") and "and 5 more; --format json has every row" in told
    document = json.loads("".join(verify_document(Verification((EQUAL,), not_written=(LEFT_OUT,)), PLAN, None, 0)))
    assert document["offsets"] == [
        {"group": "g", "target_group": "", "target_topic": "A.orders", "partition": 0, "expected": 650, "seen": 650,
         "standing": "equal", "sentence": "as planned", "journal": ""},
    ]  # fmt: skip
    assert (document["time"], document["rows_looked_at"]) == ("1970-01-01T00:00:00.000Z", 2)
    assert document["left_out"][0]["why"] == "blocked" and "records" not in document


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


@pytest.mark.parametrize(
    "freshness", [Freshness(settling=True), Freshness(problem="x"), Freshness(waiting=Waiting("log ends", 9.0))]
)
def test_nothing_is_ready_that_the_newest_whole_look_did_not_see(freshness):
    assert READY.is_ready and status_document(READY, freshness=freshness)["ready"] is False


LEFT = Wave("wave.plan", make_plan([make_row(f"g{i:02}") for i in range(NAMED + 2)]), JournalState())


def test_the_document_has_every_standing_also_those_without_groups():
    document = json.loads("".join(wave_document([LEFT])))
    assert document["flows"][0]["counts"] == {"moved": 0, "uncertain": 0, "undone": 0, "left": NAMED + 2, "as-it-is": 0}
    assert document["waves"][0]["path"] == "wave.plan" and len(document["waves"][0]["groups"]) == NAMED + 2

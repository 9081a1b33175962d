"""A verification, a status, a difference and waves as text and JSON: what was left out is never silent."""

import json

import pytest

from migrate.apply.history import JournalState
from migrate.apply.verify import Standing, Verification, VerifyFinding
from migrate.apply.waves import Wave
from migrate.model import Decision, TopicPartition
from migrate.plan.diff import diff
from migrate.plan.status import Status
from migrate.plan.watch import Pace, TimeLeft
from migrate.show.diff import diff_document, diff_lines
from migrate.show.status import late_text, left_text, status_document
from migrate.show.verify import ROWS_SHOWN, verdict, verify_document, verify_lines
from migrate.show.waves import NAMED, wave_document, wave_lines
from migrate.survey.drain import Lag
from migrate.watch import Freshness, Waiting
from tests.builders import make_plan, make_row

PLAN = make_plan([make_row("g")])
PLACE = TopicPartition("A.orders", 0)
EQUAL = VerifyFinding(("g", "orders", 0), PLACE, 650, 650, Standing.EQUAL, "as planned")
BEHIND = next(s for s in Standing if not EQUAL._replace(standing=s).is_good)
LEFT_OUT = VerifyFinding(("h", "orders", 0), PLACE, None, None, Standing.BLOCKED, "its block", reason="drained")


def test_only_what_is_whole_is_verified_without_a_but():
    assert verdict(Verification((EQUAL,)))[0] == "VERIFIED: 1 offset of 1 group"
    assert verdict(Verification((EQUAL,), not_written=(LEFT_OUT,)))[0].endswith("BUT 1 row of 1 group was not written")
    assert verdict(Verification((), not_written=(LEFT_OUT,)))[0].startswith("NOTHING VERIFIED: 1 row")
    assert verdict(Verification(()))[0].startswith("NOTHING TO VERIFY")


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


BEFORE = make_plan([make_row("kept", target_offset=600), make_row("moved", target_offset=600), make_row("gone")])
NOW = make_plan([make_row("kept", target_offset=600, decision=Decision.KEEP), make_row("moved", target_offset=610)])


def test_each_difference_stands_under_its_heading_and_only_there():
    told = "\n".join(diff_lines(diff(BEFORE, NOW), ("before.plan", "now.plan"), 100))
    order = [told.index(text) for text in ("DECIDED OTHERWISE", "kept", "ROWS THAT ARE GONE", "gone", "moved")]
    assert order[:2] == sorted(order[:2]) and "planned +10" in told and "NEW ROWS" not in told


def test_the_document_names_the_fields_that_differ():
    document = json.loads("".join(diff_document(diff(BEFORE, NOW))))
    changes = {change["group"]: change["fields"] for change in document["changed"]}
    assert changes["kept"]["decision"] == {"before": "set", "now": "keep"}
    assert changes["moved"]["target_offset"] == {"before": 600, "now": 610}
    assert [row["group"] for row in document["gone"]] == ["gone"]


LEFT = Wave("wave.plan", make_plan([make_row(f"g{i:02}") for i in range(NAMED + 2)]), JournalState())


def test_groups_beyond_the_limit_are_counted():
    told = " ".join(" ".join(wave_lines([LEFT], 100)).split())
    assert f"{NAMED + 2} groups: {NAMED + 2} left" in told and "g19 and 2 more" in told


def test_the_document_has_every_standing_also_those_without_groups():
    document = json.loads("".join(wave_document([LEFT])))
    assert document["flows"][0]["counts"] == {"moved": 0, "uncertain": 0, "undone": 0, "left": NAMED + 2, "as-it-is": 0}
    assert document["waves"][0]["path"] == "wave.plan" and len(document["waves"][0]["groups"]) == NAMED + 2

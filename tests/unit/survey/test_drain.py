"""Drained: proven by the records or by MM2's own position, never by hope; how many are left, and who still writes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.protocol import Tail
from migrate.mm2.flow import ANY
from migrate.model import Decision, Failure, Level, LogRange, TopicPartition
from migrate.survey.drain import NONE_LEFT, Lag, drained, lag_of, total
from migrate.survey.drain import UNKNOWN as NOT_KNOWN
from migrate.survey.producers import Growth, growth_of
from tests.fakes import FakeClock
from tests.unit.checkscene import found, row, verdicts
from tests.unit.planscene import planned, rows_of, world
from tests.unit.surveyscene import FLOW

UNKNOWN = {"source_log": LogRange(0, 100), "target_log": LogRange(0, 90), "source_top": 100, "target_top": 90}
UNKNOWN |= {"last_copied_offset": None, "tail": None}
DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
EMPTY_COPY = {"target_log": LogRange(90, 90)}
PROVEN = {"tail": Tail(0), "last_copied_offset": 99}


@pytest.mark.parametrize(("known", "is_drained", "seen"), [
    ({}, None, "MM2's own position"),
    ({"tail": Tail(0)}, True, ""),
    ({"tail": Tail(17)}, False, "17 records not copied yet"),
    ({"source_log": LogRange(100, 100)}, True, ""),
    # A high watermark that was not told is no proof, and an open transaction refutes whatever else is known.
    ({"tail": Tail(0), "source_top": DENIED}, None, "A did not say"),
    ({"tail": Tail(0), "target_top": None}, None, "B did not say"),
    ({**PROVEN, "source_top": 103}, False, "on A the log reaches 3 beyond"),
    ({**PROVEN, "target_top": 91}, False, "on B the log reaches 1 beyond"),
    # MM2's own position on the last offset is a proof, and one below is none.
    ({"last_copied_offset": 99}, True, ""),
    ({"last_copied_offset": 98}, None, "was not read"),
    ({"last_copied_offset": 98, "tail": Tail(None, last_record=99)}, False, "the last record is 99"),
    # A copy that is empty is not copied, unless nothing was there.
    ({**EMPTY_COPY, "last_copied_offset": 99}, None, "MM2's own position is 99, and yet the copy on B is empty"),
    ({**EMPTY_COPY, "source_log": LogRange(100, 100)}, True, ""),
    # Behind the last record stand only markers, which MM2 does not copy.
    ({"last_copied_offset": 97, "tail": Tail(None, last_record=97)}, True, ""),
    ({"last_copied_offset": 98, "tail": Tail(None, last_record=97)}, True, ""),
    ({"last_copied_offset": 96, "tail": Tail(None, last_record=97)}, False, ""),
    ({"last_copied_offset": 100}, False, "beyond the end 100"),
    # Records were dropped on the way.
    ({"last_copied_offset": 99, "tail": Tail(3, last_record=99)}, True, ""),
])  # fmt: skip
def test_drained_is_what_records_or_mm2s_own_position_prove_and_what_is_missing_is_told(known, is_drained, seen):
    found = drained(FLOW, **UNKNOWN | known)
    assert found.verdict is is_drained and seen in found.seen


def test_what_another_replicator_lacks_is_no_position_of_mm2():
    assert drained(replace(FLOW, replicator=ANY), **UNKNOWN).seen == "the records do not show it"


@given(st.none() | st.integers(0, 120), st.none() | st.integers(0, 20), st.none() | st.integers(0, 99))
def test_whatever_is_not_drained_says_why(last_copied_offset, uncopied, last_record):
    found = drained(FLOW, **UNKNOWN | {"last_copied_offset": last_copied_offset, "tail": Tail(uncopied, last_record)})
    assert bool(found.seen) is not (found.verdict is True)
    if found.verdict:
        top = 99 if last_record is None else last_record
        assert uncopied == 0 or (last_copied_offset is not None and top <= last_copied_offset < 100)


# --- how many records are left to copy ------------------------------------------------------------------

SOURCE, TARGET = LogRange(0, 1000), LogRange(0, 900)


def lag(drained=False, tail=None, newest=None, last_copied_offset=None, source=SOURCE, target=TARGET):
    return lag_of(source, target, drained, tail, newest, last_copied_offset)


@pytest.mark.parametrize(("known", "left"), [
    ({"drained": True, "newest": (10, 10)}, NONE_LEFT),
    ({"tail": Tail(7, 999, 5_000), "last_copied_offset": 100}, Lag(7, True, 5_000)),
    # What was not compared is estimated: 450 copied behind the sync, of 500; or MM2 has recorded more.
    ({"newest": (500, 450)}, Lag(50)),
    ({"newest": (500, 450), "last_copied_offset": 979}, Lag(20)),
    ({"newest": (500, 450), "last_copied_offset": 600}, Lag(50)),
    ({"last_copied_offset": 600, "tail": Tail(None)}, Lag(399)),
    # Replays: nothing is claimed, and nothing proven.
    ({"newest": (500, 100)}, Lag(0)),
    ({"target": LogRange(0, 0)}, Lag(1000)),
    ({"source": LogRange(990, 1000), "newest": (0, 0)}, Lag(10)),
    ({}, NOT_KNOWN),
])  # fmt: skip
def test_what_is_left_to_copy_is_counted_or_estimated_and_never_more_than_the_source_has(known, left):
    assert lag(**known) == left


def test_a_sum_is_counted_if_all_are_and_unknown_if_one_is():
    assert total([Lag(3, True, 700), Lag(4, True, 500), NONE_LEFT]) == Lag(7, True, 500)
    assert total([Lag(3, True), Lag(4)]) == Lag(7)
    assert total([Lag(3, True), NOT_KNOWN]) == NOT_KNOWN
    assert total([]) == NONE_LEFT


T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ROWS = (row("g", "t", 0), row("g", "t", 1), row("h", "u", 0))
CHECK, STILL = "producers-stopped", Growth(0, 15.0)
LOST = Failure("NOT_LEADER_OR_FOLLOWER", "the leader has moved")


def growing(**growth):
    """The change of the survey in which some logs, such as `t0`, have grown so, and the others stand still."""
    told = {TopicPartition(name[0], int(name[1])): how for name, how in growth.items()}
    return {"growth": {T0: STILL, T1: STILL, U0: STILL} | told}


def test_logs_that_stand_still_pass_in_one_line_and_say_for_how_long():
    (result,) = found(CHECK, ROWS, **growing())
    assert (result.level, result.subject) == (Level.PASS, "2 topics")
    assert result.expected == "no record written to it for 15 s"
    at_once = Growth(0, 0.2)
    (result,) = found(CHECK, ROWS, **growing(t0=at_once, t1=at_once, u0=at_once))
    assert (result.level, result.counts_as) == (Level.NOT_VISIBLE, Level.BLOCK), "two readings at the same time"


def test_a_topic_that_is_written_to_or_became_shorter_blocks_alone_and_says_where_and_how_fast():
    writing = growing(t1=Growth(1230, 15.0))
    assert verdicts(CHECK, ROWS, **writing) == {"t": (Level.BLOCK,) * 2, "1 topic": (Level.PASS,) * 2}
    assert found(CHECK, ROWS, **writing)[0].seen == "1,230 offsets in 15 s, about 82/s, on 1 partition (1)"
    assert verdicts(CHECK, ROWS, **growing(u0=Growth(-5, 15.0)))["u"] == (Level.BLOCK, Level.BLOCK)


def test_a_log_that_was_not_read_twice_is_never_a_pass():
    assert growth_of({T0: LOST, T1: 7}, {T0: 3}, 2.0) == {
        T0: LOST,
        T1: Failure("NO_ANSWER", "the partition is missing from the answer"),
    }
    unseen = (Level.NOT_VISIBLE, Level.BLOCK)
    assert verdicts(CHECK, ROWS, **growing(u0=LOST))["u"] == unseen
    assert verdicts(CHECK, ROWS, growth={}) == {"t": unseen, "u": unseen}


def test_plan_reads_the_ends_a_settle_time_apart_and_blocks_the_topics_groups():
    source, target, mirror = world()

    class Clock(FakeClock):
        def wait(self, seconds):
            super().wait(seconds)
            source.ranges[T1] = LogRange(0, 130)

    plan = planned(source, target, mirror, clock=Clock())
    assert [(c.check, c.subject) for c in plan.blocks()] == [("producers-stopped", "t")]
    assert "30 offsets in 15 s, about 2.0/s" in plan.blocks()[0].seen
    assert rows_of(plan)["g", "t", 0] == (Decision.BLOCK, 51, "producers-stopped")
    assert rows_of(plan)["h", "u", 0][0] is Decision.SET


def test_the_ends_are_read_a_whole_settle_time_after_they_were_pinned():
    source, target, mirror = world()
    clock = FakeClock()

    def slow_to_pin(call):
        if call == "log_ranges" and not source.calls[call]:
            clock.waited += 10.0

    source.on_call = slow_to_pin
    plan = planned(source, target, mirror, clock=clock)
    (passed,) = [c for c in plan.header.checks if c.check == "producers-stopped"]
    assert passed.expected == "no record written to it for 15 s" and source.calls["high_watermarks"] == 2

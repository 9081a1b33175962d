"""Drained: proven by the records or by MM2's own position, and never by hope; and how many records are left."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.protocol import Tail
from migrate.mm2.flow import ANY
from migrate.model import Failure, LogRange
from migrate.survey.drain import NONE_LEFT, Lag, drained, lag_of, total
from migrate.survey.drain import UNKNOWN as NOT_KNOWN
from tests.unit.surveyscene import FLOW

UNKNOWN = {"source_log": LogRange(0, 100), "target_log": LogRange(0, 90), "source_top": 100, "target_top": 90}
UNKNOWN |= {"last_copied_offset": None, "tail": None}
DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")


EMPTY_COPY = {"target_log": LogRange(90, 90)}
PROVEN = {"tail": Tail(0), "last_copied_offset": 99}


@pytest.mark.parametrize(
    ("known", "is_drained", "seen"),
    [
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
    ],
)
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


@pytest.mark.parametrize(
    ("known", "left"),
    [
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
    ],
)
def test_what_is_left_to_copy_is_counted_or_estimated_and_never_more_than_the_source_has(known, left):
    assert lag(**known) == left


def test_a_sum_is_counted_if_all_are_and_unknown_if_one_is():
    assert total([Lag(3, True, 700), Lag(4, True, 500), NONE_LEFT]) == Lag(7, True, 500)
    assert total([Lag(3, True), Lag(4)]) == Lag(7)
    assert total([Lag(3, True), NOT_KNOWN]) == NOT_KNOWN
    assert total([]) == NONE_LEFT

"""Drained: proven by the records or by MM2's own position, and never by hope."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from migrate.match.protocol import Tail
from migrate.mm2.flow import ANY
from migrate.model import Failure, LogRange
from migrate.survey.drain import DrainFacts, drained
from tests.unit.surveyscene import FLOW

UNKNOWN = DrainFacts(LogRange(0, 100), LogRange(0, 90), 100, 90, None, None)
DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "no")


def verdict(**changes):
    return drained(replace(UNKNOWN, **changes), FLOW).verdict


def seen(**changes):
    return drained(replace(UNKNOWN, **changes), FLOW).seen


def test_nothing_known_is_no_proof():
    assert verdict() is None
    assert verdict(tail=Tail(None)) is None


def test_behind_another_replicator_nobodys_position_is_spoken_of():
    other = drained(UNKNOWN, replace(FLOW, replicator=ANY))
    assert other.seen == "the records do not show it" and other.verdict is None
    assert "MM2's own position" in seen()


def test_records_that_were_all_found_in_order_are_a_proof():
    assert verdict(tail=Tail(0)) is True


def test_records_that_were_not_found_are_counted():
    assert verdict(tail=Tail(17)) is False
    assert "17 records not copied yet" in seen(tail=Tail(17))


def test_mm2s_own_position_on_the_last_offset_is_a_proof_and_one_below_is_none():
    assert verdict(last_copied_offset=99) is True
    assert verdict(last_copied_offset=98) is None
    assert verdict(last_copied_offset=98, tail=Tail(None, last_record=99)) is False


def test_a_copy_that_is_empty_is_not_copied_whatever_mm2s_own_position_says():
    for empty in (LogRange(0, 0), LogRange(90, 90)):
        for tail in (None, Tail(None), Tail(None, last_record=99)):
            assert verdict(target_log=empty, last_copied_offset=99, tail=tail, target_top=empty.end) is None
        told = seen(target_log=empty, last_copied_offset=99, target_top=empty.end)
        assert told.startswith("MM2's own position is 99, and yet the copy on B is empty")
    # Nothing was there to be copied.
    assert verdict(source_log=LogRange(100, 100), target_log=LogRange(0, 0), target_top=0) is True


def test_behind_the_last_record_stand_only_markers_which_mm2_does_not_copy():
    assert verdict(last_copied_offset=97, tail=Tail(None, last_record=97)) is True
    assert verdict(last_copied_offset=98, tail=Tail(None, last_record=97)) is True
    assert verdict(last_copied_offset=96, tail=Tail(None, last_record=97)) is False


def test_a_position_beyond_the_end_is_of_another_log_and_proves_nothing():
    assert verdict(last_copied_offset=100) is False and verdict(last_copied_offset=250) is False


def test_a_position_proves_it_where_records_were_dropped_on_the_way():
    assert verdict(last_copied_offset=99, tail=Tail(3, last_record=99)) is True


def test_an_open_transaction_on_either_side_is_not_drained_whatever_else_is_known():
    proven = {"tail": Tail(0), "last_copied_offset": 99}
    assert verdict(source_top=103, **proven) is False and "on A the log reaches 3 beyond" in seen(source_top=103)
    assert verdict(target_top=91, **proven) is False and "on B the log reaches 1 beyond" in seen(target_top=91)


def test_a_high_watermark_that_was_not_told_is_no_proof():
    assert verdict(source_top=DENIED, tail=Tail(0)) is None
    assert verdict(target_top=None, tail=Tail(0)) is None


def test_an_empty_log_has_nothing_left_to_copy():
    assert verdict(source_log=LogRange(100, 100)) is True


@given(st.none() | st.integers(0, 120), st.none() | st.integers(0, 20), st.none() | st.integers(0, 99))
def test_whatever_is_not_drained_says_why(last_copied_offset, uncopied, last_record):
    found = drained(replace(UNKNOWN, last_copied_offset=last_copied_offset, tail=Tail(uncopied, last_record)), FLOW)
    assert bool(found.seen) is not (found.verdict is True)
    if found.verdict:
        top = 99 if last_record is None else last_record
        assert uncopied == 0 or (last_copied_offset is not None and top <= last_copied_offset < 100)

"""How many records are left to copy: counted, estimated, or unknown; an estimate proves nothing."""

import pytest

from migrate.match.protocol import Tail
from migrate.model import LogRange
from migrate.survey.drain import NONE_LEFT, UNKNOWN, Lag, lag_of, total

SOURCE, TARGET = LogRange(0, 1000), LogRange(0, 900)


def lag(drained=False, tail=None, newest=None, last_copied_offset=None, source=SOURCE, target=TARGET):
    return lag_of(source, target, drained, tail, newest, last_copied_offset)


def test_what_is_drained_has_no_lag_whatever_the_offsets_say():
    assert lag(drained=True, newest=(10, 10)) == NONE_LEFT


def test_compared_records_are_counted():
    assert lag(tail=Tail(7, 999, 5_000), last_copied_offset=100) == Lag(7, True, 5_000)


@pytest.mark.parametrize(
    ("newest", "last_copied_offset", "records"),
    [
        ((500, 450), None, 50),  # 450 copied behind the sync, of 500
        ((500, 450), 979, 20),  # MM2 has recorded more than the sync tells
        ((500, 450), 600, 50),
        (None, 600, 399),
        ((500, 100), None, 0),  # replays: nothing is claimed, and nothing proven
    ],
)
def test_what_was_not_compared_is_estimated(newest, last_copied_offset, records):
    assert lag(tail=Tail(None), newest=newest, last_copied_offset=last_copied_offset) == Lag(records)


def test_an_empty_copy_lacks_everything_and_without_any_sign_nothing_is_known():
    assert lag(target=LogRange(0, 0)) == Lag(1000)
    assert lag() == UNKNOWN


def test_an_estimate_is_never_more_than_the_source_has():
    assert lag(source=LogRange(990, 1000), newest=(0, 0)).records == 10


def test_a_sum_is_counted_if_all_are_and_unknown_if_one_is():
    assert total([Lag(3, True, 700), Lag(4, True, 500), NONE_LEFT]) == Lag(7, True, 500)
    assert total([Lag(3, True), Lag(4)]) == Lag(7)
    assert total([Lag(3, True), UNKNOWN]) == UNKNOWN
    assert total([]) == NONE_LEFT

"""Where a log ended at a past time: what ListOffsets' answers mean, and what they do not."""

import pytest

from migrate.extras.offsets_topic.history_values import RECORDS_GONE
from migrate.extras.offsets_topic.log_ends import NOT_FOUND, ends_at
from migrate.model import Failure, LogRange, TopicPartition
from tests.fakes import FakeCluster

T0 = TopicPartition("t", 0)
SILENT = Failure("LEADER_NOT_AVAILABLE", "silent", retriable=True)
HIDDEN = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there")


class FakeTimes:
    """A log as a list of (offset, timestamp), and the times that are asked of it."""

    def __init__(self, log, is_silent=False):
        self.log, self.is_silent, self.asked = log, is_silent, []

    def first_offsets(self, pairs):
        self.asked += [time_ms for _, time_ms in pairs]
        first = {pair: next((offset for offset, ms in self.log if ms >= pair[1]), None) for pair in pairs}
        if self.is_silent:
            return dict.fromkeys(pairs), {T0: SILENT}
        return first, {T0: max((ms for _, ms in self.log), default=None)}


LOG = [(0, 100), (1, 200), (2, 300)]


@pytest.mark.parametrize(("pinned", "log", "ends"), [
    # The end at a time is the first offset of that time or later; behind the newest record the pinned end counts.
    (LogRange(0, 3), LOG, {100: 0, 101: 1, 300: 2, 301: 3}),
    # What came after the pin does not count.
    (LogRange(0, 2), [(0, 1), (5, 9)], {8: 2}),
    # Where retention has taken the records of that time no lag is made up.
    (LogRange(50, 52), [(50, 500), (51, 600)], {400: RECORDS_GONE, 501: 51}),
    # An empty log ended at 0, or nobody knows.
    (LogRange(0, 0), [], {1: 0}), (LogRange(7, 7), [], {1: RECORDS_GONE}),
])  # fmt: skip
def test_the_end_at_a_time_is_told_as_far_as_the_records_that_are_left_tell_it(pinned, log, ends):
    found = ends_at(FakeCluster(ranges={T0: pinned}), FakeTimes(log), [(T0, time_ms) for time_ms in ends])
    assert list(found.values()) == list(ends.values())


def test_an_end_that_is_held_back_by_a_transaction_counts_as_for_kafkas_own_tool():
    held = FakeCluster(ranges={T0: LogRange(0, 1)}, watermarks={T0: 5})
    assert ends_at(held, FakeTimes([(0, 100)]), [(T0, 101)]) == {(T0, 101): 5}


def test_what_a_broker_does_not_answer_is_not_visible_and_not_a_log_without_later_records():
    held, pairs = FakeCluster(ranges={T0: LogRange(0, 3)}), [(T0, 100), (T0, 101)]
    assert set(ends_at(held, FakeTimes(LOG, is_silent=True), pairs).values()) == {SILENT}
    # Its newest record is later than what it does not find.
    unfound = FakeTimes([])
    unfound.first_offsets = lambda pairs: (dict.fromkeys(pairs), {T0: 100})
    assert list(ends_at(held, unfound, pairs).values()) == [NOT_FOUND, 3]
    hidden = FakeTimes(LOG)
    assert set(ends_at(FakeCluster(ranges={T0: HIDDEN}), hidden, pairs).values()) == {HIDDEN} and not hidden.asked

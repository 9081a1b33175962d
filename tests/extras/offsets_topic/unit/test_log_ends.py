"""Where a log ended at a past time: what ListOffsets' answers mean, and what they do not."""

import pytest

from migrate.extras.offsets_topic.history_values import RECORDS_GONE
from migrate.extras.offsets_topic.log_ends import ends_at
from migrate.model import Failure, LogRange, TopicPartition
from tests.fakes import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SILENT = Failure("LEADER_NOT_AVAILABLE", "silent", retriable=True)


class FakeTimes:
    """Logs as lists of (offset, timestamp), and what is asked of them."""

    def __init__(self, logs, silent=()):
        self.logs, self.silent, self.asked = logs, silent, []

    def newest_times(self, partitions):
        return {p: SILENT if p in self.silent else max(ms for _, ms in self.logs[p]) for p in partitions}

    def first_offsets(self, pairs):
        self.asked += pairs
        found = {}
        for place, time_ms in pairs:
            later = [offset for offset, ms in self.logs[place] if ms >= time_ms]
            found[place, time_ms] = later[0] if later and place not in self.silent else None
        return found, self.newest_times({place for (place, _), offset in found.items() if offset is None})


def cluster(**logs):
    ranges = {TopicPartition("t", int(name[1:])): log for name, log in logs.items()}
    return FakeCluster(ranges=ranges)


def ends(admin, times, *pairs):
    return list(ends_at(admin, times, pairs).values())


def test_the_end_at_a_time_is_the_first_offset_of_that_time_or_later():
    times = FakeTimes({T0: [(0, 100), (1, 200), (2, 300)]})
    assert ends(cluster(p0=LogRange(0, 3)), times, (T0, 100), (T0, 101), (T0, 300)) == [0, 1, 2]


def test_behind_the_newest_record_the_pinned_end_counts():
    times = FakeTimes({T0: [(0, 100), (1, 200)]})
    assert ends(cluster(p0=LogRange(0, 2)), times, (T0, 201)) == [2]


def test_an_end_that_is_held_back_by_a_transaction_counts_as_for_kafkas_own_tool():
    times, admin = FakeTimes({T0: [(0, 100)]}), cluster(p0=LogRange(0, 1))
    admin.watermarks = {T0: 5}
    assert ends(admin, times, (T0, 101)) == [5]


def test_where_retention_has_taken_the_records_of_that_time_the_end_is_not_visible_and_no_lag_is_made_up():
    times = FakeTimes({T0: [(50, 500), (51, 600)]})
    assert ends(cluster(p0=LogRange(50, 52)), times, (T0, 400), (T0, 501)) == [RECORDS_GONE, 51]


def test_an_empty_log_ended_at_0_or_nobody_knows():
    assert ends(cluster(p0=LogRange(0, 0), p1=LogRange(7, 7)), FakeTimes({}), (T0, 1), (T1, 1)) == [0, RECORDS_GONE]


def test_what_came_after_the_pin_does_not_count():
    assert ends(cluster(p0=LogRange(0, 2)), FakeTimes({T0: [(0, 1), (5, 9)]}), (T0, 8)) == [2]


@pytest.mark.parametrize("time_ms", [1, 10**6])
def test_a_leader_that_is_silent_is_not_visible_and_not_a_log_without_later_records(time_ms):
    times = FakeTimes({T0: [(0, 100)]}, silent=[T0])
    assert ends(cluster(p0=LogRange(0, 3)), times, (T0, time_ms)) == [SILENT]


def test_a_time_that_a_broker_does_not_find_although_its_newest_record_is_later_is_not_visible():
    times = FakeTimes({T0: [(0, 100)]})
    times.first_offsets = lambda pairs: (dict.fromkeys(pairs), {T0: 100})
    found, at_the_end = ends(cluster(p0=LogRange(0, 3)), times, (T0, 100), (T0, 101))
    assert isinstance(found, Failure) and at_the_end == 3


def test_a_topic_that_is_not_shown_is_not_visible_and_no_timestamp_is_asked_of_it():
    times, admin = FakeTimes({}), cluster(p0=Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there"))
    (answer,) = ends(admin, times, (T0, 1))
    assert answer.code == "UNKNOWN_TOPIC_OR_PARTITION" and times.asked == []

"""Offsets by timestamp: which questions go to the cluster, and what its answers are taken for."""

from types import SimpleNamespace

from migrate.kafka.log_times import ConfluentLogTimes
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side, TopicPartition
from tests.fakes import NoProgress

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class FakeConnection:
    """Answers from `told` by partition and timestamp, -1 where there is nothing, as librdkafka does."""

    def __init__(self, told, later=None):
        self.told, self.later, self.calls, self.drops = told, later or {}, [], 0

    def drop(self):
        self.drops += 1
        self.told |= self.later

    def collect(self, submit):
        return submit(self)

    def list_offsets(self, specs, isolation_level, **_):
        assert isolation_level.name == "READ_UNCOMMITTED"
        times = {spec._value for spec in specs.values()}
        (time_ms,) = times
        self.calls.append((time_ms, len(specs)))
        found = {}
        for p in specs:
            offset, timestamp = self.told.get((p.topic, p.partition, time_ms), (-1, -1))
            found[p] = SimpleNamespace(offset=offset, timestamp=timestamp)
        return found


def reader(told, later=None, deadline_seconds=5.0):
    made = ConfluentLogTimes(ClientSettings(Side.SOURCE, "A", "127.0.0.1:1", {}), deadline_seconds, NoProgress())
    made._connection = FakeConnection(told, later)
    return made


def test_partitions_are_asked_together_by_time():
    of = reader({("t", 0, 5): (50, 5), ("t", 1, 5): (51, 6), ("u", 0, 9): (7, 9)})
    assert of.offsets_at({9: [U0], 5: [T1, T0]}) == {(T0, 5): 50, (T1, 5): 51, (U0, 9): 7}
    assert of._connection.calls == [(5, 2), (9, 1)]


def test_the_newest_timestamp_is_told_and_none_is_no_timestamp():
    of = reader({("t", 0, -3): (50, 123)}, deadline_seconds=0.0)
    told = of.newest_times([T0, T1])
    assert told[T0] == 123 and isinstance(told[T1], Failure) and told[T1].code == "NO_TIMESTAMP"


def test_a_silent_leader_is_asked_again_and_is_a_failure_in_the_end():
    again = reader({}, later={("t", 0, 5): (50, 5)})
    assert again.offsets_at({5: [T0]}) == {(T0, 5): 50} and again._connection.drops == 1
    (answer,) = reader({}, deadline_seconds=0.0).offsets_at({5: [T0]}).values()
    assert answer.code == "LEADER_NOT_AVAILABLE"


def test_of_nothing_nobody_is_asked():
    of = reader({})
    assert of.offsets_at({}) == {} == of.newest_times([]) and of._connection.calls == []


def test_a_leader_that_says_that_no_record_has_a_timestamp_is_asked_once():
    of = reader({("t", 0, -3): (50, -1)})
    (answer,) = of.newest_times([T0]).values()
    assert answer.code == "NO_TIMESTAMP" and len(of._connection.calls) == 1


def test_a_log_that_may_just_be_empty_is_not_waited_for_but_a_broken_line_is():
    silent = reader({("t", 0, -3): (50, 123)}, later={("t", 1, -3): (50, 456)})
    told = silent.newest_soon([T0, T1])
    assert told[T0] == 123 and told[T1].retriable and silent._connection.drops == 0

    class Broken(FakeConnection):
        def collect(self, submit):
            found = submit(self)
            return found if self.drops else {pair: Failure("_TRANSPORT", "broken", True) for pair in found}

    broken = reader({})
    broken._connection = Broken({("t", 0, -3): (50, 123)})
    assert broken.newest_soon([T0]) == {T0: 123} and broken._connection.drops == 1

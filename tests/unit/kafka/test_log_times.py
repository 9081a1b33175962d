"""Offsets by timestamp: which questions go to the cluster, and what its answers are taken for."""

from types import SimpleNamespace

import pytest

from migrate.kafka.log_times import LogTimes
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side, TopicPartition
from tests.fakes import NoProgress

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class FakeConnection:
    """Answers from `told` by partition and timestamp, -1 where there is nothing, as librdkafka does.

    Where a leader `is_silent` it says -1 of all that it is asked first, as librdkafka does too; a line that `broke`
    with a code gives failures until it has been dropped once.
    """

    def __init__(self, told, is_silent=False, broke=""):
        self.told, self.is_silent, self.broke, self.calls, self.drops = told, is_silent, broke, [], 0

    def drop(self):
        self.drops += 1

    def collect(self, submit):
        found = submit(self)
        return dict.fromkeys(found, Failure(self.broke, "broken", True)) if self.broke and not self.drops else found

    def list_offsets(self, specs, isolation_level, **_):
        assert isolation_level.name == "READ_UNCOMMITTED"
        self.calls.append(len(specs))
        told = {} if self.is_silent and len(self.calls) == 1 else self.told
        answers = {p: told.get((p.topic, p.partition, spec._value), (-1, -1)) for p, spec in specs.items()}
        return {p: SimpleNamespace(offset=offset, timestamp=time) for p, (offset, time) in answers.items()}

    def metadata(self):
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: None})})


def reader(connection, deadline_seconds=5.0):
    made = LogTimes(ClientSettings(Side.SOURCE, "A", "127.0.0.1:1", {}), deadline_seconds, NoProgress())
    made._connection = connection
    return made


def test_partitions_are_asked_together_one_time_of_each():
    told = {("t", 0, 5): (50, 5), ("t", 1, 5): (51, 6), ("u", 0, 9): (7, 9), ("u", 0, 0): (1, 1)}
    of = reader(FakeConnection(told))
    found, newest = of.first_offsets([(U0, 9), (T1, 5), (T0, 5), (U0, -7)])
    assert found == {(T0, 5): 50, (T1, 5): 51, (U0, 9): 7, (U0, -7): 1} and newest == {}
    assert of._connection.calls == [3, 1]


def test_the_newest_timestamp_is_told_and_none_is_no_timestamp():
    told = reader(FakeConnection({("t", 0, -3): (50, 123)}), deadline_seconds=0.0).newest_times([T0, T1])
    assert told[T0] == 123 and isinstance(told[T1], Failure) and told[T1].code == "NO_TIMESTAMP"


def test_a_time_that_a_log_should_have_is_asked_for_again_because_its_leader_may_have_been_silent():
    """Else the row would be at the log's start, and all of the log would be read twice."""
    of = reader(FakeConnection({("t", 0, 5): (50, 5), ("t", 0, -3): (60, 9)}, is_silent=True))
    found, newest = of.first_offsets([(T0, 5), (T0, 7)])
    assert found == {(T0, 5): 50, (T0, 7): None} and newest == {T0: 9}


@pytest.mark.parametrize(("told", "retriable"), [((50, -1), False), ((-1, -1), True)])
def test_a_log_without_a_timestamp_and_one_that_may_just_be_empty_are_not_waited_for(told, retriable):
    of = reader(FakeConnection({("t", 0, -3): told}))
    (answer,) = of.newest_times([T0]).values()
    assert (answer.code, answer.retriable, of._connection.drops) == ("NO_TIMESTAMP", retriable, 0)


@pytest.mark.parametrize("code", ["_TRANSPORT", "_DESTROY_BROKER", "_UNKNOWN_PARTITION", "LEADER_NOT_AVAILABLE"])
def test_a_line_that_breaks_under_a_look_by_time_is_no_partition_that_can_not_be_read(code):
    of = reader(FakeConnection({("t", 0, -3): (50, 123)}, broke=code))
    assert of.newest_times([T0]) == {T0: 123} and of._connection.drops == 1


def test_a_partition_that_the_cluster_does_not_have_is_not_asked_for_until_the_deadline():
    of = reader(FakeConnection({}, broke="_UNKNOWN_PARTITION"))
    (answer,) = of.newest_times([T1]).values()
    assert answer.code == "UNKNOWN_TOPIC_OR_PARTITION" and len(of._connection.calls) == 1

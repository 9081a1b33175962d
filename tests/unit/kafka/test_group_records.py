"""Which partitions of the offsets topic are read for groups; the reading itself is tested against real brokers."""

import pytest

from migrate.kafka import group_facts
from migrate.kafka.group_facts import group_records
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey import offsets_export
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from tests.fakes import FakeCluster

PARTITIONS = 5
OWN = {group: TopicPartition(OFFSETS_TOPIC, partition_of(group, PARTITIONS)) for group in ("a", "b")}


@pytest.fixture
def read(monkeypatch):
    """The partitions of the offsets topic that were read, each with the names of the groups that were looked for."""
    found = {}
    monkeypatch.setattr(group_facts, "read_offsets_topic", lambda config, logs, seconds: found.update(logs))
    monkeypatch.setattr(offsets_export, "PATIENCE_SECONDS", 0.0)
    return found


def cluster(**changes):
    return FakeCluster(ranges={TopicPartition(OFFSETS_TOPIC, n): LogRange(0, 9) for n in range(PARTITIONS)}, **changes)


def test_behind_an_open_transaction_nothing_is_known_of_groups_but_their_kinds(read):
    behind = cluster(watermarks={OWN["a"]: 10})
    assert group_records(behind, {}, ["a", "b"]) == {} and set(read) == {OWN["b"].partition}
    group_records(behind, {}, ["a"], any_will_do=True)
    assert set(read) == {OWN["a"].partition, OWN["b"].partition}


def test_an_end_that_is_not_reported_hides_all(read):
    silent = cluster()
    silent.ranges[OWN["a"]] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    assert isinstance(group_records(silent, {}, ["a", "b"]), Failure)
    assert isinstance(group_records(FakeCluster(), {}, ["a"]), Failure) and not read


def test_more_records_than_may_be_read_are_not_read(read):
    assert group_records(cluster(), {}, ["a", "b"], most=18) == {}
    found = group_records(cluster(), {}, ["a", "b"], most=17)
    assert isinstance(found, Failure) and found.code == "TOO_MANY_RECORDS" and "--records" in found.message
    assert group_records(cluster(), {}, [], most=0) == {}

"""What is made of librdkafka's answers, where a broker's would differ from one run to the next."""

from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.commit_table import without_offset
from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.kafka.admin import (
    SIDE_BY_SIDE,
    WORTH_A_CLIENT,
    WORTH_A_WRITER,
    ConfluentAdmin,
    _commits,
    _listed_group,
    _PartitionCounts,
)
from migrate.kafka.errors import failure_of
from migrate.kafka.settings import ClientSettings
from migrate.model import UNREAD_METADATA, Commit, Failure, Side, TopicPartition


class Beyond:
    """A partition whose metadata Java wrote: librdkafka reads on behind its end, into bytes that are no text."""

    topic, partition, offset, leader_epoch, error = "t", 0, 7, None, None

    @property
    def metadata(self) -> str:
        return b"AgAAAZ==\xa2".decode()


def test_metadata_that_librdkafka_can_not_read_is_some_and_no_fault():
    found = _commits(SimpleNamespace(topic_partitions=[Beyond()]))
    assert found == {TopicPartition("t", 0): Commit(7, UNREAD_METADATA, None)}


def test_a_commit_of_minus_1_is_listed_and_has_no_offset():
    """librdkafka shows -1 as -1001, of a partition that brokers list: they list none without a commit."""
    listed = [SimpleNamespace(topic="t", partition=p, offset=o, leader_epoch=None, metadata="", error=None)
              for p, o in ((0, 7), (1, -1001))]  # fmt: skip
    found = _commits(SimpleNamespace(topic_partitions=listed))
    assert dict(found) == {TopicPartition("t", 0): Commit(7)}
    assert without_offset(found) == (TopicPartition("t", 1),)


def test_the_partition_counts_of_topics_are_asked_for_once_and_again_for_what_they_do_not_have(monkeypatch):
    asked, counts = [], {"t": 2}

    def topics():
        asked.append(dict(counts))
        return dict(counts)

    kept, places = _PartitionCounts(topics), [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert kept.covering(places) == kept.covering(places) == {"t": 2} and len(asked) == 1
    counts["u"] = 1
    assert kept.covering([TopicPartition("u", 0)])["u"] == 1 and len(asked) == 2
    monkeypatch.setattr("migrate.kafka.admin.COUNTS_SECONDS", -1.0)
    assert kept.covering(places)["t"] == 2 and len(asked) == 3, "what is old is asked for anew"


def described(**changes):
    usual = {
        "is_simple_consumer_group": False, "members": (), "partition_assignor": "range",
        "state": ConsumerGroupState.STABLE, "type": ConsumerGroupType.CLASSIC,
        "coordinator": SimpleNamespace(id=3, host="kafka-3", port=9093),
    }  # fmt: skip
    return _listed_group(SimpleNamespace(**usual | changes))


def test_a_group_is_described_with_its_members_and_what_they_are_assigned():
    assigned = [KafkaPartition("t", 2), KafkaPartition("u", 0), KafkaPartition("t", 0)]
    one = SimpleNamespace(
        member_id="c-1", client_id="app", host="/10.0.0.7", assignment=SimpleNamespace(topic_partitions=assigned)
    )
    two = SimpleNamespace(member_id="c-2", client_id="app", host="/10.0.0.8", assignment=None)
    members = (
        GroupMember("c-1", "app", "/10.0.0.7", (AssignedTopic("t", (2, 0)), AssignedTopic("u", (0,)))),
        GroupMember("c-2", "app", "/10.0.0.8"),
    )
    coordinator = Coordinator(3, "kafka-3", 9093)
    assert described(members=(one, two)) == ListedGroup(
        "classic", "consumer", GroupDescription("Stable", members, "range", coordinator)
    )


def test_a_group_of_kip_848_a_simple_one_and_a_state_without_a_word_are_told_as_they_are():
    new = described(type=ConsumerGroupType.CONSUMER, state=ConsumerGroupState.UNKNOWN)
    assert (new.kind, new.protocol_type, new.description.state) == ("consumer", "consumer", "Unknown")
    assert described(is_simple_consumer_group=True).protocol_type == ""


def test_a_group_without_an_answer_or_a_coordinator_is_a_failure_and_not_an_empty_group():
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "not authorized")
    assert _listed_group(denied) == denied
    assert isinstance(described(coordinator=None), Failure)


class FakeConnection:
    """Answers for each group, and keeps who was asked and how many at once."""

    moved = Failure("NOT_COORDINATOR", "it has moved", retriable=True)

    def __init__(self):
        self.asked, self.concurrency, self.drops, self.writing = [], 0, 0, False

    def gather(self, keys, submit, concurrency, writing=False):
        self.asked, self.concurrency, self.writing = [*self.asked, *keys], concurrency, writing
        done = SimpleNamespace(topic_partitions=[])
        return {key: self.moved if key == "moved" and not self.drops else done for key in keys}

    def drop(self):
        self.drops += 1


def reader_over_fakes(concurrency=100):
    reader = ConfluentAdmin(ClientSettings(Side.TARGET, "B", "target B", {}), concurrency=concurrency)
    reader._connections = tuple(FakeConnection() for _ in reader._connections)
    reader._connection = reader._connections[0]
    return reader


@pytest.mark.parametrize("writing", [False, True])
def test_many_groups_are_read_and_written_over_several_connections_each_group_once(writing):
    worth = WORTH_A_WRITER if writing else WORTH_A_CLIENT
    groups = {f"g{number:04d}": {TopicPartition("t", 0): Commit(7)} for number in range(SIDE_BY_SIDE * worth)}
    admin = reader_over_fakes()
    assert (admin.alter(groups) if writing else admin.commits(groups)).keys() == groups.keys()
    asked = [connection.asked for connection in admin._connections]
    assert sorted(group for each in asked for group in each) == sorted(groups) and all(asked)
    assert all(connection.writing is writing for connection in admin._connections)
    assert writing or sum(connection.concurrency for connection in admin._connections) == 100


def test_a_group_behind_a_login_with_a_token_that_had_just_ended_is_asked_again_of_a_fresh_client(monkeypatch):
    refused = failure_of(KafkaError(KafkaError._AUTHENTICATION))
    monkeypatch.setattr(FakeConnection, "moved", refused)
    assert not refused.retriable  # as an answer to a write
    assert reader_over_fakes().commits({"a", "moved"}) == {"a": {}, "moved": {}}
    monkeypatch.setattr(FakeConnection, "moved", failure_of(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    denied = reader_over_fakes()
    assert isinstance(denied.commits({"moved"})["moved"], Failure)
    assert not any(connection.drops for connection in denied._connections)


def test_few_groups_take_one_connection_and_what_moves_is_asked_again_of_fresh_clients():
    reader = reader_over_fakes()
    assert reader.commits({"a", "moved"}) == {"a": {}, "moved": {}}
    assert [connection.asked for connection in reader._connections[1:]] == [[]] * (SIDE_BY_SIDE - 1)
    assert all(connection.drops == 1 for connection in reader._connections)

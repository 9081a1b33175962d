"""What is made of librdkafka's answers: nothing counts as done, or as not done, that the cluster did not say."""

from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AclOperation

from migrate.commit_table import without_offset
from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.errors import ClusterError
from migrate.kafka.admin import (
    LISTING_SECONDS,
    NOT_EXACT,
    SIDE_BY_SIDE,
    WORTH_A_CLIENT,
    WORTH_A_WRITER,
    WORTH_LISTING,
    ConfluentAdmin,
    EmptyGroups,
    _commits,
    _granted,
    _listed_group,
    _PartitionCounts,
    _results,
    _topics,
)
from migrate.kafka.errors import failure_of, timed_out
from migrate.kafka.settings import ClientSettings
from migrate.model import UNREAD_METADATA, Commit, Failure, Side, TopicPartition
from tests.unit.logscene import NOWHERE, settings

P0, P1, P2 = (TopicPartition("t", partition) for partition in range(3))


def answered(partition, error=None):
    return SimpleNamespace(topic="t", partition=partition, error=error)


def test_a_partition_that_the_answer_leaves_out_may_be_written_and_one_with_an_error_is_not_done():
    refused = KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "no")
    results = _results([P0, P1, P2], SimpleNamespace(topic_partitions=[answered(0), answered(1, refused)]))
    done, failed, lost = (results[partition] for partition in (P0, P1, P2))
    assert done is None
    assert isinstance(failed, Failure) and failed.code == "UNKNOWN_MEMBER_ID" and not failed.outcome_unknown
    assert isinstance(lost, Failure) and lost.code == "NO_ANSWER" and lost.outcome_unknown
    for first, second in ((None, refused), (refused, None)):
        whole = _results([P0, P1], SimpleNamespace(topic_partitions=[answered(0, first), answered(1, second)]))
        assert [result is None for result in whole.values()] == [first is None, second is None]


def test_a_group_with_metadata_is_left_untouched_and_no_cluster_is_even_asked():
    admin = ConfluentAdmin(settings(NOWHERE), 0.5)
    assert admin.alter({"g": {P0: Commit(7, "m"), P1: Commit(8)}}) == {"g": {P0: NOT_EXACT, P1: NOT_EXACT}}


def states(admin):
    return {group: state.state for group, state in admin.group_states(["g", "h"]).items()}


def rights(admin):
    return {topic: failure.code for topic, failure in admin._described(["g", "h"], _topics, _granted).items()}


@pytest.mark.parametrize(("ask", "told"), [(states, "Dead"), (rights, "GROUP_ID_NOT_FOUND")])
def test_what_a_broker_that_has_died_was_asked_about_is_described_by_a_fresh_client_before_the_deadline(ask, told):
    """A call for several groups answers with the last of them: one that hangs takes the deadline from all."""
    admin, asked = ConfluentAdmin(settings(NOWHERE), deadline_seconds=30.0), []

    def collect(submit, seconds):
        by_name = {
            "describe_consumer_groups": lambda groups, **_: groups,
            "describe_topics": lambda t, **_: t.topic_names,
        }
        groups = submit(SimpleNamespace(**by_name))
        asked.append((tuple(groups), seconds))
        return dict.fromkeys(groups, timed_out(seconds) if len(asked) == 1 else Failure("GROUP_ID_NOT_FOUND", "gone"))

    admin._connections = [SimpleNamespace(collect=collect, drop=lambda: None)]
    admin._connection = admin._connections[0]
    assert ask(admin) == {"g": told, "h": told}
    assert asked == [(("g", "h"), 10.0), (("g", "h"), 30.0)]


@pytest.mark.parametrize("operations", [None, []])
def test_rights_that_a_cluster_does_not_report_are_not_taken_for_missing(operations):
    admin = ConfluentAdmin(settings(NOWHERE), deadline_seconds=30.0)
    described = {
        "seen": SimpleNamespace(authorized_operations=[AclOperation.READ]),
        "unseen": SimpleNamespace(authorized_operations=operations),
    }
    admin._connection = SimpleNamespace(
        answer=lambda what, submit: SimpleNamespace(authorized_operations=None),
        collect=lambda submit, seconds: described,
    )
    rights = admin.rights(["seen", "unseen"], [])
    assert rights.groups["seen"] == {"READ"} and isinstance(rights.groups["unseen"], Failure)


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


MANY = [f"g{number}" for number in range(WORTH_LISTING)]


def listed(group, state=ConsumerGroupState.EMPTY, kind=ConsumerGroupType.CLASSIC):
    return SimpleNamespace(group_id=group, state=state, type=kind)


def over(*groups, error=None, errors=()):
    """The groups that are listed, each as the first broker in the states asked for has it; and what was asked."""
    asked = []

    class Client:
        def list_consumer_groups(self, states=frozenset(ConsumerGroupState), types=frozenset(ConsumerGroupType), **_):
            asked.append((states, types))
            first = {}
            for group in groups:
                if group.state in states and group.type in types:
                    first.setdefault(group.group_id, group)
            return SimpleNamespace(valid=list(first.values()), errors=errors)

    def answer(what, submit):
        if error is not None:
            asked.append(what)
            raise error
        return submit(Client())

    empty = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    empty._connection = SimpleNamespace(answer=answer)
    return empty, asked


def test_a_classic_group_that_is_listed_as_empty_is_empty():
    empty, _ = over(listed("g1"), listed("g2"), listed("not-asked-for"))
    assert empty.among(MANY) == {"g1", "g2"}


def test_where_a_broker_gives_no_answer_all_are_described_for_it_may_have_become_their_coordinator():
    empty, asked = over(listed("g1"), listed("g2"), errors=["COORDINATOR_LOAD_IN_PROGRESS"])
    assert empty.among(MANY) == frozenset() and len(asked) == 1
    assert empty.among(MANY) == frozenset() and len(asked) == 2, "it may load for a moment only"


def test_whatever_else_is_listed_is_left_to_be_described():
    states = [state for state in ConsumerGroupState if state is not ConsumerGroupState.EMPTY]
    kinds = [kind for kind in ConsumerGroupType if kind is not ConsumerGroupType.CLASSIC]
    groups = [listed(f"g{number}", state) for number, state in enumerate(states)]
    groups += [listed(f"g{len(states) + number}", kind=kind) for number, kind in enumerate(kinds)]
    assert len(states) > 4 and len(kinds) > 1
    assert over(*groups)[0].among(MANY) == frozenset()


def test_a_group_in_the_lists_of_two_brokers_is_left_to_be_described():
    rebalancing, stable = ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.STABLE
    empty, asked = over(listed("g1"), listed("g1", stable), listed("g2", rebalancing), listed("g2"), listed("g3"))
    assert empty.among(MANY) == {"g3"} and len(asked) == 3


def test_a_group_that_has_become_one_of_the_newer_protocol_elsewhere_is_left_to_be_described():
    """Its states there are none that librdkafka asks for."""
    newer = listed("g1", ConsumerGroupState.UNKNOWN, ConsumerGroupType.CONSUMER)
    empty, _ = over(listed("g1"), newer, listed("g2"))
    assert empty.among(MANY) == {"g2"}


def test_few_groups_are_not_worth_a_listing():
    empty, asked = over(listed("g1"))
    assert empty.among(MANY[1:]) == frozenset() and not asked


def test_a_listing_that_does_not_come_soon_is_asked_for_once_and_never_waited_for_long():
    empty, asked = over(error=ClusterError("source A did not answer", ""))
    assert empty.among(MANY) == empty.among(MANY) == frozenset() and len(asked) == 1
    patient = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    assert patient._connection.deadline_seconds == LISTING_SECONDS

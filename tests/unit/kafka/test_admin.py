"""What is made of librdkafka's answers and errors: nothing counts as done, or as not done, that nobody said."""

from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AclOperation

from migrate.commit_table import without_offset
from migrate.described_group import AssignedTopic, Coordinator, GroupDescription, GroupMember, ListedGroup
from migrate.errors import ClusterError
from migrate.kafka import admin as module
from migrate.kafka.admin import NOT_EXACT, SIDE_BY_SIDE, ConfluentAdmin, EmptyGroups
from migrate.kafka.errors import RETRIABLE, failure_of, is_passing, note_cause, or_too_few_copies, timed_out
from migrate.kafka.settings import ClientSettings
from migrate.model import UNREAD_METADATA, Commit, Failure, Side, TopicPartition
from migrate.spark import java_admin
from migrate.write_outcome import NOT_WRITTEN, PASSING, may_be_written
from tests.unit.logscene import NOWHERE, settings

P0, P1, P2 = (TopicPartition("t", partition) for partition in range(3))


def answered(partition, error=None):
    return SimpleNamespace(topic="t", partition=partition, error=error)


def test_a_partition_that_the_answer_leaves_out_may_be_written_and_one_with_an_error_is_not_done():
    refused = KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "no")
    results = module._results([P0, P1, P2], SimpleNamespace(topic_partitions=[answered(0), answered(1, refused)]))
    done, failed, lost = (results[partition] for partition in (P0, P1, P2))
    assert done is None
    assert isinstance(failed, Failure) and failed.code == "UNKNOWN_MEMBER_ID" and not failed.outcome_unknown
    assert isinstance(lost, Failure) and lost.code == "NO_ANSWER" and lost.outcome_unknown
    for first, second in ((None, refused), (refused, None)):
        whole = module._results([P0, P1], SimpleNamespace(topic_partitions=[answered(0, first), answered(1, second)]))
        assert [result is None for result in whole.values()] == [first is None, second is None]


def test_a_group_with_metadata_is_left_untouched_and_no_cluster_is_even_asked():
    admin = ConfluentAdmin(settings(NOWHERE), 0.5)
    assert admin.alter({"g": {P0: Commit(7, "m"), P1: Commit(8)}}) == {"g": {P0: NOT_EXACT, P1: NOT_EXACT}}


def states(admin):
    return {group: state.state for group, state in admin.group_states(["g", "h"]).items()}


def rights(admin):
    return {
        topic: failure.code for topic, failure in admin._described(["g", "h"], module._topics, module._granted).items()
    }


@pytest.mark.parametrize(("ask", "told"), [(states, "Dead"), (rights, "GROUP_ID_NOT_FOUND")])
def test_what_a_broker_that_has_died_was_asked_about_is_described_by_a_fresh_client_before_the_deadline(ask, told):
    """A call for several groups answers with the last of them: one that hangs takes the deadline from all."""
    admin, asked = ConfluentAdmin(settings(NOWHERE), deadline_seconds=30.0), []

    def collect(submit, seconds):
        client = SimpleNamespace(
            describe_consumer_groups=lambda groups, **_: groups, describe_topics=lambda t, **_: t.topic_names
        )
        groups = submit(client)
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


class Committed:
    """A partition; of metadata that Java wrote librdkafka may read bytes behind its end, which are no text."""

    topic, leader_epoch, error = "t", None, None

    def __init__(self, partition, offset, metadata=b""):
        self.partition, self.offset, self.bytes = partition, offset, metadata

    @property
    def metadata(self):
        return self.bytes.decode()


def test_metadata_that_librdkafka_cannot_read_is_some_and_a_commit_of_minus_1_is_listed_without_an_offset():
    """librdkafka shows -1 as -1001, of a partition that brokers list: they list none without a commit."""
    listed = [Committed(0, 7), Committed(1, -1001), Committed(2, 7, b"AgAAAZ==\xa2")]
    found = module._commits(SimpleNamespace(topic_partitions=listed))
    assert dict(found) == {P0: Commit(7), P2: Commit(7, UNREAD_METADATA)} and without_offset(found) == (P1,)


def test_the_partition_counts_of_topics_are_asked_for_once_and_again_for_what_they_do_not_have(monkeypatch):
    asked, counts = [], {"t": 2}

    def topics():
        asked.append(dict(counts))
        return dict(counts)

    kept, places = module._PartitionCounts(topics), [P0, P1]
    assert kept.covering(places) == kept.covering(places) == {"t": 2} and len(asked) == 1
    counts["u"] = 1
    assert kept.covering([TopicPartition("u", 0)])["u"] == 1 and len(asked) == 2
    monkeypatch.setattr(module, "COUNTS_SECONDS", -1.0)
    assert kept.covering(places)["t"] == 2 and len(asked) == 3, "what is old is asked for anew"


def described(**changes):
    usual = {
        "is_simple_consumer_group": False, "members": (), "partition_assignor": "range",
        "state": ConsumerGroupState.STABLE, "type": ConsumerGroupType.CLASSIC,
        "coordinator": SimpleNamespace(id=3, host="kafka-3", port=9093),
    }  # fmt: skip
    return module._listed_group(SimpleNamespace(**usual | changes))


def test_a_group_is_described_as_it_is_with_its_members_and_what_they_are_assigned_or_is_a_failure():
    assigned = [KafkaPartition("t", 2), KafkaPartition("u", 0), KafkaPartition("t", 0)]
    given = [
        SimpleNamespace(member_id=f"c-{n}", client_id="app", host=f"/10.0.0.{n}", assignment=each)
        for n, each in enumerate((SimpleNamespace(topic_partitions=assigned), None))
    ]
    topics = (AssignedTopic("t", (2, 0)), AssignedTopic("u", (0,)))
    members = (GroupMember("c-0", "app", "/10.0.0.0", topics), GroupMember("c-1", "app", "/10.0.0.1"))
    stable = GroupDescription("Stable", members, "range", Coordinator(3, "kafka-3", 9093))
    assert described(members=given) == ListedGroup("classic", "consumer", stable)
    new = described(type=ConsumerGroupType.CONSUMER, state=ConsumerGroupState.UNKNOWN)
    assert (new.kind, new.protocol_type, new.description.state) == ("consumer", "consumer", "Unknown")
    assert described(is_simple_consumer_group=True).protocol_type == ""
    # Without an answer or a coordinator it is a failure, and not an empty group.
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "not authorized")
    assert module._listed_group(denied) == denied
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


def reader_over_fakes():
    reader = ConfluentAdmin(ClientSettings(Side.TARGET, "B", "target B", {}), concurrency=100)
    reader._connections = tuple(FakeConnection() for _ in reader._connections)
    reader._connection = reader._connections[0]
    return reader


@pytest.mark.parametrize("writing", [False, True])
def test_many_groups_are_read_and_written_over_several_connections_each_group_once(writing):
    worth = module.WORTH_A_WRITER if writing else module.WORTH_A_CLIENT
    groups = {f"g{number:04d}": {P0: Commit(7)} for number in range(SIDE_BY_SIDE * worth)}
    admin = reader_over_fakes()
    assert (admin.alter(groups) if writing else admin.commits(groups)).keys() == groups.keys()
    asked = [connection.asked for connection in admin._connections]
    assert sorted(group for each in asked for group in each) == sorted(groups) and all(asked)
    assert all(connection.writing is writing for connection in admin._connections)
    assert writing or sum(connection.concurrency for connection in admin._connections) == 100


def test_few_groups_take_one_connection_and_what_moved_or_lost_its_token_is_asked_again_of_fresh_clients(monkeypatch):
    ended = failure_of(KafkaError(KafkaError._AUTHENTICATION))
    assert not ended.retriable  # as an answer to a write
    for refused in (FakeConnection.moved, ended):
        monkeypatch.setattr(FakeConnection, "moved", refused)
        reader = reader_over_fakes()
        assert reader.commits({"a", "moved"}) == {"a": {}, "moved": {}}
        assert [connection.asked for connection in reader._connections[1:]] == [[]] * (SIDE_BY_SIDE - 1)
        assert all(connection.drops == 1 for connection in reader._connections)
    monkeypatch.setattr(FakeConnection, "moved", failure_of(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    denied = reader_over_fakes()
    assert isinstance(denied.commits({"moved"})["moved"], Failure)
    assert not any(connection.drops for connection in denied._connections)


MANY = [f"g{number}" for number in range(module.WORTH_LISTING)]


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


def test_where_a_broker_gives_no_answer_all_are_described_for_it_may_have_become_their_coordinator():
    empty, asked = over(listed("g1"), listed("g2"), errors=["COORDINATOR_LOAD_IN_PROGRESS"])
    assert empty.among(MANY) == frozenset() and len(asked) == 1
    assert empty.among(MANY) == frozenset() and len(asked) == 2, "it may load for a moment only"


def test_a_classic_group_that_is_listed_as_empty_by_all_is_empty_and_whatever_else_is_left_to_be_described():
    assert over(listed("g1"), listed("g2"), listed("not-asked-for"))[0].among(MANY) == {"g1", "g2"}
    states = [state for state in ConsumerGroupState if state is not ConsumerGroupState.EMPTY]
    kinds = [kind for kind in ConsumerGroupType if kind is not ConsumerGroupType.CLASSIC]
    groups = [listed(f"g{number}", state) for number, state in enumerate(states)]
    groups += [listed(f"g{len(states) + number}", kind=kind) for number, kind in enumerate(kinds)]
    assert len(states) > 4 and len(kinds) > 1
    assert over(*groups)[0].among(MANY) == frozenset()
    rebalancing, stable = ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.STABLE
    empty, asked = over(listed("g1"), listed("g1", stable), listed("g2", rebalancing), listed("g2"), listed("g3"))
    assert empty.among(MANY) == {"g3"} and len(asked) == 3
    # Where it has become one of the newer protocol its states are none that librdkafka asks for.
    newer = listed("g1", ConsumerGroupState.UNKNOWN, ConsumerGroupType.CONSUMER)
    assert over(listed("g1"), newer, listed("g2"))[0].among(MANY) == {"g2"}


def test_a_listing_is_not_asked_for_few_groups_and_once_where_it_does_not_come_soon():
    empty, asked = over(listed("g1"))
    assert empty.among(MANY[1:]) == frozenset() and not asked
    empty, asked = over(error=ClusterError("source A did not answer", ""))
    assert empty.among(MANY) == empty.among(MANY) == frozenset() and len(asked) == 1
    patient = EmptyGroups(ClientSettings(Side.SOURCE, "A", "source A", {}), deadline_seconds=60.0)
    assert patient._connection.deadline_seconds == module.LISTING_SECONDS


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Receive failed: error:0A000416:SSL routines::ssl/tls alert certificate unknown: SSL alert number 46", "_SSL"),
        ("Receive failed: error:0A000412:SSL routines::sslv3 alert bad certificate: SSL alert number 42", "_SSL"),
        ("Receive failed: error:0A000126:SSL routines::unexpected eof while reading", "_TRANSPORT"),
        ("Connect to ipv4#127.0.0.1:1 failed: Connection refused", "_TRANSPORT"),
    ],
)
def test_a_certificate_that_the_broker_rejects_is_no_lost_connection(text, code):
    causes: dict[str, str] = {}
    note_cause(causes, KafkaError(KafkaError._TRANSPORT, text))
    assert causes == {code: text}


def test_stable_offsets_that_never_come_and_a_write_that_no_coordinator_takes_say_that_copies_may_be_too_few():
    late = or_too_few_copies(timed_out(5))
    assert late.code == "_TIMED_OUT" and late.message.startswith("no answer within 5 s (fewer copies of")
    refused = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    assert or_too_few_copies(refused) is refused
    homeless = KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)
    write, reading = (failure_of(homeless, writing=writing).message for writing in (True, False))
    assert "__consumer_offsets" in write and "min.insync.replicas" in write and "min.insync.replicas" not in reading


AFTER_THE_APPEND = (
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_ENOUGH_REPLICAS", "NOT_LEADER_FOR_PARTITION", "KAFKA_STORAGE_ERROR", "UNKNOWN", "NETWORK_EXCEPTION",
    "_TRANSPORT", "_TIMED_OUT", "_DESTROY", "_FAIL",
)  # fmt: skip
BEFORE_IT = (
    "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART",
    "OFFSET_METADATA_TOO_LARGE", "ILLEGAL_GENERATION", "NON_EMPTY_GROUP",
)  # fmt: skip


@pytest.mark.parametrize("name", [*AFTER_THE_APPEND, *BEFORE_IT])
def test_an_error_that_may_arise_after_the_append_leaves_a_write_unknown_and_a_reading_not(name):
    error = KafkaError(getattr(KafkaError, name))
    assert failure_of(error, writing=True).outcome_unknown is (name in AFTER_THE_APPEND)
    assert not failure_of(error).outcome_unknown
    assert may_be_written("AN_ERROR_OF_KAFKA_5") and may_be_written("") and NOT_WRITTEN


def test_the_right_that_is_missing_depends_on_what_was_to_be_done():
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no")
    assert "DESCRIBE on the topic)" in failure_of(denied).message
    assert "READ on the topic)" in failure_of(denied, writing=True).message
    assert "READ on the topic, which includes DESCRIBE)" in failure_of(denied, fetching=True).message


def test_both_clients_try_again_on_the_same_of_kafkas_errors():
    assert {code for code in RETRIABLE if not code.startswith("_")} == PASSING
    assert java_admin.PASSING is PASSING


@pytest.mark.parametrize("code", [KafkaError._NOENT, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION])
def test_only_what_passes_is_tried_again_and_what_the_client_has_forgotten_is_no_word_of_the_clusters(code):
    forgotten = failure_of(KafkaError(code))
    assert is_passing(forgotten) and not forgotten.retriable
    assert not is_passing(failure_of(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    # A write is tried again where the coordinator moved, and not where the group has members.
    moved, member = KafkaError(KafkaError.NOT_COORDINATOR), KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
    assert failure_of(moved).retriable and not failure_of(member, writing=True).retriable

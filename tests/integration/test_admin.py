"""The confluent-kafka adapter against a real broker: what it answers, and how it fails."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.errors import ClusterError
from migrate.kafka.admin import MEMBERS_NAMED, ConfluentAdmin
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.settings import ClientSettings
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import Commit, Failure, GroupState, LogRange, Side, TopicPartition
from tests.integration.clusters import member
from tests.integration.rawmember import crowd
from tests.integration.repeated import breaking
from tests.lab.cluster import QUIET_CLIENT
from tests.lab.proxy import ProxiedCluster
from tests.lab.waiting import wait_until

# Seldom enough for an answer to come through, and often enough to hit some.
BROKEN_EVERY_SECONDS, ROUNDS = 0.15, 60
CROWD = 40


class Broker:
    """One broker that would create topics on request."""

    def __init__(self, folder: Path) -> None:
        # All members of a crowd join in one rebalance.
        overrides = {"auto.create.topics.enable": "true", "group.initial.rebalance.delay.ms": "500"}
        self.cluster = ProxiedCluster("admin", folder, overrides=overrides)
        self.cluster.start()
        self.bootstrap = self.cluster.bootstrap

    def admin(self, deadline_seconds: float = 20.0, **more: str) -> KafkaCluster:
        settings = {"bootstrap.servers": self.bootstrap, **more}
        name = FlowCluster(Side.TARGET, "B", settings).name
        # As the product has it: what a silent broker may end is a process of its own, and not this one.
        return KafkaCluster(ClientSettings(Side.TARGET, "B", name, settings), deadline_seconds)

    def topic(self, partitions: int = 2) -> str:
        name = f"t-{uuid4().hex[:8]}"
        self.cluster.create_topic(name, partitions)
        return name

    def produce(self, topic: str, count: int, partition: int = 0, transactional: str = "") -> Producer:
        config = {"bootstrap.servers": self.bootstrap, **QUIET_CLIENT}
        if transactional:
            config["transactional.id"] = transactional
        producer = Producer(config)
        if transactional:
            producer.init_transactions(30)
            producer.begin_transaction()
        for n in range(count):
            producer.produce(topic, str(n).encode(), partition=partition)
        producer.flush(30)
        return producer

    def member(self, group: str, topic: str, **more: str) -> AbstractContextManager[Consumer]:
        """A member that has joined and holds the partitions."""
        return member(self.bootstrap, group, topic, **{"client.id": "app"}, **more)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The broker keeps its connections and says nothing."""
        (only,) = self.cluster.brokers
        only.process.pause()
        try:
            yield
        finally:
            only.process.resume()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"))
    try:
        yield made
    finally:
        made.cluster.stop()


@pytest.fixture
def group() -> str:
    return f"g-{uuid4().hex[:8]}"


def offsets(topic: str, *values: int) -> dict[TopicPartition, Commit]:
    return {TopicPartition(topic, partition): Commit(value) for partition, value in enumerate(values)}


def only(error: Callable[[], object]) -> str:
    with pytest.raises(ClusterError) as caught:
        error()
    text = str(caught.value)
    assert "\n" not in text and "target B" in text and caught.value.todo
    return text


def test_a_cluster_tells_its_id_and_topics_with_their_ids_and_none_is_created(broker: Broker) -> None:
    admin, topic, absent = broker.admin(), broker.topic(3), f"absent-{uuid4().hex}"
    facts = admin.facts()
    assert (facts.cluster_id, facts.brokers, facts.may_describe) == (broker.cluster.cluster_id, 1, True)
    assert admin.topics()[topic] == 3
    ids = admin.topic_ids([topic, absent])
    assert set(ids) == {topic} and len(ids[topic]) == 22
    ranges = admin.log_ranges([TopicPartition(absent, 0), TopicPartition(topic, 99)])
    assert {r.code for r in ranges.values() if isinstance(r, Failure)} == {"UNKNOWN_TOPIC_OR_PARTITION"}
    answer = admin.alter({"g-absent": offsets(absent, 1)})["g-absent"]
    assert [f.code for f in answer.values() if f] == ["UNKNOWN_TOPIC_OR_PARTITION"]
    assert absent not in admin.renewed().topics()


def test_offsets_are_set_read_and_deleted_with_their_group(broker: Broker, group: str) -> None:
    admin, topic = broker.admin(), broker.topic()
    other = f"{group}-other"
    result = admin.alter({group: offsets(topic, 5, 0), other: offsets(topic, 7)})
    assert result == {group: dict.fromkeys(offsets(topic, 5, 0)), other: dict.fromkeys(offsets(topic, 7))}
    fresh = admin.renewed()
    held = {group: offsets(topic, 5, 0), other: offsets(topic, 7), "nobody": {}}
    assert fresh.commits([group, other, "nobody"]) == held
    assert {group, other} <= fresh.groups()
    assert fresh.group_states([group, "nobody"]) == {group: GroupState("Empty"), "nobody": GroupState("Dead")}
    assert fresh.delete_groups([group]) == {group: None}
    assert group not in fresh.groups()
    gone = fresh.delete_groups([group])[group]
    assert gone is not None and gone.code == "GROUP_ID_NOT_FOUND"


def test_more_partitions_than_fit_one_request_are_written_in_several_and_each_has_its_own_result(
    broker: Broker, group: str
) -> None:
    admin, topic = broker.admin(deadline_seconds=60), broker.topic(1)
    result = admin.alter({group: offsets(topic, *[3] * 4500)})[group]
    assert len(result) == 4500 and [p.partition for p, f in result.items() if f is None] == [0]
    failure = result[TopicPartition(topic, 1)]
    assert failure is not None and failure.code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert not failure.retriable and not failure.outcome_unknown
    assert admin.commits([group])[group] == {TopicPartition(topic, 0): Commit(3)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_group_is_described_and_the_broker_refuses_to_set_or_delete_it(
    broker: Broker, group: str, protocol: str
) -> None:
    admin, topic = broker.admin(), broker.topic()
    with broker.member(group, topic, **{"group.protocol": protocol}):
        state = admin.group_states([group])[group]
        assert isinstance(state, GroupState) and not state.is_stopped
        assert (state.member_count, state.kind) == (1, protocol)
        assert state.members[0].startswith("app@")
        result = admin.alter({group: offsets(topic, 1, 1)})[group]
        assert {f.code for f in result.values() if f} == {"UNKNOWN_MEMBER_ID"} and all(result.values())
        deleted = admin.delete_groups([group])[group]
        assert deleted is not None and deleted.code == "NON_EMPTY_GROUP"
        assert admin.commits([group])[group] == {}
    wait_until(lambda: getattr(admin.group_states([group])[group], "is_stopped", False), 60, f"{group} to be stopped")


def test_of_many_groups_those_that_are_listed_as_empty_are_what_they_are_described_as(
    broker: Broker, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topic()
    simple, left, classic, consumer = (f"{group}-{name}" for name in ("simple", "left", "classic", "consumer"))
    broker.admin().alter({simple: offsets(topic, 1)})
    reader = ConfluentAdmin(ClientSettings(Side.TARGET, "B", "target B", {"bootstrap.servers": broker.bootstrap}))

    def are_ready() -> bool:
        found = reader.group_states([left, classic, consumer])
        # The broker soon forgets a group that has left no offset.
        is_left = getattr(found[left], "is_stopped", False)
        return is_left and all(getattr(found[name], "state", "") == "Stable" for name in (classic, consumer))

    with broker.member(left, topic):
        pass
    with broker.member(classic, topic), broker.member(consumer, topic, **{"group.protocol": "consumer"}):
        # A group of KIP-848 is still reconciling when its member has partitions already.
        wait_until(are_ready, 60, "one to be stopped, and two to be stable")
        groups = [simple, left, classic, consumer, "nobody"]
        described = reader.group_states(groups)
        assert [getattr(described[name], "is_stopped", None) for name in groups] == [True, True, False, False, True]
        monkeypatch.setattr("migrate.kafka.admin.WORTH_LISTING", 1)
        asked: list[str] = []
        describe = reader._described
        monkeypatch.setattr(reader, "_described", lambda some, *how: asked.extend(some) or describe(some, *how))
        assert reader.group_states(groups) == described
        assert sorted(asked) == sorted([classic, consumer, "nobody"])


def test_of_a_crowd_all_are_counted_and_some_are_named(broker: Broker, group: str) -> None:
    with crowd(broker.bootstrap, group, broker.topic(), CROWD):
        state = broker.admin().group_states([group])[group]
    assert isinstance(state, GroupState) and state.member_count == CROWD, state
    assert len(state.members) == MEMBERS_NAMED < CROWD and all("worker-" in name for name in state.members)


def test_the_end_of_a_log_is_its_last_stable_offset(broker: Broker) -> None:
    admin, topic = broker.admin(), broker.topic(1)
    here = TopicPartition(topic, 0)
    broker.produce(topic, 4)
    open_one = broker.produce(topic, 3, transactional=f"tx-{uuid4().hex}")
    try:
        assert admin.log_ranges([here]) == {here: LogRange(0, 4)}
        assert admin.high_watermarks([here]) == {here: 7}
    finally:
        open_one.commit_transaction(30)
    wait_until(lambda: admin.log_ranges([here]) == {here: LogRange(0, 8)}, 30, "the commit marker")
    assert admin.high_watermarks([here]) == {here: 8}
    absent = admin.high_watermarks([TopicPartition(topic, 7)])[TopicPartition(topic, 7)]
    assert isinstance(absent, Failure) and absent.code == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.long
def test_over_connections_that_break_again_and_again_the_end_of_every_log_is_told(broker: Broker) -> None:
    """Else a log would be out of sight: librdkafka forgets who leads a partition along with a connection."""
    topic = broker.topic(3)
    broker.produce(topic, 5, partition=1)
    ends = {TopicPartition(topic, p): 5 if p == 1 else 0 for p in range(3)}
    settings = ClientSettings(Side.TARGET, "B", "B", {"bootstrap.servers": broker.cluster.proxied_bootstrap})
    began = time.monotonic()
    ConfluentAdmin(settings, 20.0).log_ranges(list(ends))
    # Seldom enough for an answer on a busy machine too.
    every = max(BROKEN_EVERY_SECONDS, 4 * (time.monotonic() - began))
    with breaking(broker.cluster.network, every):
        for _ in range(ROUNDS):
            told = ConfluentAdmin(settings, 20.0).log_ranges(list(ends))
            assert {p: answer.end if isinstance(answer, LogRange) else answer for p, answer in told.items()} == ends


def test_a_pending_transactional_commit_is_a_failure_unless_asked_otherwise(broker: Broker, group: str) -> None:
    admin, topic = broker.admin(), broker.topic(1)
    here = TopicPartition(topic, 0)
    other = f"{group}-other"
    admin.alter({other: {here: Commit(1)}})
    producer = broker.produce(topic, 1, transactional=f"tx-{uuid4().hex}")
    with broker.member(group, topic) as reader:
        # Brokers list the partitions that have an offset: a first commit that is still open shows nowhere.
        reader.commit(offsets=[KafkaPartition(topic, 0, 0, "AAA=")], asynchronous=False)
        members = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([KafkaPartition(topic, 0, 1)], members, 30)
        try:
            found = admin.commits([group, other])
            assert found[other] == {here: Commit(1)}
            unstable = found[group]
            assert isinstance(unstable, Failure) and unstable.code == "UNSTABLE_OFFSET_COMMIT"
            assert admin.commits([group], require_stable=False)[group] == {here: Commit(0, "AAA=")}
        finally:
            producer.abort_transaction(30)


def test_tls_to_a_plain_listener_is_said(broker: Broker) -> None:
    text = only(broker.admin(deadline_seconds=2, **{"security.protocol": "SSL"}).topics)
    assert "SSL connection closed by peer" in text and "security.protocol" in text, text


def answers(broker: Broker) -> bool:
    """True once a broker that was stopped answers within the client's deadline; the first answers may come too late."""
    try:
        return broker.admin().facts().brokers == 1
    except ClusterError:
        return False


def test_a_silent_broker_costs_one_deadline_and_never_the_process(broker: Broker, group: str) -> None:
    admin, topic = broker.admin(deadline_seconds=2), broker.topic(1)
    here = TopicPartition(topic, 0)
    many = [f"{group}-{n}" for n in range(150)]
    assert admin.commits([group])[group] == {}
    reading = broker.admin(deadline_seconds=2)
    assert reading.facts().brokers == 1
    with broker.paused():
        in_flight = reading.commits([group])[group]
        assert isinstance(in_flight, Failure) and in_flight.code == "_TIMED_OUT"
        written = admin.alter({group: {here: Commit(1)}})[group][here]
        assert written is not None and (written.code, written.outcome_unknown) == ("_TIMED_OUT", True)
        only(lambda: admin.commits(many))
        only(admin.groups)
        fresh = admin.renewed()
        only(lambda: fresh.group_states([group]))
    wait_until(lambda: answers(broker), 90, "the broker to answer again")
    assert broker.admin().commits([group])[group] in ({}, {here: Commit(1)})

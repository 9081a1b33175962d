"""One cluster behind one port: which client does what, what its groups are called there, and its channel."""

import socket
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from migrate.commit_table import CommitTable
from migrate.described_group import ListedGroup
from migrate.errors import ClusterError, EnvironmentLacks
from migrate.kafka import group_facts
from migrate.kafka.cluster import MISSING, ByJava, KafkaCluster
from migrate.kafka.frames import receive, send
from migrate.kafka.settings import ClientSettings
from migrate.model import UNREAD_METADATA, Commit, Failure, GroupState, Side, TopicPartition
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.renamed import TargetNames
from tests.fakes import ALIVE, FakeCluster
from tests.unit.describedgroups import group, member

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)
NOT_HERE = Failure("UNSUPPORTED_BY_CLIENT", "not by this client")
NAMES = TargetNames({"orders": "orders-eu", "a": "b", "b": "a"})


class InMemory:
    """librdkafka's client, without a process and a broker."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster

    def read(self, method: str, *arguments: Any) -> Any:
        return getattr(self.cluster, method)(*arguments)

    call = read

    def renew(self) -> None:
        self.cluster.renewed()

    def holding(self, lock: int) -> "InMemory":
        return InMemory(self.cluster)


def cluster_of(fake: FakeCluster, java: Any = None, exact: Collection[str] | ByJava = (), facts: Any = None) -> Any:
    made: Any = KafkaCluster(ClientSettings(Side.TARGET, "B", "target B", {}), java=java, exact=exact)
    made.client, made._facts = InMemory(fake), lambda: facts
    return made


class FakeExact:
    """The exact client to the same cluster as another; `trouble` is raised by every call."""

    def __init__(self, usual: FakeCluster, trouble: Exception | None = None) -> None:
        self.cluster, self.trouble = FakeCluster(offsets=usual.offsets, states=usual.states), trouble
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(wanted: Collection[str] = (), *more: Any) -> Any:
            self.calls.append(f"{name} {','.join(wanted)}")
            if self.trouble:
                raise self.trouble
            return getattr(self.cluster, name)(wanted, *more)

        return call


def pair(trouble: Exception | None = None, groups: Collection[str] | ByJava = frozenset({"streams"})) -> Any:
    usual = FakeCluster(lacking=NOT_HERE)
    exact = FakeExact(usual, trouble)
    return cluster_of(usual, exact, groups), usual, exact


def test_nothing_that_the_usual_client_can_do_makes_the_other() -> None:
    admin, usual, exact = pair(EnvironmentLacks("Java was not found.", "Install it."))
    assert admin.alter({"plain": {P0: Commit(7)}}) == {"plain": {P0: None}}
    assert admin.renewed().commits(["plain"]) == {"plain": {P0: Commit(7)}}
    assert admin.delete_groups(["plain"]) == {"plain": None}
    assert not exact.calls and usual.clients == 2


def test_metadata_is_written_and_read_by_the_exact_client_and_the_rest_by_the_usual_one() -> None:
    admin, usual, exact = pair()
    wanted = {"streams": {P0: Commit(7, "t\x00"), P1: Commit(8)}, "plain": {P0: Commit(9)}}
    assert admin.alter(wanted) == {group: dict.fromkeys(commits) for group, commits in wanted.items()}
    assert admin.commits(["streams", "plain"]) == wanted
    assert exact.calls == ["alter streams", "commits streams"]
    assert usual.calls["alter"] == usual.calls["commits"] == 1


def test_the_usual_client_tells_only_that_there_is_metadata_and_the_exact_one_removes_single_offsets() -> None:
    admin, usual, exact = pair()
    usual.commit("plain", P0.topic, P0.partition, 7, "m with bytes of other memory")
    usual.commit("plain", P1.topic, P1.partition, 8)
    assert admin.commits(["plain"]) == {"plain": {P0: Commit(7, UNREAD_METADATA), P1: Commit(8)}}
    assert not exact.calls
    assert admin.delete_offsets({"plain": [P0]}) == {"plain": {P0: None}}
    assert usual.held("plain") == {P1: 8} and exact.calls == ["delete_offsets plain"]


def test_without_java_its_groups_fail_by_name_and_the_others_go_on() -> None:
    admin, _, _ = pair(EnvironmentLacks("Java was not found.", "Install it."))
    wanted = {"streams": {P0: Commit(7, "t")}, "plain": {P0: Commit(9)}}
    written = admin.alter(wanted)
    assert written["plain"] == {P0: None}
    failure = written["streams"][P0]
    assert (failure.code, failure.message) == (MISSING, "Java was not found. Install it")
    assert not failure.outcome_unknown
    assert admin.commits(["streams", "plain"]) == {"streams": failure, "plain": {P0: Commit(9)}}
    assert admin.delete_offsets({"g": [P1]}) == {"g": {P1: failure}}
    assert admin.missing_capability() == failure
    admin = cluster_of(FakeCluster(lacking=NOT_HERE))
    lack = admin.missing_capability()
    assert lack.code == "UNSUPPORTED_BY_CLIENT" and admin.hosted_topics() == lack
    assert admin.delete_offsets({"g": [P0]}) == {"g": {P0: lack}}


def test_java_reads_every_group_of_a_plan_and_of_others_once_more_those_that_turn_out_to_carry_metadata() -> None:
    admin, usual, exact = pair(groups=ByJava.EVERY)
    usual.commit("plain", P0.topic, P0.partition, 7)
    assert admin.commits(["plain"]) == {"plain": {P0: Commit(7)}}
    assert admin.commits([]) == {} and exact.calls == ["commits plain"] and not usual.calls["commits"]
    admin, usual, exact = pair(groups=ByJava.CARRYING)
    usual.commit("plain", P0.topic, P0.partition, 7)
    usual.commit("streams", P0.topic, P0.partition, 8, "m")
    assert admin.commits(["plain", "streams"]) == {"plain": {P0: Commit(7)}, "streams": {P0: Commit(8, "m")}}
    assert exact.calls == ["commits streams"]
    exact.trouble = ClusterError("B cannot be used by Kafka's Java client.", "Check its settings.")
    assert admin.commits(["plain", "streams"])["streams"] == {P0: Commit(8, UNREAD_METADATA)}


# --- other names on the target ----------------------------------------------------------------------------


@pytest.fixture
def fake() -> FakeCluster:
    made = FakeCluster()
    for offset, name in enumerate(("orders", "orders-eu", "a", "b", "plain"), 1):
        made.commit(name, P0.topic, P0.partition, offset)
    return made


def committed(cluster: FakeCluster, *groups: str) -> list[int | None]:
    return [cluster.held(group).get(P0) for group in groups]


def test_what_is_read_and_listed_is_the_targets_by_the_sources_names(fake: FakeCluster) -> None:
    fake.states["orders-eu"] = ALIVE
    admin = cluster_of(fake).named(NAMES)
    found = admin.commits(["orders", "a", "b", "plain"])
    assert {g: c[P0].offset for g, c in found.items()} == {"orders": 2, "a": 4, "b": 3, "plain": 5}
    assert admin.group_states(["orders", "plain"]) == {"orders": ALIVE, "plain": GroupState("Empty")}
    assert admin.groups() == {"orders", "a", "b", "plain"}
    del fake.offsets["orders-eu"], fake.states["orders-eu"]
    assert admin.groups() == {"a", "b", "plain"}, "none that merely has an old name"


def test_what_is_written_and_removed_is_under_the_targets_name_alone(fake: FakeCluster) -> None:
    java = FakeExact(fake)
    admin = cluster_of(fake, java).named(NAMES).renewed().holding(7)
    wanted = {"orders": {P0: Commit(20)}, "a": {P0: Commit(30, "m")}}
    assert admin.alter(wanted) == {"orders": {P0: None}, "a": {P0: None}}
    assert committed(fake, "orders", "orders-eu", "a", "b") == [1, 20, 3, 30]
    assert admin.delete_offsets({"b": [P0]}) == {"b": {P0: None}}
    assert committed(fake, "a", "b") == [None, 30]
    assert admin.delete_groups(["orders"]) == {"orders": None}
    assert "orders-eu" not in fake.offsets and committed(fake, "orders") == [1]
    assert java.calls == ["alter b", "delete_offsets a"]


def test_facts_of_groups_are_asked_by_the_targets_names(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def records(admin: Any, config: Any, groups: Collection[str], most: int | None, memory: Any) -> Any:
        return NOT_ASKED if most else {group: f"record of {group}" for group in groups}

    every = frozenset({"orders-eu"}), {"orders": ListedGroup("share", "share", NOT_ASKED)}
    monkeypatch.setattr(group_facts, "group_records", records)
    admin = cluster_of(fake, facts=SimpleNamespace(every_group=lambda read: every)).named(NAMES)
    assert admin.group_records(["orders", "plain"]) == {"orders": "record of orders-eu", "plain": "record of plain"}
    assert admin.group_records(["a"]) == {"a": "record of b"}
    assert admin.group_records(["a"], most=1) is NOT_ASKED
    assert admin.group_kinds() == {"orders": "consumer"}


def test_values_and_tables_arrive_as_they_were_sent_and_tables_share_their_partitions_again() -> None:
    odd, failed = b"g\xff".decode("utf-8", "surrogateescape"), Failure("X", "y", True, True)
    some = {TopicPartition("t\n,\x00", 1): Commit(7, "m\x00é", None), TopicPartition("u", 0): Commit(0, "", 3)}
    value = {
        odd: dict(some), "b": failed, "c": GroupState("Stable", 1, ("a@b",)), "d": group(member(orders=(0, 1))),
        "e": ListedGroup.unseen(Failure("X", "y")), "f": {TopicPartition("t", 1): None, TopicPartition("u", 0): failed},
    }  # fmt: skip
    tables = {"a": CommitTable.of(some), "b": failed, "c": CommitTable.of({}), "d": CommitTable.of(some)}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, value)
        send(ours, ("done", tables))
        assert receive(theirs) == value
        _, arrived = receive(theirs)
        assert arrived == tables == {"a": some, "b": failed, "c": {}, "d": some}
        assert [*map(id, arrived["a"])] == [*map(id, arrived["d"])]
        ours.close()
        with pytest.raises(EOFError):
            receive(theirs)

"""One cluster behind one port: which of its two clients does what, and what its groups are called there."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from migrate.described_group import ListedGroup
from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.kafka import group_facts
from migrate.kafka.cluster import MISSING, ByJava, KafkaCluster
from migrate.kafka.settings import ClientSettings
from migrate.model import UNREAD_METADATA, Commit, Commits, Failure, GroupState, Side, TopicPartition
from migrate.ports import Outcomes
from migrate.survey.cluster import JavaAdmin
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.renamed import TargetNames
from tests.fakes import ALIVE, FakeCluster

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


def cluster_of(
    fake: FakeCluster, java: JavaAdmin | None = None, exact: Collection[str] | ByJava = (), facts: Any = None
) -> KafkaCluster:
    made: Any = KafkaCluster(ClientSettings(Side.TARGET, "B", "target B", {}), java=java, exact=exact)
    made.client, made._facts = InMemory(fake), lambda: facts
    return made  # type: ignore[no-any-return]


@dataclass
class FakeExact:
    """The exact client to the same cluster; `trouble` is raised by every call."""

    cluster: FakeCluster
    trouble: MigrateError | None = None
    calls: list[str] = field(default_factory=list)

    def _called(self, call: str) -> None:
        self.calls.append(call)
        if self.trouble:
            raise self.trouble

    def prove(self) -> None:
        self._called("prove")

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        self._called(f"commits {','.join(groups)}")
        return self.cluster.commits(groups, require_stable)

    def alter(self, wanted: Mapping[str, Commits]) -> Outcomes:
        self._called(f"alter {','.join(wanted)}")
        return self.cluster.alter(wanted)

    def delete_offsets(self, wanted: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        self._called(f"delete {','.join(wanted)}")
        return self.cluster.delete_offsets(wanted)

    def hosted_topics(self) -> frozenset[str] | Failure:
        self._called("hosted topics")
        return frozenset({"secret"})


def pair(
    trouble: MigrateError | None = None, groups: Collection[str] | ByJava = frozenset({"streams"})
) -> tuple[KafkaCluster, FakeCluster, FakeExact]:
    usual = FakeCluster(lacking=NOT_HERE)
    exact = FakeExact(FakeCluster(offsets=usual.offsets, states=usual.states), trouble)
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


def test_of_metadata_that_the_usual_client_reads_only_that_there_is_some_is_told() -> None:
    admin, usual, exact = pair()
    usual.commit("plain", P0.topic, P0.partition, 7, "m with bytes of other memory")
    usual.commit("plain", P1.topic, P1.partition, 8)
    assert admin.commits(["plain"]) == {"plain": {P0: Commit(7, UNREAD_METADATA), P1: Commit(8)}}
    assert not exact.calls


def test_single_offsets_are_removed_by_the_exact_client() -> None:
    admin, usual, exact = pair()
    usual.commit("plain", "A.orders", 0, 1)
    usual.commit("plain", "A.orders", 1, 2)
    assert admin.delete_offsets({"plain": [P0]}) == {"plain": {P0: None}}
    assert usual.held("plain") == {("A.orders", 1): 2} and exact.calls == ["delete plain"]


def test_without_java_its_groups_fail_by_name_and_the_others_go_on() -> None:
    admin, _, _ = pair(EnvironmentLacks("Java was not found.", "Install it."))
    wanted = {"streams": {P0: Commit(7, "t")}, "plain": {P0: Commit(9)}}
    written = admin.alter(wanted)
    assert written["plain"] == {P0: None}
    failure = written["streams"][P0]
    assert failure is not None and failure.code == MISSING and not failure.outcome_unknown
    assert failure.message == "Java was not found. Install it"
    assert admin.commits(["streams", "plain"]) == {"streams": failure, "plain": {P0: Commit(9)}}
    assert admin.delete_offsets({"g": [P1]}) == {"g": {P1: failure}}
    assert admin.missing_capability() == failure


def test_without_java_metadata_and_single_removals_are_refused_by_name() -> None:
    admin = cluster_of(FakeCluster(lacking=NOT_HERE))
    lack = admin.missing_capability()
    assert lack is not None and lack.code == "UNSUPPORTED_BY_CLIENT" and admin.hosted_topics() == lack
    assert admin.delete_offsets({"g": [P0]}) == {"g": {P0: lack}}


def test_a_plan_reads_every_groups_commits_through_java_and_asks_it_for_none_in_vain() -> None:
    admin, usual, exact = pair(groups=ByJava.EVERY)
    usual.commit("plain", P0.topic, P0.partition, 7)
    assert admin.commits(["plain"]) == {"plain": {P0: Commit(7)}}
    assert admin.commits([]) == {} and exact.calls == ["commits plain"] and not usual.calls["commits"]


def test_groups_that_turn_out_to_carry_metadata_are_read_once_more_through_java() -> None:
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
    for offset, group in enumerate(("orders", "orders-eu", "a", "b", "plain"), 1):
        made.commit(group, P0.topic, P0.partition, offset)
    return made


def committed(cluster: FakeCluster, group: str) -> int | None:
    commit = cluster.offsets.get(group, {}).get(P0)
    return None if commit is None else commit.offset


def test_commits_and_states_are_those_of_the_targets_names(fake: FakeCluster) -> None:
    fake.states["orders-eu"] = ALIVE
    admin = cluster_of(fake).named(NAMES)
    asked = ["orders", "a", "b", "plain"]
    offsets = {g: c[P0].offset for g, c in admin.commits(asked).items() if not isinstance(c, Failure)}
    assert offsets == {"orders": 2, "a": 4, "b": 3, "plain": 5}
    states = admin.group_states(["orders", "plain"])
    assert (states["orders"], states["plain"]) == (ALIVE, GroupState("Empty"))


def test_what_is_written_and_removed_is_under_the_targets_name_alone(fake: FakeCluster) -> None:
    java = FakeExact(FakeCluster(offsets=fake.offsets, states=fake.states))
    admin = cluster_of(fake, java).named(NAMES).renewed().holding(7)
    wanted = {"orders": {P0: Commit(20)}, "a": {P0: Commit(30, "m")}}
    assert admin.alter(wanted) == {"orders": {P0: None}, "a": {P0: None}}
    assert [committed(fake, g) for g in ("orders", "orders-eu", "a", "b")] == [1, 20, 3, 30]
    assert admin.delete_offsets({"b": [P0]}) == {"b": {P0: None}}
    assert [committed(fake, g) for g in ("a", "b")] == [None, 30]
    assert admin.delete_groups(["orders"]) == {"orders": None}
    assert "orders-eu" not in fake.offsets and committed(fake, "orders") == 1
    assert java.calls == ["alter b", "delete a"]


def test_a_listing_has_the_sources_names_and_no_group_that_merely_has_an_old_one(fake: FakeCluster) -> None:
    admin = cluster_of(fake).named(NAMES)
    assert admin.groups() == {"orders", "a", "b", "plain"}
    del fake.offsets["orders-eu"], fake.states["orders-eu"]
    assert admin.groups() == {"a", "b", "plain"}


def test_facts_of_groups_are_asked_by_the_targets_names(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def records(admin: Any, config: Any, groups: Collection[str], most: int | None, memory: Any) -> Any:
        return NOT_ASKED if most else {group: f"record of {group}" for group in groups}

    class Facts:
        def every_group(self, read: Any) -> Any:
            return frozenset({"orders-eu"}), {"orders": ListedGroup("share", "share", NOT_ASKED)}

    monkeypatch.setattr(group_facts, "group_records", records)
    admin = cluster_of(fake, facts=Facts()).named(NAMES)
    assert admin.group_records(["orders", "plain"]) == {"orders": "record of orders-eu", "plain": "record of plain"}
    assert admin.group_records(["a"]) == {"a": "record of b"}
    assert admin.group_records(["a"], most=1) is NOT_ASKED
    assert admin.group_kinds() == {"orders": "consumer"}

"""The `groups` commands on a real broker with groups of every kind, judged cell by cell by Kafka's own tools."""

import csv
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    ResourceType,
)

from tests.integration.cli import CommandLine
from tests.integration.clusters import CALL_SECONDS, QUIET, commit, create_topic, denied, groups_on, member
from tests.integration.members import member_of_kip_848, share_consumer, share_group_without_members, stay_and_leave
from tests.integration.rawmember import RawMember, commit_without_offset, member_with_assignor
from tests.lab.cluster import Cluster
from tests.lab.process import java_command
from tests.lab.waiting import wait_until

GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
GROUPS_COMMAND = "org.apache.kafka.tools.GroupsCommand"
RECORDS = {"orders": 30, "pay": 8, "clicks": 5, "open": 6, "shop-store-changelog": 1}
OPEN = 4
TOOL_SECONDS = 120.0
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@dataclass(frozen=True)
class Scene:
    """One cluster with all these groups, and a command line that has it on both sides."""

    cluster: Cluster
    command: CommandLine

    def tool(self, java_class: str, *arguments: str) -> list[list[str]]:
        """The lines of one of Kafka's tools, as words."""
        return [line.split() for line in self._said(java_class, *arguments).splitlines() if line.strip()]

    def _said(self, java_class: str, *arguments: str) -> str:
        words = java_command(self.cluster.jars, java_class, "--bootstrap-server", self.cluster.bootstrap, *arguments)
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=TOOL_SECONDS).stdout

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """What a `groups` command prints as CSV; a share group is not visible, so that all of them exit 1.

        Without the apostrophe that stands before a formula: one random member id in 64 begins with a plus sign.
        """
        text = self.command.run("groups", *arguments, *self.command.clusters, "--format", "csv").expect(1).stdout
        return [{name: cell.removeprefix("'") for name, cell in row.items()} for row in csv.DictReader(StringIO(text))]

    def document(self, *arguments: str) -> dict[str, Any]:
        """What a `groups` command prints as JSON."""
        ran = self.command.run("groups", *arguments, *self.command.clusters, "--format", "json")
        return dict(json.loads(ran.expect(1).stdout))


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {group["group"]: group for group in document["groups"]}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("inventory")
    cluster = Cluster("inventory", folder / "kafka", overrides=AUTHORIZER)
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        cluster.start()
        for topic, partitions in {"orders": 3, "pay": 2, "clicks": 1, "open": 1, "shop-store-changelog": 1}.items():
            create_topic(cluster.bootstrap, topic, partitions)
        produce(cluster.bootstrap)
        stack.callback(open_transaction(cluster.bootstrap).abort_transaction, CALL_SECONDS)
        populate(cluster, stack)
        (folder / "client.properties").write_text(f"bootstrap.servers={cluster.bootstrap}\n")
        file = str(folder / "client.properties")
        options = ("--source-config", file, "--target-config", file, "--source", "A", "--target", "B")
        yield Scene(cluster, CommandLine(folder, options, warm=True))


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "sticky.partitioning.linger.ms": 0, **QUIET})
    for topic, count in RECORDS.items():
        for number in range(count):
            producer.produce(topic, f"r{number}", key=str(number))
    assert producer.flush(CALL_SECONDS) == 0


def open_transaction(bootstrap: str) -> Producer:
    """A transaction that stays open: the last stable offset is before its records, the high watermark behind them."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "held-open", "transaction.timeout.ms": 900_000, **QUIET}
    )
    producer.init_transactions(CALL_SECONDS)
    producer.begin_transaction()
    for number in range(OPEN):
        producer.produce("open", f"open-{number}")
    assert producer.flush(CALL_SECONDS) == 0
    return producer


def populate(cluster: Cluster, stack: ExitStack) -> None:
    bootstrap = cluster.bootstrap
    stay_and_leave(bootstrap, "left", "pay")
    whole: dict[tuple[str, int], int] = {("orders", 0): 1, ("orders", 1): 2, ("orders", 2): 3}
    commits: dict[str, dict[tuple[str, int], int]] = {
        "simple": whole, "partial": {("orders", 0): 1}, "live": {("orders", 0): 1, ("pay", 1): 0},
        "beyond": {("clicks", 0): 99}, "in-transaction": {("open", 0): 2}, "rebalancing": {("orders", 1): 2},
        "kip-848": {("pay", 0): 1}, "connect-sink": {("clicks", 0): 1}, "_vendor": {("clicks", 0): 5},
        "shop": {("clicks", 0): 0},
    }  # fmt: skip
    commit(bootstrap, commits)
    for offset in (0, 2, 4):
        commit(bootstrap, {"paced": {("orders", 0): offset}})
    commit_without_offset(bootstrap, "without-offset", "clicks")
    commit(bootstrap, {"half-without": {("pay", 0): 1}})
    commit_without_offset(bootstrap, "half-without", "clicks")
    stack.enter_context(member(bootstrap, "live", "orders"))
    stack.enter_context(member_with_assignor(bootstrap, "spare", "orders", "range"))
    stack.enter_context(member_of_kip_848(bootstrap, "kip-848", "pay"))
    stack.enter_context(share_consumer(cluster.jars, bootstrap, "sharers", "clicks"))
    share_group_without_members(cluster.jars, bootstrap, "sharers-to-be", "clicks")
    worker = RawMember(bootstrap, "connect-workers", "worker", protocol_type="connect")
    stack.callback(worker.close)
    wait_until(lambda: worker.join("clicks", "sessioned"), CALL_SECONDS, "a Connect worker's group")
    hold_rebalancing(bootstrap, stack)


def hold_rebalancing(bootstrap: str, stack: ExitStack) -> None:
    """A group whose first member does not come back when a second joins, and one whose leader hands out nothing."""
    first, second, leader = (RawMember(bootstrap, group) for group in ("rebalancing", "rebalancing", "completing"))
    for one in (first, second, leader):
        stack.callback(one.close)
    wait_until(lambda: first.join("orders", "range"), CALL_SECONDS, "the first member")
    second.ask_to_join("orders", "range")
    assert second.take_joined()
    second.ask_to_join("orders", "range")

    def has_joined() -> bool:
        leader.ask_to_join("orders", "range")
        return leader.take_joined()

    for _ in range(2):  # the first answer gives the member its id
        wait_until(has_joined, CALL_SECONDS, "a leader")


def test_every_partition_is_described_as_kafka_describes_it_cell_by_cell(scene: Scene) -> None:
    ours = [[row[field] or "-" for field in row] for row in scene.rows("describe", "--all-groups")]
    theirs = [words for words in scene.tool(GROUP_COMMAND, "--describe", "--all-groups") if words[0] in groups(scene)]
    assert sorted(ours) == sorted(theirs) and len(theirs) > 15
    assert ["in-transaction", "open", "0", "2", "10", "8", "-", "-", "-"] in ours
    assert ["without-offset", "clicks", "0", "-", "5", "-", "-", "-", "-"] in ours


def test_members_that_kafka_lists_with_no_partition_are_idle(scene: Scene) -> None:
    described = scene.document("describe", "--all-groups")["groups"]
    idle = {g["group"]: g["idle_members"] for g in described if g["idle_members"] is not None}
    told = scene.tool(GROUP_COMMAND, "--describe", "--all-groups", "--members")
    theirs = {(words[0], words[1]) for words in told if words[0] in idle and words[4] == "0"}
    assert {(group, each["consumer_id"]) for group, found in idle.items() for each in found} == theirs
    assert {group for group, _ in theirs} == {"spare"} and {"live", "kip-848"} <= idle.keys()
    assert not {"rebalancing", "completing", "connect-workers"} & idle.keys()


def test_groups_with_members_and_lag_that_commit_nothing_have_stalled(scene: Scene) -> None:
    stalled = [row["group"] for row in scene.rows("list", "--stalled", "1s") if "stalled" in row["attention"].split()]
    assert stalled == ["kip-848", "live", "rebalancing"]


def test_every_group_of_any_kind_is_listed_in_the_state_and_at_the_coordinator_that_kafka_tells(scene: Scene) -> None:
    ours = {row["group"]: row for row in scene.rows("list")}
    told = scene.tool(GROUP_COMMAND, "--describe", "--all-groups", "--state")
    states = {words[0]: words[1:] for words in told if words[0] in groups(scene)}
    assert {state for *_, state, _ in states.values()} == {
        "Empty", "Stable", "PreparingRebalance", "CompletingRebalance",
    }  # fmt: skip
    for group, (address, broker, assignor, state, members) in states.items():
        row = ours[group]
        assert [row["coordinator"], row["assignor"] or "-", row["state"], row["members"]] == [
            f"{address} {broker}", assignor, state, members,
        ]  # fmt: skip
    listed = [words for words in scene.tool(GROUPS_COMMAND, "--list") if words[0] != "GROUP"]
    theirs = {words[0]: (words[1].lower(), words[2] if len(words) > 2 else "") for words in listed}
    kinds = {group: (row["kind"], row["protocol_type"]) for group, row in ours.items()}
    assert kinds == theirs and kinds["connect-workers"] == ("classic", "connect")
    assert {kind for kind, _ in kinds.values()} == {"classic", "consumer", "share"}


def test_lag_and_attention_say_what_is_known_and_never_0_for_what_is_not(scene: Scene) -> None:
    found = by_name(scene.document("list"))
    described = [words for words in scene.tool(GROUP_COMMAND, "--describe", "--all-groups") if words[0] in found]
    for group in ("simple", "partial", "live", "in-transaction", "rebalancing", "left", "shop"):
        assert found[group]["lag"] == sum(int(words[5]) for words in described if words[0] == group and words[5] != "-")
        assert found[group]["not_visible"] == {}
    assert (found["beyond"]["lag"], found["beyond"]["lag_partitions_unknown"]) == (None, 1)
    attention = {
        "simple": [], "partial": ["never-committed-partitions"], "live": ["alive", "never-committed-partitions"],
        "beyond": ["commit-beyond-log-end"], "shop": ["streams"], "connect-sink": ["connect-sink"],
        "_vendor": ["vendor-internal"], "connect-workers": ["alive"],
    }  # fmt: skip
    assert {group: found[group]["attention"] for group in attention} == attention
    for group in ("sharers", "sharers-to-be"):
        assert found[group]["attention"] == ["not-visible"]
        assert (found[group]["kind"], found[group]["state"], found[group]["lag"]) == ("share", None, None)


def test_the_groups_own_records_tell_when_they_were_last_used(scene: Scene) -> None:
    document = scene.document("list", "--records")
    found = by_name(document)
    now_ms, week_ms = document["time_ms"], 7 * 86_400_000
    for group in ("simple", "left", "live", "kip-848", "paced", "in-transaction", "without-offset"):
        assert now_ms - 900_000 < found[group]["last_commit_ms"] <= now_ms, group
    # offsets.retention.minutes is a week by default: of each offset of a simple group, of a classic one as a whole.
    assert found["simple"]["expires_ms"] - week_ms <= found["simple"]["last_commit_ms"]
    assert found["left"]["expires_ms"] == found["left"]["empty_since_ms"] + week_ms
    assert found["live"]["expires_ms"] is None and found["live"]["empty_since_ms"] is None
    assert found["paced"]["records_between_commits"] == 2
    assert 0 <= found["paced"]["seconds_between_commits"] < 900
    assert found["simple"]["records_between_commits"] is None
    assert not any("idle" in group["attention"] for group in document["groups"])


def group_until(scene: Scene, name: str, seen: Callable[[dict[str, Any]], bool], *options: str) -> dict[str, Any]:
    """What is told of a group once that holds: a broker learns of an ACL a moment after it was made."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        document = scene.document("list", *options)
        found.append({"of_all": document["not_visible"], **by_name(document)[name]})
        return seen(found[-1])

    wait_until(look, CALL_SECONDS, f"{name} to be forbidden")
    return found[-1]


def test_what_may_not_be_read_is_not_visible_with_the_reason_and_no_group_is_idle(scene: Scene) -> None:
    bootstrap = scene.cluster.bootstrap
    with denied(bootstrap, ResourceType.GROUP, "simple", AclOperation.DESCRIBE):
        found = group_until(scene, "simple", lambda group: bool(group["not_visible"]))
    assert "GROUP_AUTHORIZATION_FAILED" in found["not_visible"]["lag"] and "not-visible" in found["attention"]
    assert all(found[field] is None for field in ("lag", "state", "members", "topics", "partitions_committed"))
    with denied(bootstrap, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE):
        found = group_until(scene, "simple", lambda group: bool(group["of_all"]))
    assert "may not DESCRIBE" in found["of_all"][0]
    with denied(bootstrap, ResourceType.TOPIC, "__consumer_offsets", AclOperation.READ):
        kindless = group_until(scene, "sharers", lambda group: group["kind"] is None)
        simple = group_until(scene, "simple", lambda group: group["last_commit_ms"] is None, "--records")
    assert "__consumer_offsets was not read: " in kindless["not_visible"]["kind"] and kindless["lag"] is None
    assert "TOPIC_AUTHORIZATION_FAILED" in simple["not_visible"]["last_commit_ms"]
    assert "not-visible" in simple["attention"] and "idle" not in simple["attention"]


def groups(scene: Scene) -> frozenset[str]:
    return groups_on(scene.cluster.bootstrap)

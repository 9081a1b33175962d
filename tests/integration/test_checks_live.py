"""What goes wrong in cutovers, all at once on real clusters: each is found, with what to do; mended, all is well."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from migrate.survey.offsets_topic import partition_of
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    READ_SECONDS,
    admin,
    commit,
    create_topic,
    member,
    partitions_of,
)
from tests.integration.members import (
    member_of_kip_848,
    share_consumer,
    share_group_without_members,
    stay_and_leave,
)
from tests.integration.rawmember import member_with_assignor
from tests.integration.scene import Scene
from tests.lab.cluster import OFFSETS_PARTITIONS
from tests.lab.fixtures import own_clusters_only
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

# New groups have just the 2 hours that apply asks for; one that is empty already has less.
RETENTION_MINUTES = 120
MM2_LINES = {
    "A->B.groups.exclude": "left-out-.*, connect-.*",
    "A->B.topics.exclude": r"mm2.*\.internal, __.*, .*-repartition",
}


@dataclass(frozen=True, repr=False)
class Night:
    """The plan that was made amid all troubles, the one with MM2's group sync on, and those after mending."""

    scene: Scene
    commands: CommandLine
    troubled: Ran
    document: dict[str, Any]
    synced: Ran
    synced_document: dict[str, Any]
    mended: Ran
    mended_document: dict[str, Any]
    dry_run: Ran
    synced_dry_run: Ran
    applied: Ran

    def of(self, check: str) -> dict[str, dict[str, Any]]:
        return results(self.document, check)

    def group(self, name: str) -> str:
        return self.scene.group(name)


def results(document: dict[str, Any], check: str) -> dict[str, dict[str, Any]]:
    return {c["subject"]: c for c in document["checks"] if c["check"] == check}


@pytest.fixture(scope="module")
def own_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    own_clusters_only()
    options = MirrorOptions(policy="identity", extra=MM2_LINES)
    retention = {"offsets.retention.minutes": str(RETENTION_MINUTES)}
    with Lab(tmp_path_factory.mktemp("checks"), mirror=options, target_overrides=retention) as lab:
        yield lab


@contextmanager
def open_transaction(bootstrap: str, name: str, topic: str, group: str, read: str) -> Iterator[None]:
    """A transaction that has written to `topic`, and holds an offset of `group` on `read`; it is aborted at the end."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000, **QUIET}
    )
    try:
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        producer.produce(topic, b"open")
        producer.flush(CALL_SECONDS)
        offsets = [TopicPartition(read, 0, 11)]
        producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), CALL_SECONDS)
        yield
        producer.abort_transaction(CALL_SECONDS)
    finally:
        reader.close()


@contextmanager
def assigned_reader(bootstrap: str, group: str, topic: str) -> Iterator[None]:
    """Somebody who commits for a group and never joins it."""
    ends = threading.Event()

    def go_on() -> None:
        offset = 10
        while not ends.wait(0.3):
            offset += 1
            commit(bootstrap, {group: {(topic, 0): offset}})

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def beside(group: str, name: str) -> str:
    """A group whose records lie beside those of `group` in the offsets topic: its transaction hides newer ones."""
    where = partition_of(group, OFFSETS_PARTITIONS)
    return next(other for n in count() if partition_of(other := f"{name}-{n}", OFFSETS_PARTITIONS) == where)


def add_partition(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    client.create_partitions([NewPartitions(topic, 2)])[topic].result(CALL_SECONDS)
    wait_until(lambda: len(partitions_of(bootstrap, [topic])) == 2, CALL_SECONDS, f"a second partition of {topic}")


def delete_group(bootstrap: str, group: str) -> None:
    client = admin(bootstrap)
    client.delete_consumer_groups([group])[group].result(CALL_SECONDS)


@pytest.fixture(scope="module")
def night(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Night:
    lab, scene = own_lab, Scene(own_lab, "night", new_seed())
    source, target = lab.source_bootstrap, lab.target_bootstrap
    group = scene.group
    pool, small, tx, local = (scene.create(name, 1) for name in ("pool", "small", "tx", "local"))
    app = group("app")
    pending = beside(group("sharers"), group("pending"))
    for topic in (f"{app}-store-changelog", f"{app}-by-key-repartition"):
        create_topic(source, topic, 1)
    scene.write(scene.partitions, 400)
    scene.write([(pool, 0)], 2000)
    scene.wait_replicated()
    stay_and_leave(target, group("ran-out"), pool)
    share_group_without_members(lab.jars, source, group("sharers-to-be"), pool)
    scene.write_locally([(local, 0)], 5)
    on_pool = ("steady", "kip-848", "joined", "left-out", "ran-out", "app", "moving")
    scene.commit({group(name): {(pool, 0): 10} for name in on_pool} | {pending: {(pool, 0): 10}})
    scene.commit({f"connect-{scene.suffix}": {(pool, 0): 10}})
    for name, topic in (("in-small", small), ("in-tx", tx), ("in-local", local)):
        scene.commit({group(name): {(topic, 0): 10}})
    # MM2 makes no checkpoint of a commit that lies below the first sync it knows of: this one lies at the end.
    scene.commit({group("steady"): {(pool, 0): scene.source_ends()[pool, 0][1]}})
    lab.mirror.wait_checkpoints([group("steady")])
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("night"))
    chosen = ("--group", f".*{scene.suffix}", "--group", pending)
    with ExitStack() as troubles:
        lab.mirror.pause()
        troubles.callback(lab.mirror.resume)
        add_partition(source, small)
        for trouble in (
            member_of_kip_848(source, group("kip-848"), pool),
            member(target, group("joined"), pool),
            member_with_assignor(source, app, pool, "stream"),
            share_consumer(lab.jars, source, group("sharers"), pool),
            open_transaction(source, group("tx"), tx, pending, pool),
            assigned_reader(source, group("moving"), pool),
        ):
            troubles.enter_context(trouble)
        troubled = commands.plan("troubled.plan", *chosen)
    left = f"--exclude-group=sharers(-to-be)?-{scene.suffix}"
    delete_group(target, group("ran-out"))
    wait_until(lambda: len(partitions_of(target, [small])) == 2, READ_SECONDS, f"MM2 to add a partition to {small}")
    scene.wait_replicated(compare_last=False)
    synced_file = commands.folder / "synced.properties"
    synced_file.write_text(lab.mm2_properties.read_text() + "\nA->B.sync.group.offsets.enabled = true\n")
    synced = commands.against("--mm2-config", str(synced_file), "--source", "A", "--target", "B")
    with_sync = synced.plan("synced.plan", *chosen, left, "--no-match")
    mended = commands.plan("mended.plan", *chosen, left)
    return Night(
        scene=scene,
        commands=commands,
        troubled=troubled,
        document=commands.document("troubled.plan"),
        synced=with_sync,
        synced_document=commands.document("synced.plan"),
        mended=mended,
        mended_document=commands.document("mended.plan"),
        dry_run=commands.apply("mended.plan"),
        synced_dry_run=synced.apply("mended.plan"),
        applied=commands.execute("mended.plan"),
    )


def test_a_night_of_troubles_is_refused(night: Night) -> None:
    night.troubled.expect(3)
    decisions = {row["group"]: row["decision"] for row in night.document["rows"]}
    fine = {night.group(name) for name in ("steady", "left-out", "moving", "in-local")} | {
        f"connect-{night.scene.suffix}"
    }
    assert {group for group, decision in decisions.items() if decision != "block"} == fine, str(night.troubled)


def blocked_by(night: Night, check: str, subject: str, *words: str) -> None:
    found = night.of(check)[subject]
    assert found["counts_as"] == "block" and found["todo"], found
    for word in words:
        assert word in found["seen"], found


def warned_by(night: Night, check: str, subject: str, *words: str) -> None:
    found = night.of(check)[subject]
    assert found["level"] == "warn" and found["todo"], found
    for word in words:
        assert word in found["seen"], found


def test_a_group_of_kip_848_that_is_alive_on_the_source_blocks(night: Night) -> None:
    blocked_by(night, "source-group-stopped", night.group("kip-848"), "KIP-848", "1 member", "@127.0.0.1")
    assert all(c["level"] == "pass" for c in night.of("group-protocol").values()), "a target of 4.x serves it"


def test_a_group_that_is_alive_on_the_target_blocks(night: Night) -> None:
    blocked_by(night, "target-group-empty", night.group("joined"), "Stable on B with 1 member")


def test_offsets_that_retention_is_about_to_take_block_with_the_date_and_time(night: Night) -> None:
    blocked_by(
        night, "offsets-expiry", night.group("ran-out"), "must be back on B by 20", "UTC", "2 hours", "empty there"
    )
    steady = night.of("offsets-expiry")[night.group("steady")]
    assert steady["level"] == "warn" and "if the offsets are set at" in steady["seen"]


def test_a_smaller_target_topic_blocks(night: Night) -> None:
    blocked_by(night, "target-partitions", night.scene.topic("small"), "it has 1")


def test_an_open_transaction_blocks_the_topic_that_it_writes_to_and_the_group_whose_offset_it_holds(
    night: Night,
) -> None:
    blocked_by(night, "not-drained", night.scene.topic("tx"), "transaction is open")
    (group,) = night.of("pending-transactions")
    blocked_by(night, "pending-transactions", group, "pending")


@pytest.mark.parametrize("name", ["sharers", "sharers-to-be"])
def test_a_share_group_blocks_whether_it_was_ever_joined_or_not(night: Night, name: str) -> None:
    blocked_by(night, "share-group", night.group(name), "KIP-932")


def test_a_streams_application_is_named_by_its_assignor_and_its_internal_topics(night: Night) -> None:
    app = night.group("app")
    warned_by(
        night, "kafka-streams", app, "assignor stream", "internal topics", f"not copied: {app}-by-key-repartition"
    )
    assert f"used as they are on the target: {app}-store-changelog" in night.of("kafka-streams")[app]["seen"]
    blocked_by(night, "source-group-stopped", app, "1 member")


def test_groups_that_mm2_leaves_out_and_connect_sinks_are_named(night: Night) -> None:
    connect = f"connect-{night.scene.suffix}"
    assert set(night.of("mm2-group-filter")) == {night.group("left-out"), connect}
    warned_by(night, "connect-sink", connect, "the Connect sink in its name")


def test_commits_that_move_without_a_member_are_named(night: Night) -> None:
    warned_by(night, "commits-moving", night.group("moving"), "pool-", "to")


def test_a_local_writer_on_a_replica_of_the_same_name_is_named(night: Night) -> None:
    warned_by(night, "target-topic-dedicated", night.scene.topic("local"), "5 records")
    named = {subject for subject, c in night.of("target-topic-dedicated").items() if c["level"] == "warn"}
    assert named == {night.scene.topic("local")}


def test_mm2s_group_sync_blocks_the_groups_that_it_touches(night: Night) -> None:
    night.synced.expect(3)
    found = results(night.synced_document, "group-sync")
    assert night.group("steady") in found and night.group("left-out") not in found
    assert all(c["counts_as"] == "block" and "KAFKA-19794" in c["seen"] for c in found.values())


def test_with_all_of_it_mended_the_plan_is_clean_and_apply_says_by_when_consumers_must_be_back(night: Night) -> None:
    night.mended.expect(0)
    assert all(c["counts_as"] != "block" for c in night.mended_document["checks"])
    for ran in (night.dry_run, night.applied):
        assert "consumers must be back on B by 20" in " ".join(ran.expect(0).stdout.split())


def test_a_group_sync_that_was_switched_on_after_the_plan_stops_apply(night: Night) -> None:
    told = night.synced_dry_run.expect(3).stdout
    assert f"{night.group('steady')}: group-sync: expected sync.group.offsets.enabled=false" in " ".join(told.split())

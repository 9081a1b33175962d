"""What goes wrong in cutovers, all at once on real clusters: each is found, with what to do; mended, all is well."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

from migrate.survey.offsets_topic import partition_of
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import (
    CALL_SECONDS,
    READ_SECONDS,
    admin,
    commit,
    create_topic,
    delete_groups,
    member,
    partitions_of,
)
from tests.integration.members import (
    member_of_kip_848,
    share_consumer,
    share_group_without_members,
    stay_and_leave,
)
from tests.integration.offsetsrecords import sent_in_transaction
from tests.integration.rawmember import member_with_assignor
from tests.integration.repeated import again_and_again
from tests.integration.scene import Scene
from tests.lab.cluster import OFFSETS_PARTITIONS
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
    troubled: Ran
    document: dict[str, Any]
    synced_document: dict[str, Any]
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
    options = MirrorOptions(policy="identity", extra=MM2_LINES)
    retention = {"offsets.retention.minutes": str(RETENTION_MINUTES)}
    with Lab(tmp_path_factory.mktemp("checks"), mirror=options, target_overrides=retention) as lab:
        yield lab


def beside(group: str, name: str) -> str:
    """A group whose records lie beside those of `group` in the offsets topic: its transaction hides newer ones."""
    where = partition_of(group, OFFSETS_PARTITIONS)
    return next(other for n in count() if partition_of(other := f"{name}-{n}", OFFSETS_PARTITIONS) == where)


def add_partition(bootstrap: str, topic: str) -> None:
    client = admin(bootstrap)
    client.create_partitions([NewPartitions(topic, 2)])[topic].result(CALL_SECONDS)
    wait_until(lambda: len(partitions_of(bootstrap, [topic])) == 2, CALL_SECONDS, f"a second partition of {topic}")


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
    chosen, offsets = ("--group", f".*{scene.suffix}", "--group", pending), count(11)
    with ExitStack() as troubles:
        lab.mirror.pause()
        troubles.callback(lab.mirror.resume)
        add_partition(source, small)
        for trouble in (
            member_of_kip_848(source, group("kip-848"), pool),
            member(target, group("joined"), pool),
            member_with_assignor(source, app, pool, "stream"),
            share_consumer(lab.jars, source, group("sharers"), pool),
            # Somebody who commits for a group and never joins it.
            again_and_again(lambda: commit(source, {group("moving"): {(pool, 0): next(offsets)}}), 0.3),
        ):
            troubles.enter_context(trouble)
        producer = troubles.enter_context(sent_in_transaction(source, pending, pool))
        troubles.callback(producer.abort_transaction, CALL_SECONDS)
        producer.produce(tx, b"open")
        assert producer.flush(CALL_SECONDS) == 0
        troubled = commands.plan("troubled.plan", *chosen)
    left = f"--exclude-group=sharers(-to-be)?-{scene.suffix}"
    delete_groups(target, [group("ran-out")])
    wait_until(lambda: len(partitions_of(target, [small])) == 2, READ_SECONDS, f"MM2 to add a partition to {small}")
    scene.wait_replicated(compare_last=False)
    synced_file = commands.folder / "synced.properties"
    synced_file.write_text(lab.mm2_properties.read_text() + "\nA->B.sync.group.offsets.enabled = true\n")
    synced = commands.against("--mm2-config", str(synced_file), "--source", "A", "--target", "B")
    synced.plan("synced.plan", *chosen, left, "--no-match").expect(3)
    commands.plan("mended.plan", *chosen, left).expect(0)
    return Night(
        scene=scene,
        troubled=troubled.expect(3),
        document=commands.document("troubled.plan"),
        synced_document=commands.document("synced.plan"),
        mended_document=commands.document("mended.plan"),
        dry_run=commands.apply("mended.plan"),
        synced_dry_run=synced.apply("mended.plan"),
        applied=commands.execute("mended.plan"),
    )


def test_a_night_of_troubles_blocks_all_that_it_touches_and_nothing_else(night: Night) -> None:
    decisions = {row["group"]: row["decision"] for row in night.document["rows"]}
    fine = {night.group(name) for name in ("steady", "left-out", "moving", "in-local")}
    fine.add(f"connect-{night.scene.suffix}")
    assert {group for group, decision in decisions.items() if decision != "block"} == fine, str(night.troubled)


@pytest.mark.parametrize(
    ("check", "name", "counts_as", "words"),
    [
        ("source-group-stopped", "kip-848", "block", ("KIP-848", "1 member", "@127.0.0.1")),
        ("source-group-stopped", "app", "block", ("1 member",)),
        ("target-group-empty", "joined", "block", ("Stable on B with 1 member",)),
        ("offsets-expiry", "ran-out", "block", ("must be back on B by 20", "UTC", "2 hours", "empty there")),
        ("offsets-expiry", "steady", "warn", ("if the offsets are set at",)),
        ("target-partitions", "small", "block", ("it has 1",)),
        ("not-drained", "tx", "block", ("transaction is open",)),
        ("share-group", "sharers", "block", ("KIP-932",)),
        ("share-group", "sharers-to-be", "block", ("KIP-932",)),
        # By its assignor and its internal topics.
        ("kafka-streams", "app", "warn", ("assignor stream", "internal topics", "not copied: {app}-by-key-repartition",
                                          "used as they are on the target: {app}-store-changelog")),
        ("connect-sink", "connect", "warn", ("the Connect sink in its name",)),
        ("commits-moving", "moving", "warn", ("pool-", "to")),
        ("target-topic-dedicated", "local", "warn", ("5 records",)),
    ],
)  # fmt: skip
def test_each_trouble_is_found_with_what_to_do(
    night: Night, check: str, name: str, counts_as: str, words: tuple[str, ...]
) -> None:
    found = night.of(check)[f"{name}-{night.scene.suffix}"]
    assert found["counts_as"] == counts_as and found["todo"], found
    for word in words:
        assert word.format(app=night.group("app")) in found["seen"], found


def test_what_is_named_is_all_that_there_is(night: Night) -> None:
    assert all(c["level"] == "pass" for c in night.of("group-protocol").values()), "a target of 4.x serves KIP-848"
    (pending,) = night.of("pending-transactions").values()
    assert pending["counts_as"] == "block" and pending["todo"] and "pending" in pending["seen"]
    assert set(night.of("mm2-group-filter")) == {night.group("left-out"), f"connect-{night.scene.suffix}"}
    shared = {subject for subject, c in night.of("target-topic-dedicated").items() if c["level"] == "warn"}
    assert shared == {night.scene.topic("local")}


def test_mm2s_group_sync_blocks_the_groups_that_it_touches(night: Night) -> None:
    found = results(night.synced_document, "group-sync")
    assert night.group("steady") in found and night.group("left-out") not in found
    assert all(c["counts_as"] == "block" and "KAFKA-19794" in c["seen"] for c in found.values())


def test_with_all_of_it_mended_the_plan_is_clean_and_apply_says_by_when_consumers_must_be_back(night: Night) -> None:
    assert all(c["counts_as"] != "block" for c in night.mended_document["checks"])
    for ran in (night.dry_run, night.applied):
        assert "consumers must be back on B by 20" in " ".join(ran.expect(0).stdout.split())


def test_a_group_sync_that_was_switched_on_after_the_plan_stops_apply(night: Night) -> None:
    told = night.synced_dry_run.expect(3).stdout
    assert f"{night.group('steady')}: group-sync: expected sync.group.offsets.enabled=false" in " ".join(told.split())

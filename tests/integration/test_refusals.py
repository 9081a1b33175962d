"""What a careful tool refuses, on real clusters: each with the reason, and nothing written."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import (
    CALL_SECONDS,
    AnyLab,
    Commits,
    admin,
    commit,
    commits_on,
    delete_groups,
    groups_on,
    member,
    topic_id,
)
from tests.integration.scene import Scene
from tests.lab.ports import free_ports
from tests.lab.waiting import wait_until

PLAN = "cutover.plan"
GROUPS = ("joins", "steady", "source-moves", "target-moves", "fated", "reborn")
LIVE = ("live-target", "live-source", "live-accepted")
SOON = ("--request-timeout", "3")


@pytest.fixture(scope="module")
def small(lab: AnyLab) -> Scene:
    """Three topics of 2 partitions, copied and quiet, and a few groups in the middle of them."""
    scene = Scene(lab, "small", seed=1)
    pool, fated, reborn = scene.create("pool", 2), scene.create("fated", 2), scene.create("reborn", 2)
    for topic in (pool, fated, reborn):
        scene.write_synced_early([(topic, 0), (topic, 1)], 400)
    scene.wait_replicated()
    for name in (*GROUPS, *LIVE):
        topic = {"fated": fated, "reborn": reborn}.get(name, pool)
        scene.commit({scene.group(name): {(topic, 0): 100, (topic, 1): 150}})
    lab.mirror.wait_checkpoints([scene.group(name) for name in (*GROUPS, *LIVE)])
    return scene


@pytest.fixture(scope="module")
def clean_plan(lab: AnyLab, small: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of all the groups that are stopped on both sides; nothing stands in its way."""
    folder = tmp_path_factory.mktemp("clean")
    names = "|".join(GROUPS)
    CommandLine.of(lab, folder, warm=True).plan(PLAN, "--group", f"({names})-{small.suffix}").expect(0)
    return folder / PLAN


@pytest.fixture
def commands(lab: AnyLab, clean_plan: Path, tmp_path: Path) -> CommandLine:
    """The commands, in a folder that holds a copy of the clean plan and no journal."""
    shutil.copy(clean_plan, tmp_path / PLAN)
    return CommandLine.of(lab, tmp_path, warm=True)


def on_target(scene: Scene) -> Commits:
    return commits_on(scene.lab.target_bootstrap, scene.commits)


@contextmanager
def nothing_written(scene: Scene) -> Iterator[None]:
    before = on_target(scene)
    yield
    assert on_target(scene) == before


def refused(ran: Ran, *words: str) -> None:
    """Assert that a command refused, and that what it said holds every one of `words`."""
    ran.expect(3)
    # What became of groups is a result, on stdout; what ends a command is an error, on stderr.
    said = " ".join((ran.stdout + ran.stderr).split())
    for word in words:
        assert word in said, f"{word!r} is not in what was said\n{ran}"


def forget(scene: Scene, *names: str) -> None:
    """Delete groups on the target."""
    delete_groups(scene.lab.target_bootstrap, map(scene.group, names))


# --- groups that are alive --------------------------------------------------------------------------------


def test_live_groups_are_blocked_on_either_side_and_so_is_a_commit_of_another_log_and_an_accepted_one_goes_through(
    lab: AnyLab, small: Scene, tmp_path: Path
) -> None:
    commands = CommandLine.of(lab, tmp_path, warm=True)
    pool, other = small.topic("pool"), small.group("other-log")
    # The log is at a low leader epoch: this commit was not made on it.
    commit(lab.source_bootstrap, {other: {(pool, 0): 100}}, leader_epoch=1_000_000)
    steady, on_b, on_a, accepted = (small.group(name) for name in ("steady", *LIVE))
    with (
        member(lab.target_bootstrap, on_b, small.copy(pool)),
        member(lab.source_bootstrap, on_a, pool),
        member(lab.source_bootstrap, accepted, pool),
    ):
        waiver = f"source-group-stopped:{accepted}"
        with nothing_written(small):
            wanted = f"(steady|other-log|{'|'.join(LIVE)})-{small.suffix}"
            refused(commands.plan(PLAN, "--group", wanted, "--accept", waiver), on_b, on_a, "epoch 1000000")
        document = commands.document(PLAN)
        decisions = {(row["group"], row["decision"]) for row in document["rows"]}
        assert decisions == {(on_b, "block"), (on_a, "block"), (other, "block"), (accepted, "set"), (steady, "set")}
        blocks = {(c["check"], c["subject"]) for c in document["checks"] if c["counts_as"] == "block"}
        assert blocks == {
            ("target-group-empty", on_b), ("source-group-stopped", on_a),
            ("commit-of-another-log", f"{other}/{pool}/0"),
        }  # fmt: skip

        # All that a plan looks at, these clusters tell; brokers before 4.1 store no topic id that would prove a commit.
        unseen = {c["check"] for c in document["checks"] if c["level"] == "not-visible"}
        proven = [c for c in document["checks"] if c["check"] == "commit-of-another-log" and c["level"] == "pass"]
        assert unseen == (set() if proven else {"commit-of-another-log"})

        waived = [(c["check"], c["subject"]) for c in document["checks"] if c["accepted"]]
        assert waived == [("source-group-stopped", accepted)]
        assert waiver in document["header"]["waivers"]
        table = commands.show(PLAN, "table")
        assert accepted in table.partition("ACCEPTED  source-group-stopped")[2].partition("WARN")[0], table

        with nothing_written(small):
            refused(commands.execute(PLAN), on_b, on_a)
        commands.execute(PLAN, "--allow-partial").expect(4)
        assert set(on_target(small)) == {accepted, steady}
        commands.undo(PLAN)
    assert on_target(small) == {}


def test_groups_that_joined_or_moved_since_the_plan_are_refused_and_only_they_with_allow_partial(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    pool = small.topic("pool")
    joins, back, forth = (small.group(name) for name in ("joins", "target-moves", "source-moves"))
    before = small.commits[forth][pool, 0]
    with member(lab.target_bootstrap, joins, small.copy(pool)):
        commit(lab.target_bootstrap, {back: {(small.copy(pool), 0): 7}})
        commit(lab.source_bootstrap, {forth: {(pool, 0): before + 1}})
        try:
            with nothing_written(small):
                refused(
                    commands.execute(PLAN), f"{joins}/", "target group state", f"{back}/", "target committed offset",
                    f"{forth}/", "source committed offset", str(before + 1),
                )  # fmt: skip
        finally:
            commit(lab.source_bootstrap, {forth: {(pool, 0): before}})
        forget(small, "target-moves")
        partly = commands.execute(PLAN, "--allow-partial").expect(4)
        assert joins in partly.stdout + partly.stderr
        assert set(on_target(small)) == {small.group(name) for name in GROUPS if name != "joins"}
    # It has left: the same command again finishes the work.
    commands.execute(PLAN).expect(0)
    assert set(on_target(small)) == {small.group(name) for name in GROUPS}
    commands.undo(PLAN).expect(0)
    assert on_target(small) == {}


def test_a_source_that_does_not_answer_is_refused_until_the_command_says_that_it_is_gone(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    elsewhere = at(lab, commands, nobody, lab.target_bootstrap, *SOON)
    with nothing_written(small):
        refused(elsewhere.apply(PLAN), nobody, "expected an answer", "--source-unreachable")
        refused(elsewhere.execute(PLAN, "--allow-partial"), nobody)
    applied = elsewhere.execute(PLAN, "--source-unreachable").expect(0)
    assert applied.stdout.startswith("APPLIED, SOURCE NOT SEEN: "), str(applied)
    journal = next(commands.folder.glob("*.journal.jsonl")).read_text()
    assert '"source_not_seen":' in journal and nobody in journal
    # Done already: there is nothing left that would have to be compared.
    elsewhere.execute(PLAN).expect(0)
    elsewhere.undo(PLAN).expect(0)
    assert on_target(small) == {}


def test_a_plan_made_for_other_clusters_is_refused(lab: AnyLab, small: Scene, commands: CommandLine) -> None:
    elsewhere = at(lab, commands, lab.target_bootstrap, lab.source_bootstrap)
    with nothing_written(small):
        refused(elsewhere.execute(PLAN), "cluster id", commands.document(PLAN)["header"]["target_cluster_id"])


# --- clusters and topics that are not what was said -------------------------------------------------------


def test_a_broker_that_is_down_is_named_while_spark_is_still_starting(lab: AnyLab, commands: CommandLine) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    elsewhere = at(lab, replace(commands, warm=False), lab.source_bootstrap, nobody, *SOON)
    for ran in (elsewhere.plan("down.plan"), elsewhere.apply(PLAN)):
        assert f"target {lab.options.target_alias} ({nobody}) cannot be reached" in ran.expect(1).complaint()
    assert not (commands.folder / "down.plan").exists()


def test_mm2_topics_that_are_missing_or_hold_something_else_block_by_name(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    nowhere = f"nowhere-{small.suffix}"
    wrong = ("--checkpoints-topic", "heartbeats", "--offset-syncs-topic", nowhere)
    ran = commands.against(*commands.clusters, *wrong).plan("wrong.plan", "--group", small.group("steady"))
    refused(ran, nowhere, "--offset-syncs-topic", "heartbeats", "--checkpoints-topic")
    checks = {check["check"]: check for check in commands.document("wrong.plan")["checks"]}
    assert checks["mm2-offset-syncs-topic"]["counts_as"] == "block"
    assert checks["mm2-checkpoints-topic"]["counts_as"] == "block"
    assert "heartbeat" in checks["mm2-checkpoints-topic"]["seen"]


# --- last, for they take topics away ----------------------------------------------------------------------


def test_topics_that_were_created_anew_since_the_plan_are_refused_on_either_side(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    """On the source as many records, the same commits, and an MM2 that has not looked yet: still other records."""
    reborn, fated, group = small.topic("reborn"), small.copy(small.topic("fated")), small.group("reborn")
    places, ends = dict(small.commits[group]), small.source_ends()
    recreate(lab.target_bootstrap, fated, 2)
    lab.mirror.pause()
    try:
        small.create_anew(reborn)
        for partition in (0, 1):
            small.write([(reborn, partition)], ends[reborn, partition][1])
        small.commit({group: places})
        with nothing_written(small):
            ran = commands.execute(PLAN)
            refused(ran, reborn, "source topic id", "re-created", fated, "target topic id")
    finally:
        lab.mirror.resume()


@pytest.fixture(scope="module")
def refilled(lab: AnyLab) -> Scene:
    """A target topic that was created anew once 200 records were copied, and has copies of the 5 that came since.

    MM2 is at the end. Of what the groups are owed the target lacks all but these 5: 50 records for `late`, which has a
    checkpoint beyond the copy's end, and 197 for `early`, whose checkpoint lies within the copy.
    """
    scene = Scene(lab, "refilled", seed=2)
    topic, late, early = scene.create("t", 1), scene.group("late"), scene.group("early")
    scene.write([(topic, 0)], 150)
    scene.wait_replicated()
    scene.commit({late: {(topic, 0): 150}})
    lab.mirror.wait_checkpoints([late], caught_up=True)
    scene.write([(topic, 0)], 50)
    scene.commit({early: {(topic, 0): 3}})
    scene.wait_replicated()
    recreate(lab.target_bootstrap, scene.copy(topic), 1)
    scene.write([(topic, 0)], 5)
    scene.wait_replicated()
    return scene


def blocks(document: Any) -> set[tuple[str, str]]:
    return {(c["check"], c["subject"]) for c in document["checks"] if c["counts_as"] == "block"}


def test_a_target_topic_that_was_recreated_is_not_ready_though_all_seems_copied_and_blocks_where_none_are_compared(
    lab: AnyLab, refilled: Scene, tmp_path: Path
) -> None:
    commands, topic, suffix = CommandLine.of(lab, tmp_path, warm=True), refilled.topic("t"), refilled.suffix
    for name, seen in (
        ("late", f"ends at 5, and MM2's checkpoint of late-{suffix} says 150"),
        ("early", f"begins with the source's record at 200, beyond the commit of early-{suffix} at 3"),
    ):
        chosen = ("--group", refilled.group(name), "--settle", "1")
        told = commands.run("status", *commands.clusters, *chosen).expect(3).stdout
        assert told.startswith("NOT READY: target-recreated\n"), told
        assert f"partition 0 of {refilled.copy(topic)} {seen}" in " ".join(told.split())
    ran = commands.plan(PLAN, "--group", refilled.group("late"), "--no-match").expect(3)
    assert ran.stdout.startswith("BLOCKED: 1 of 1 group"), ran
    document = commands.document(PLAN)
    assert ("target-recreated", topic) in blocks(document)
    assert ("missing-on-target", "not-visible") in {(c["check"], c["level"]) for c in document["checks"]}


@pytest.mark.long
def test_comparing_names_the_missing_records_and_without_it_nothing_is_proven_afterwards(
    lab: AnyLab, refilled: Scene, tmp_path: Path
) -> None:
    commands, topic, late = CommandLine.of(lab, tmp_path, warm=True), refilled.topic("t"), refilled.group("late")
    commands.plan("compared.plan", "--group", late).expect(3)
    assert blocks(commands.document("compared.plan")) == {("missing-on-target", f"{late}/{topic}/0")}
    accepted = commands.plan(PLAN, "--group", late, "--no-match", "--accept", f"target-recreated:{topic}").expect(0)
    assert "ACCEPTED  target-recreated" in accepted.stdout
    commands.execute(PLAN).expect(0)
    proof = commands.verify(PLAN, "--records").expect(4)
    assert "RECORDS: 0 of 1 row read the same next record on both sides" in proof.stdout, proof
    # An offset of the log that is gone, left by an earlier apply, is not kept either.
    commit(lab.target_bootstrap, {late: {(refilled.copy(topic), 0): 150}})
    commands.plan("kept.plan", "--group", late, "--rewind", "keep", "--accept", "missing-on-target").expect(3)
    assert blocks(commands.document("kept.plan")) == {("inside-target-log", f"{late}/{topic}/0")}
    forget(refilled, "late")


def test_no_group_of_these_tests_is_left_on_the_target(small: Scene) -> None:
    assert not {group for group in groups_on(small.lab.target_bootstrap) if group.endswith(small.suffix)}


# --- helpers ----------------------------------------------------------------------------------------------


def at(lab: AnyLab, commands: CommandLine, source: str, target: str, *more: str) -> CommandLine:
    """The same commands with the lab's mm2.properties, but other addresses."""
    options = lab.options
    moved = {f"{options.source_alias}.bootstrap.servers": source, f"{options.target_alias}.bootstrap.servers": target}
    lines = lab.mm2_properties.read_text().splitlines()
    kept = [line for line in lines if line.replace("=", " ").split()[:1] not in [[key] for key in moved]]
    path = commands.folder / "other-mm2.properties"
    path.write_text("\n".join([*kept, *(f"{key} = {value}" for key, value in moved.items())]) + "\n")
    return commands.against("--mm2-config", str(path), *commands.clusters[2:], *more)


def recreate(bootstrap: str, topic: str, partitions: int) -> None:
    """Delete a topic and have one of that name again; MM2 may be the faster one to make it."""
    client = admin(bootstrap)
    before = topic_id(bootstrap, topic)
    client.delete_topics([topic])[topic].result(CALL_SECONDS)

    def another() -> bool:
        now = topic_id(bootstrap, topic)
        if now is None:
            new = NewTopic(topic, num_partitions=partitions, replication_factor=1)
            try:
                client.create_topics([new])[topic].result(CALL_SECONDS)
            except KafkaException:
                return False
        return now not in (None, before)

    wait_until(another, CALL_SECONDS, f"another topic {topic}")

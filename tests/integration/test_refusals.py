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

from tests.integration.cli import CommandLine, Ran, run
from tests.integration.clusters import (
    CALL_SECONDS,
    Commits,
    admin,
    commit,
    commits_on,
    delete_groups,
    member,
    topic_id,
)
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.lab.ports import free_ports
from tests.lab.waiting import wait_until

PLAN = "cutover.plan"
GROUPS = ("joins", "steady", "source-moves", "target-moves", "fated", "reborn")
LIVE = ("live-target", "live-source", "live-accepted")


@pytest.fixture(scope="module")
def small(lab: Lab) -> Scene:
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
def clean_plan(lab: Lab, small: Scene, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of all the groups that are stopped on both sides; nothing stands in its way."""
    folder = tmp_path_factory.mktemp("clean")
    names = "|".join(GROUPS)
    CommandLine.of(lab, folder, warm=True).plan(PLAN, "--group", f"({names})-{small.suffix}").expect(0)
    return folder / PLAN


@pytest.fixture
def commands(lab: Lab, clean_plan: Path, tmp_path: Path) -> CommandLine:
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


# --- groups that are alive --------------------------------------------------------------------------------


def test_live_groups_are_blocked_on_either_side_and_so_is_a_commit_of_another_log_and_an_accepted_one_goes_through(
    lab: Lab, small: Scene, tmp_path: Path
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


def test_a_consumer_that_joins_between_plan_and_apply_stops_its_group_and_only_that_with_allow_partial(
    lab: Lab, small: Scene, commands: CommandLine
) -> None:
    joins = small.group("joins")
    with member(lab.target_bootstrap, joins, small.copy(small.topic("pool"))):
        with nothing_written(small):
            refused(commands.execute(PLAN), joins, "target group state")
        partly = commands.execute(PLAN, "--allow-partial").expect(4)
        assert joins in partly.stdout + partly.stderr
        assert set(on_target(small)) == {small.group(name) for name in GROUPS if name != "joins"}
    # It has left: the same command again finishes the work.
    commands.execute(PLAN).expect(0)
    assert set(on_target(small)) == {small.group(name) for name in GROUPS}
    commands.undo(PLAN).expect(0)
    assert on_target(small) == {}


# --- a world that has changed -----------------------------------------------------------------------------


def test_offsets_committed_since_the_plan_on_either_side_are_refused(small: Scene, commands: CommandLine) -> None:
    source, target, pool = small.lab.source_bootstrap, small.lab.target_bootstrap, small.topic("pool")
    on_a, on_b = small.group("source-moves"), small.group("target-moves")
    before = small.commits[on_a][pool, 0]
    commit(target, {on_b: {(small.copy(pool), 0): 7}})
    commit(source, {on_a: {(pool, 0): before + 1}})
    try:
        with nothing_written(small):
            there = (f"{on_b}/", "target committed offset")
            refused(commands.execute(PLAN), *there, f"{on_a}/", "source committed offset", str(before + 1))
    finally:
        commit(source, {on_a: {(pool, 0): before}})
    delete_groups(target, [on_b])


def test_without_the_right_approval_nothing_is_written(small: Scene, commands: CommandLine) -> None:
    with nothing_written(small):
        refused(commands.apply(PLAN, "--approve", "0" * 64, "--execute"), f"{'0' * 64} is not this plan's fingerprint")


def test_a_source_that_does_not_answer_is_refused_until_the_command_says_that_it_is_gone(
    lab: Lab, small: Scene, commands: CommandLine
) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    gone = config(lab, commands.folder, nobody, lab.target_bootstrap)
    elsewhere = commands.against("--mm2-config", str(gone), *commands.clusters[2:], "--request-timeout", "3")
    with nothing_written(small):
        refused(elsewhere.apply(PLAN), nobody, "expected an answer", "--source-unreachable")
        refused(elsewhere.execute(PLAN), nobody)
        refused(elsewhere.execute(PLAN, "--allow-partial"), nobody)
        inherited = run(
            "apply", PLAN, *elsewhere.clusters, folder=commands.folder,
            environment={"MM2_MIGRATE_SOURCE_UNREACHABLE": "1"},
        )  # fmt: skip
        refused(inherited, nobody)
    applied = elsewhere.execute(PLAN, "--source-unreachable").expect(0)
    assert applied.stdout.startswith("APPLIED, SOURCE NOT SEEN: "), str(applied)
    journal = next(commands.folder.glob("*.journal.jsonl")).read_text()
    assert '"source_not_seen":' in journal and nobody in journal
    # Done already: there is nothing left that would have to be compared.
    elsewhere.execute(PLAN).expect(0)
    elsewhere.undo(PLAN).expect(0)
    assert on_target(small) == {}


# --- clusters and topics that are not what was said -------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_broker_that_is_down_is_named_while_a_spark_still_starts(lab: Lab, commands: CommandLine, side: str) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    down = config(
        lab, commands.folder, **{"source": lab.source_bootstrap, "target": lab.target_bootstrap, side: nobody}
    )
    words = ("--mm2-config", str(down), *commands.clusters[2:], "--request-timeout", "3")
    elsewhere = replace(commands, warm=False, clusters=words)
    complaint = elsewhere.plan("down.plan").expect(1).complaint()
    alias = lab.options.source_alias if side == "source" else lab.options.target_alias
    assert f"{side} {alias} ({nobody}) cannot be reached" in complaint
    assert not (commands.folder / "down.plan").exists()
    if side == "target":
        assert nobody in elsewhere.apply(PLAN).expect(1).complaint()


# --- last, for they take topics away ----------------------------------------------------------------------


def test_a_source_topic_that_was_created_anew_since_the_plan_is_refused_though_all_else_is_as_it_was(
    lab: Lab, small: Scene, commands: CommandLine
) -> None:
    """As many records, the same committed offsets, and an MM2 that has not looked yet: other records all the same."""
    reborn, group = small.topic("reborn"), small.group("reborn")
    places, ends = dict(small.commits[group]), small.source_ends()
    lab.mirror.pause()
    try:
        small.create_anew(reborn)
        for partition in (0, 1):
            small.write([(reborn, partition)], ends[reborn, partition][1])
        small.commit({group: places})
        with nothing_written(small):
            refused(commands.execute(PLAN), reborn, "source topic id", "re-created")
    finally:
        lab.mirror.resume()


def test_a_target_topic_that_was_recreated_since_the_plan_is_refused(small: Scene, commands: CommandLine) -> None:
    fated = small.copy(small.topic("fated"))
    recreate(small.lab.target_bootstrap, fated, 2)
    with nothing_written(small):
        refused(commands.execute(PLAN), fated, "target topic id", "re-created")


@pytest.fixture(scope="module")
def refilled(lab: Lab) -> Scene:
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


@pytest.mark.parametrize(
    ("group", "seen"),
    [
        ("late", "ends at 5, and MM2's checkpoint of late-{scene} says 150"),
        ("early", "begins with the source's record at 200, beyond the commit of early-{scene} at 3"),
    ],
)
def test_a_target_topic_that_was_recreated_is_not_ready_though_all_seems_copied(
    lab: Lab, refilled: Scene, tmp_path: Path, group: str, seen: str
) -> None:
    commands = CommandLine.of(lab, tmp_path, warm=True)
    chosen = ("--group", refilled.group(group), "--settle", "1")
    told = commands.run("status", *commands.clusters, *chosen).expect(3).stdout
    assert told.startswith("NOT READY: target-recreated\n"), told
    place = f"partition 0 of {refilled.copy(refilled.topic('t'))}"
    assert f"{place} {seen.format(scene=refilled.suffix)}" in " ".join(told.split())


@pytest.mark.long
def test_comparing_names_the_missing_records_and_without_it_nothing_is_proven_afterwards(
    lab: Lab, refilled: Scene, tmp_path: Path
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
    delete_groups(lab.target_bootstrap, [late])


# --- helpers ----------------------------------------------------------------------------------------------


def config(lab: Lab, folder: Path, source: str, target: str) -> Path:
    """The lab's mm2.properties with other addresses: of two lines the last one counts."""
    lines = lab.mm2_properties.read_text().splitlines()
    for alias, address in ((lab.options.source_alias, source), (lab.options.target_alias, target)):
        lines.append(f"{alias}.bootstrap.servers = {address}")
    path = folder / "other-mm2.properties"
    path.write_text("\n".join(lines))
    return path


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

"""What a careful tool refuses, on real clusters: each with the reason, and nothing written."""

import json
import shutil
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from tests.integration.cli import CommandLine, Ran, run
from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    AnyLab,
    Commits,
    admin,
    commit,
    commits_on,
    create_topic,
    delete_groups,
    groups_on,
    member,
    topic_id,
)
from tests.integration.scene import Scene
from tests.lab.cluster import Broker, Cluster
from tests.lab.lab import Lab
from tests.lab.ports import free_ports
from tests.lab.reading import latest_checkpoints, topic_reader
from tests.lab.waiting import wait_until

PLAN = "cutover.plan"
GROUPS = ("joins", "steady", "source-moves", "target-moves", "fated", "reborn")
LIVE = ("live-target", "live-source", "live-accepted")
RIGHT_PASSWORD, WRONG_PASSWORD = "correct-horse", "battery-staple"


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


@pytest.fixture
def alone(commands: CommandLine) -> CommandLine:
    """The commands, each with a Spark of its own that is still starting when something is refused."""
    return replace(commands, warm=False)


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


def test_a_consumer_that_joins_between_plan_and_apply_stops_its_group_and_only_that_with_allow_partial(
    lab: AnyLab, small: Scene, commands: CommandLine
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


def test_a_target_offset_committed_since_the_plan_is_refused(small: Scene, commands: CommandLine) -> None:
    moved = small.group("target-moves")
    commit(small.lab.target_bootstrap, {moved: {(small.copy(small.topic("pool")), 0): 7}})
    with nothing_written(small):
        refused(commands.execute(PLAN), moved, "target committed offset")
    forget(small, "target-moves")


def test_a_source_commit_changed_since_the_plan_is_refused(small: Scene, commands: CommandLine) -> None:
    moved, pool = small.group("source-moves"), small.topic("pool")
    before = small.commits[moved][pool, 0]
    commit(small.lab.source_bootstrap, {moved: {(pool, 0): before + 1}})
    try:
        with nothing_written(small):
            refused(commands.execute(PLAN), moved, "source committed offset", str(before + 1))
    finally:
        commit(small.lab.source_bootstrap, {moved: {(pool, 0): before}})


def test_a_source_that_does_not_answer_is_refused_until_the_command_says_that_it_is_gone(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    nobody = closed_port()
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


@pytest.mark.long
def test_after_a_second_plan_what_is_kept_is_compared_and_a_misspelt_group_is_not_passed_over(
    small: Scene, commands: CommandLine
) -> None:
    steady, joins = small.group("steady"), small.group("joins")
    commands.execute(PLAN).expect(0)
    (commands.folder / "wave.txt").write_text(f"{steady}\n{joins}\nbilings\n")
    refused(commands.plan("again.plan", "--groups-file", "wave.txt"), "named-groups-exist", "bilings")
    decisions = {(row["group"], row["decision"]) for row in commands.document("again.plan")["rows"]}
    assert decisions == {(steady, "keep"), (joins, "keep")}
    refused(commands.execute("again.plan"), "named-groups-exist: bilings")

    forget(small, "joins")
    refused(commands.execute("again.plan"), f"{joins}/", "target committed offset", "seen none")
    pool = small.topic("pool")
    before = small.commits[steady][pool, 0]
    commit(small.lab.source_bootstrap, {steady: {(pool, 0): 3}})
    try:
        refused(commands.execute("again.plan"), f"{steady}/", "source committed offset")
    finally:
        commit(small.lab.source_bootstrap, {steady: {(pool, 0): before}})
    refused(commands.execute("again.plan", "--allow-partial"), "bilings", f"{joins}/")
    forget(small, *(name for name in GROUPS if name != "joins"))
    assert on_target(small) == {}


def test_without_the_right_approval_nothing_is_written(small: Scene, commands: CommandLine) -> None:
    with nothing_written(small):
        refused(commands.apply(PLAN, "--approve", "0" * 64, "--execute"), f"{'0' * 64} is not this plan's fingerprint")
        missing = commands.apply(PLAN, "--execute").expect(2)
        assert "--execute needs --approve FINGERPRINT" in missing.complaint()


# --- plans that are not what was approved -----------------------------------------------------------------


def test_an_edited_plan_is_refused(small: Scene, commands: CommandLine) -> None:
    approval = commands.document(PLAN)["fingerprint"]
    edit(commands.folder / PLAN)
    with nothing_written(small):
        ran = commands.apply(PLAN, "--approve", approval, "--execute")
        refused(ran, PLAN, "edited")
        ran.complaint()
    refused(commands.run("show", PLAN), "edited")


def test_a_plan_made_for_other_clusters_is_refused(lab: AnyLab, small: Scene, commands: CommandLine) -> None:
    swapped = config(lab, commands.folder, lab.target_bootstrap, lab.source_bootstrap)
    elsewhere = commands.against("--mm2-config", str(swapped), *commands.clusters[2:])
    with nothing_written(small):
        refused(elsewhere.execute(PLAN), "cluster id", commands.document(PLAN)["header"]["target_cluster_id"])


# --- clusters and topics that are not what was said -------------------------------------------------------


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_broker_that_is_down_is_named(lab: AnyLab, alone: CommandLine, side: str) -> None:
    nobody = closed_port()
    up = {"source": lab.source_bootstrap, "target": lab.target_bootstrap}
    down = config(lab, alone.folder, **{**up, side: nobody})
    elsewhere = alone.against("--mm2-config", str(down), *alone.clusters[2:], "--request-timeout", "3")
    complaint = elsewhere.plan("down.plan").expect(1).complaint()
    alias = lab.options.source_alias if side == "source" else lab.options.target_alias
    assert f"{side} {alias} ({nobody}) cannot be reached" in complaint
    assert not (alone.folder / "down.plan").exists()
    if side == "target":
        assert nobody in elsewhere.apply(PLAN).expect(1).complaint()


def test_a_wrong_alias_is_named_with_those_that_there_are(lab: AnyLab, commands: CommandLine) -> None:
    elsewhere = commands.against("--mm2-config", str(lab.mm2_properties), "--source", "X", "--target", "B")
    complaint = elsewhere.plan("alias.plan").expect(2).complaint()
    known = f"{lab.options.source_alias}, {lab.options.target_alias}"
    assert f"--source X: {lab.mm2_properties} has no cluster of that alias; its clusters are {known}." in complaint


class Guarded(Cluster):
    """A cluster that lets in nobody but admin, by a port of its own beside the lab's."""

    sasl_port = 0

    def settings(self, broker: Broker) -> dict[str, str]:
        self.sasl_port = self.sasl_port or free_ports(1)[0]
        settings, sasl = super().settings(broker), f",SASL://127.0.0.1:{self.sasl_port}"
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        return settings | {
            "listeners": settings["listeners"] + sasl,
            "advertised.listeners": settings["advertised.listeners"] + sasl,
            "listener.security.protocol.map": settings["listener.security.protocol.map"] + ",SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f'{login} user_admin="{RIGHT_PASSWORD}";',
        }


def test_a_wrong_password_is_named_and_never_shown(lab: AnyLab, small: Scene, alone: CommandLine) -> None:
    cluster = Guarded("guarded", alone.folder / "guarded")
    try:
        cluster.start()
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        client = alone.folder / "source.properties"
        client.write_text(
            f"bootstrap.servers=127.0.0.1:{cluster.sasl_port}\nsecurity.protocol=SASL_PLAINTEXT\n"
            f'sasl.mechanism=PLAIN\nsasl.jaas.config={login} username="admin" password="{WRONG_PASSWORD}";\n'
        )
        clusters = (*alone.clusters, "--source-config", str(client), "--request-timeout", "5")
        ran = alone.against(*clusters).plan("login.plan").expect(1)
    finally:
        cluster.kill()
    complaint = ran.complaint()
    assert "authenticat" in complaint.lower()
    assert lab.options.source_alias in complaint
    assert WRONG_PASSWORD not in ran.stdout + ran.stderr


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


def test_a_dry_run_without_mm2s_configuration_says_that_it_did_not_look_at_mm2s_group_sync(
    lab: AnyLab, commands: CommandLine
) -> None:
    sides = []
    for side, bootstrap in (("source", lab.source_bootstrap), ("target", lab.target_bootstrap)):
        path = commands.folder / f"{side}.properties"
        path.write_text(f"bootstrap.servers={bootstrap}\n")
        sides += [f"--{side}-config", str(path)]
    alone = commands.against(*sides, "--source", lab.options.source_alias, "--target", lab.options.target_alias)
    told = " ".join(alone.apply(PLAN).expect(0).stdout.split())
    assert "group sync" in told and "was not looked at" in told, told
    assert "When the plan was made: MM2 sets none" in told, told
    assert "was not looked at" not in commands.apply(PLAN).expect(0).stdout


@pytest.mark.long
def test_garbage_in_an_mm2_topic_is_counted_shown_and_left_aside(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    dirty = f"dirty-checkpoints-{small.suffix}"
    copies = spoilt_copy(lab, lab.options.checkpoints_topic, dirty)
    elsewhere = commands.against(*commands.clusters, "--checkpoints-topic", dirty)
    ran = elsewhere.plan("dirty.plan", "--group", small.group("steady")).expect(0)
    document = commands.document("dirty.plan")
    assert document["header"]["mm2_counts"], str(ran)
    check = next(c for c in document["checks"] if c["check"] == "mm2-checkpoints-topic")
    assert check["level"] == "warn"
    assert check["subject"] == dirty
    assert f"{copies:,} record" in check["seen"]
    assert dirty in commands.show("dirty.plan", "table")
    # The good records among the garbage still count; MM2 need not have one for every partition, and goes on meanwhile.
    read = {(row["target_topic"], row["partition"]): row["checkpoint_target_offset"] for row in document["rows"]}
    with topic_reader(lab.target_bootstrap) as reader:
        newest = latest_checkpoints(reader, dirty, only=lambda message: 2 <= (message.offset() or 0) < 2 + copies)
    there = {place: newest.get((small.group("steady"), *place)) for place in read}
    assert read == {place: pair and pair.downstream for place, pair in there.items()}
    assert any(pair is not None for pair in there.values())


# --- last, for they take topics away ----------------------------------------------------------------------


def test_a_source_topic_that_was_created_anew_since_the_plan_is_refused_though_all_else_is_as_it_was(
    lab: AnyLab, small: Scene, commands: CommandLine
) -> None:
    """As many records, the same committed offsets, and an MM2 that has not looked yet: other records all the same."""
    if not isinstance(lab, Lab):
        pytest.skip("needs an MM2 that it may stop, and the environment names other clusters")
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


@pytest.mark.parametrize(
    ("group", "seen"),
    [
        ("late", "ends at 5, and MM2's checkpoint of late-{scene} says 150"),
        ("early", "begins with the source's record at 200, beyond the commit of early-{scene} at 3"),
    ],
)
def test_a_target_topic_that_was_recreated_is_not_ready_though_all_seems_copied(
    lab: AnyLab, refilled: Scene, tmp_path: Path, group: str, seen: str
) -> None:
    commands = CommandLine.of(lab, tmp_path, warm=True)
    chosen = ("--group", refilled.group(group), "--settle", "1")
    told = commands.run("status", *commands.clusters, *chosen).expect(3).stdout
    assert told.startswith("NOT READY: target-recreated\n"), told
    place = f"partition 0 of {refilled.copy(refilled.topic('t'))}"
    assert f"{place} {seen.format(scene=refilled.suffix)}" in " ".join(told.split())


@pytest.mark.long
@pytest.mark.parametrize("way", [("--no-match",), ("--match-limit", "10"), ("--by", "timestamp")])
def test_a_target_topic_that_was_recreated_blocks_where_no_records_are_compared(
    lab: AnyLab, refilled: Scene, tmp_path: Path, way: tuple[str, ...]
) -> None:
    commands, topic = CommandLine.of(lab, tmp_path, warm=True), refilled.topic("t")
    ran = commands.plan(PLAN, "--group", refilled.group("late"), *way).expect(3)
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


def edit(plan: Path) -> None:
    """Move a target offset by one, as somebody with an Avro library would."""
    reader = fastavro.reader(BytesIO(plan.read_bytes()))
    groups: list[Any] = list(reader)
    offsets = groups[0]["target_offset"]
    (offsets["items"] if isinstance(offsets, dict) else offsets)[0] += 1
    ours = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    with plan.open("wb") as file:
        fastavro.writer(file, reader.writer_schema, groups, codec="deflate", metadata=ours)


def config(lab: AnyLab, folder: Path, source: str, target: str) -> Path:
    """The lab's mm2.properties with other addresses."""
    options = lab.options
    addresses = {
        f"{options.source_alias}.bootstrap.servers": source,
        f"{options.target_alias}.bootstrap.servers": target,
    }
    kept = [
        line
        for line in lab.mm2_properties.read_text().splitlines()
        if line.replace("=", " ").split()[:1] not in [[key] for key in addresses]
    ]
    path = folder / "other-mm2.properties"
    path.write_text("\n".join([*kept, *(f"{key} = {value}" for key, value in addresses.items())]) + "\n")
    return path


def closed_port() -> str:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def spoilt_copy(lab: AnyLab, topic: str, copy: str) -> int:
    """Copy an MM2 topic of the target, with four records among it that are none of MM2's; returns the good ones."""
    create_topic(lab.target_bootstrap, copy, 1)
    with topic_reader(lab.target_bootstrap) as reader:
        records = [(message.key(), message.value()) for message in reader.records(topic, 0)]
    garbage: list[tuple[bytes | None, bytes | None]] = [
        (None, b"\xff\xfe"),
        (b"\x00\x05ab", b"not a checkpoint"),
        (b"", b""),
        (json.dumps({"schema": None}).encode(), struct.pack(">hq", 7, -1)),
    ]
    producer = Producer({"bootstrap.servers": lab.target_bootstrap, "enable.idempotence": True, **QUIET})
    for i, (key, value) in enumerate([*garbage[:2], *records, *garbage[2:]]):
        producer.produce(copy, value, key, 0)
        if i % 1000 == 0:
            producer.poll(0)
    assert producer.flush(CALL_SECONDS) == 0
    return len(records)


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

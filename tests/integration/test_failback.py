"""Groups moved from A to B, consumed and committed there, and planned back: judged by the oracle with sides swapped."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.integration import oracle
from tests.integration.cli import CommandLine, Place, Ran
from tests.integration.clusters import (
    CALL_SECONDS,
    QUIET,
    Commits,
    Partition,
    by_place,
    commit,
    commits_on,
    portrait,
    read_as_groups,
    read_logs,
)
from tests.integration.killedscene import kill_mid_stream
from tests.integration.oracle import Log, Truth, Written
from tests.integration.scene import Scene
from tests.lab.lab import Lab
from tests.seeds import new_seed

GROUPS = 24


@dataclass(frozen=True, repr=False)
class WayBack:
    """Groups that were moved to B, and two plans back, one of them without comparing; places are named as on B."""

    scene: Scene
    commands: CommandLine
    committed: dict[Place, int]
    truth: dict[Partition, Truth]
    document: dict[str, Any]
    guessed: dict[str, Any]
    b_before: dict[str, Any]

    @property
    def rows(self) -> dict[Place, dict[str, Any]]:
        return rows_of(self.document)


def rows_of(document: Mapping[str, Any]) -> dict[Place, dict[str, Any]]:
    return {(row["group"], row["source_topic"], row["partition"]): row for row in document["rows"]}


def moved_and_consumed(scene: Scene, commands: CommandLine) -> dict[Place, int]:
    """Move the groups to B, let all but one read there, and commit after a record that they have read, anywhere."""
    commands.plan("there.plan", "--group", f".*{scene.suffix}").expect(0)
    commands.execute("there.plan").expect(0)
    target = scene.lab.target_bootstrap
    groups = {g: {(scene.copy(t), p): o for (t, p), o in at.items()} for g, at in scene.commits.items()}
    committed = commits_on(target, groups)
    idle = min(groups)
    for group, at in read_as_groups(target, {g: places for g, places in groups.items() if g != idle}).items():
        for place, records in at.items():
            chance = scene.dice.random()
            if records and chance < 0.8:
                committed[group][place] = scene.dice.choice(records).offset + 1
            elif records and chance < 0.9:
                committed[group][place] = records[-1].offset + 1
    commit(target, committed)
    return by_place(committed)


def swapped_truth(scene: Scene) -> dict[Partition, Truth]:
    """B's logs as what was written, and A's as the copies; by B's partition."""
    copies = {(scene.copy(t), p): (t, p) for t, p in scene.partitions}
    on_b = read_logs(scene.lab.target_bootstrap, list(copies))
    on_a = read_logs(scene.lab.source_bootstrap, scene.partitions)
    return {
        b: Truth(tuple(Written(r.offset, r.identity) for r in on_b[b].records), on_b[b], on_a[a])
        for b, a in copies.items()
    }


@pytest.fixture(scope="module")
def way_back(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> WayBack:
    scene = Scene(lab, "back", new_seed())
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)

    def write() -> None:
        scene.write([(plain, p) for p in range(3)], 1300)
        scene.write_transactions([(tx, p) for p in range(2)], 600)

    kill_mid_stream(scene, write)
    lab.mirror.start()
    scene.wait_replicated()
    ends = scene.source_ends()
    for number in range(GROUPS):
        places = scene.dice.sample(scene.partitions, 3)
        scene.commit({scene.group(f"g{number:02}"): {place: scene.dice.randint(*ends[place]) for place in places}})
    lab.mirror.wait_checkpoints([])
    commands = CommandLine.of(lab, tmp_path_factory.mktemp("back"), warm=True)
    committed = moved_and_consumed(scene, commands)
    options = ("--failback", "--group", f".*{scene.suffix}", "--rewind", "set")
    b_before = portrait(lab.target_bootstrap, lab.options)
    commands.plan("guess.plan", *options, "--no-match", "--accept", "unread-on-target-only").expect(0)
    commands.plan("back.plan", *options).expect(0)
    document, guessed = commands.document("back.plan"), commands.document("guess.plan")
    return WayBack(scene, commands, committed, swapped_truth(scene), document, guessed, b_before)


def test_every_commit_on_b_is_a_row_that_names_the_topic_on_a(way_back: WayBack) -> None:
    assert {place: row["source_committed"] for place, row in way_back.rows.items()} == way_back.committed
    scene = way_back.scene
    for (_, topic, _), row in way_back.rows.items():
        assert scene.copy(row["target_topic"]) == topic and row["target_topic"] in scene.topics
    header = way_back.document["header"]
    options = scene.lab.options
    assert header["failback"] and header["settings"]["failback"] == "yes"
    assert (header["source_alias"], header["target_alias"]) == (options.target_alias, options.source_alias)


def losing(way_back: WayBack, rows: Mapping[Place, Mapping[str, Any]], but_for_read: bool = False) -> dict[Place, Any]:
    """Rows that lose records; with `but_for_read`, records of which the group has read a copy on B do not count."""
    found = {}
    for place, row in rows.items():
        truth, committed = way_back.truth[place[1:]], row["source_committed"]
        lost = oracle.lost(truth, committed, row["target_offset"])
        if but_for_read:
            lost -= {record.identity for record in truth.source.records if record.offset < committed}
        if lost:
            found[place] = (row["target_offset"], oracle.best(truth, committed), len(lost))
    return found


def test_no_offset_on_a_loses_a_record_and_without_comparing_none_that_was_not_read_on_b(way_back: WayBack) -> None:
    """What a killed MM2 wrote to B twice stands once on A: a group between the two copies has read it already."""
    guessed = rows_of(way_back.guessed)
    assert guessed.keys() == way_back.committed.keys() and {row["grade"] for row in guessed.values()} == {"estimated"}
    for rows, but_for_read in ((way_back.rows, False), (guessed, True)):
        wrong = losing(way_back, rows, but_for_read)
        assert not wrong, f"{way_back.scene}: (planned, best, records lost) {wrong}"


def test_rows_stand_at_the_oracles_optimum_or_say_at_most_how_much_is_read_twice(way_back: WayBack) -> None:
    """An offset without a record (a marker, or an aborted record) is as good as that of the next record.

    What a killed MM2 wrote to B twice is owed wherever the second copy lies ahead of the group: it would read that
    again on B as well.
    """
    behind = 0
    for place, row in way_back.rows.items():
        truth, committed = way_back.truth[place[1:]], row["source_committed"]

        def first(offset: int, log: Log = truth.target) -> int:
            return next((r.offset for r in log.records if r.offset >= offset), log.end)

        best, planned = first(oracle.best(truth, committed)), first(row["target_offset"])
        told = f"{way_back.scene}: {place} best {best}, planned {planned}: {row}"
        assert row["grade"] in ("exact", "bounded"), told
        owed = oracle.owed(truth, committed)
        for_nothing = sum(r.offset >= planned and r.identity not in owed for r in truth.target.records)
        assert planned == best if row["grade"] == "exact" else for_nothing <= row["rereads_at_most"], told
        behind += planned != best
    assert behind <= len(way_back.rows) // 50, f"{way_back.scene}: {behind} of {len(way_back.rows)} rows behind"


def test_apply_says_first_what_is_written_writes_to_a_and_rollback_restores_what_a_had(way_back: WayBack) -> None:
    scene, commands, lab = way_back.scene, way_back.commands, way_back.scene.lab
    a, b, groups = lab.options.source_alias, lab.options.target_alias, set(way_back.scene.commits)
    # A group that read nothing on B may have its offsets on A still: the way back does not move it then.
    back = {row["group"] for row in way_back.rows.values() if row["decision"] == "set"}
    assert back, scene

    def on_a() -> Commits:
        return commits_on(lab.source_bootstrap, groups)

    def shown_where_the_groups_are(on_a: set[str]) -> None:
        told = commands.run("show", "there.plan", "back.plan").expect(0)
        counted = re.findall(r"^on (\S+): (\d+) groups?: ", told.stdout, re.MULTILINE)
        expected = [(alias, str(len(on))) for alias, on in ((a, on_a), (b, groups - on_a)) if on]
        assert counted == expected and "do not say" not in told.stdout, told

    def said_first(ran: Ran) -> None:
        first = ran.expect(0).stdout.splitlines()[0]
        assert first.startswith("FAILBACK") and f"{a} is what is written" in first

    before = on_a()
    said_first(commands.apply("back.plan"))
    assert on_a() == before
    said_first(commands.execute("back.plan"))
    written = by_place(on_a())
    assert on_a() != before
    for row in way_back.rows.values():
        assert written[row["group"], row["target_topic"], row["partition"]] == row["target_offset"]
    verified = json.loads(commands.verify("back.plan", "--records", "--format", "json").expect(0).stdout)
    assert set(verified["counts"]) == {"equal"}
    exact = {r["verdict"] for r in verified["records"] if r["grade"] == "exact"}
    assert exact <= {"equal", "at-end"}, f"{scene}: {exact}"
    shown_where_the_groups_are(back)
    commands.undo("back.plan").expect(0)
    shown_where_the_groups_are(set())
    assert on_a() == before
    assert portrait(lab.target_bootstrap, lab.options) == way_back.b_before, "B was written"


@pytest.mark.long
def test_records_on_b_only_that_a_group_has_not_read_block_it(way_back: WayBack) -> None:
    """Last of this module: it writes to B."""
    scene, commands = way_back.scene, way_back.commands
    place = (scene.copy(scene.topic("plain")), 0)
    producer = Producer({"bootstrap.servers": scene.lab.target_bootstrap, **QUIET})
    for number in range(5):
        producer.produce(place[0], f"local {number}", None, place[1], headers={"id": f"local-{number}".encode()})
    assert producer.flush(CALL_SECONDS) == 0
    end = read_logs(scene.lab.target_bootstrap, [place])[place].end
    readers = sorted({group for group, *where in way_back.committed if tuple(where) == place})
    assert len(readers) >= 2, f"{scene}: too few groups read {place}"
    done = readers[0]
    commit(scene.lab.target_bootstrap, {done: {place: end}})
    options = ("--failback", "--group", f".*{scene.suffix}", "--rewind", "set")
    commands.plan("unread.plan", *options).expect(3)
    rows = rows_of(commands.document("unread.plan"))
    reasons = {group: rows[group, *place]["reason"] for group in readers}
    assert {group for group, why in reasons.items() if why == "unread-on-target-only"} == set(readers[1:]), reasons
    blocked = {group for (group, _, _), row in rows.items() if row["decision"] == "block"}
    assert blocked == set(readers[1:])
    commands.plan("accepted.plan", *options, "--accept", "unread-on-target-only").expect(0)

"""Cutovers behind a replicator that is not MirrorMaker: killed, with names by a map, judged by the oracle."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from migrate.match.least_timestamp import SPAN_MS
from tests.integration import oracle
from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import Partition, by_place, commits_on
from tests.integration.copiedscene import DROPPED_KEY, CopiedScene
from tests.integration.judge import Judge, told
from tests.integration.oracle import Truth, Written
from tests.lab.copier import Ways
from tests.lab.lab import Lab
from tests.seeds import new_seed

GROUPS = 12
AS_IT_IS = Ways()
UNSEEN_2, UNSEEN_3 = ("; ".join(f"partition {p}: the records do not show it" for p in range(n)) for n in (2, 3))
Row = Mapping[str, Any]


def copied(lab: Lab, folder: Path, kills: int = 2, ways: Ways = AS_IT_IS) -> CopiedScene:
    """Two topics, timestamps that fall by up to two minutes, aborted transactions; a replicator killed amid it."""
    scene = CopiedScene(lab, "copied", new_seed())
    plain, tx = scene.create("plain", 3), scene.create("tx", 2)
    replicator = scene.copier(folder, ways)

    def write() -> None:
        for _ in range(2):
            scene.write([(plain, p) for p in range(3)], 750)
            scene.write_transactions([(tx, p) for p in range(2)], 150)
            # Timestamps are known to be kept only by records that are far enough apart.
            scene.let_pass(SPAN_MS)

    for _ in range(kills):
        write()
        scene.kill_amid(replicator)
    write()
    scene.finish(replicator)
    scene.commit_anywhere(GROUPS)
    return scene


def wrong(rows: Iterable[Row], truth: Mapping[Partition, Truth]) -> tuple[int, int]:
    """How many rows lose a record that is on the target, and how many re-read more than they admit."""
    lost = exceeded = 0
    for row in rows:
        asked = (truth[row["source_topic"], row["partition"]], row["source_committed"], row["target_offset"])
        lost += bool(oracle.lost(*asked))
        exceeded += row["rereads_at_most"] is not None and oracle.rereads(*asked) > row["rereads_at_most"]
    return lost, exceeded


def swapped(scene: CopiedScene, truth: Mapping[Partition, Truth]) -> dict[Partition, Truth]:
    """B's logs as what was written, and A's as the copies; by B's partition."""
    return {
        (scene.copy(topic), p): Truth(
            tuple(Written(r.offset, r.identity) for r in place.target.records), place.target, place.source
        )
        for (topic, p), place in truth.items()
    }


def last_copied(truth: Mapping[Partition, Truth]) -> dict[Partition, int]:
    """By partition, the offset of the last source record that has a copy: what lies behind it looks as if it waited."""
    copied = {place: {record.identity for record in of.target.records} for place, of in truth.items()}
    return {p: max(r.offset for r in of.source.records if r.identity in copied[p]) for p, of in truth.items()}


def not_copied_yet(document: Mapping[str, Any]) -> dict[Partition, int]:
    """How many records `not-drained` says to wait for, by partition; of those that it does not name, none."""
    waiting = (check for check in document["checks"] if check["check"] == "not-drained" and check["level"] != "pass")
    told = (
        (c["subject"], re.findall(r"partition (\d+): ([\d,]+) records? not copied yet", c["seen"])) for c in waiting
    )
    return {(topic, int(partition)): int(many.replace(",", "")) for topic, found in told for partition, many in found}


def checks_of(document: Mapping[str, Any], level: str) -> set[str]:
    return {check["check"] for check in document["checks"] if check["counts_as"] == level}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two clusters, and no MirrorMaker at all."""
    with Lab(tmp_path_factory.mktemp("lab"), start_mirror=False) as own:
        yield own


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> CopiedScene:
    return copied(lab, tmp_path_factory.mktemp("copier"))


@pytest.fixture(scope="module")
def commands(scene: CopiedScene, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return scene.commands(tmp_path_factory.mktemp("any"))


@pytest.fixture(scope="module")
def only(scene: CopiedScene) -> tuple[str, ...]:
    return ("--group", f"g[0-9]+-{scene.suffix}")


def test_a_whole_cutover_with_every_row_at_the_best_offset_there_and_back(
    scene: CopiedScene, commands: CommandLine, only: tuple[str, ...]
) -> None:
    status = commands.run("status", *commands.clusters, *only, "--settle", "1").expect(0)
    assert "not asked: another replicator" in status.stdout
    commands.plan("c.plan", *only).expect(0)
    document, truth = commands.document("c.plan"), scene.truth()
    rows = document["rows"]
    assert len(rows) == GROUPS * 5 and {row["target_topic"] for row in rows} == {scene.copy(t) for t in scene.topics}
    assert not scene.contradictions(truth) and sum(map(oracle.replayed, truth.values())) > 0
    score = Judge(scene, truth, {}, whole=True).score(rows)
    assert not score.complaints, told(score.complaints)
    assert not score.pooled_short, "\n".join(text for _, text in score.pooled_short)
    assert wrong(rows, truth)[0] == 0
    assert document["header"]["flow"]["replicator"] == "any"
    assert {"old-offset-syncs", "mm2-tasks", "mm2-checkpoints-topic"} <= checks_of(document, "pass")

    commands.execute("c.plan").expect(0)
    assert by_place(commits_on(scene.lab.target_bootstrap, scene.commits)) == planned_offsets(rows)
    commands.verify("c.plan", "--records").expect(0)
    commands.plan("back.plan", *only, "--failback", "--rewind", "set").expect(0)
    back, way_back = commands.document("back.plan")["rows"], swapped(scene, truth)
    assert {row["target_topic"] for row in back} == set(scene.topics) and len(back) == len(rows)
    assert wrong(back, way_back)[0] == 0
    commands.undo("c.plan").expect(0)
    assert not commits_on(scene.lab.target_bootstrap, scene.commits)


def test_timestamps_alone_lose_nothing_and_what_they_do_not_tell_is_a_block_to_be_accepted(
    scene: CopiedScene, commands: CommandLine, only: tuple[str, ...]
) -> None:
    planned = commands.plan("t.plan", *only, "--by", "timestamp", "--accept", "not-drained").expect(0)
    assert "reading the timestamps of 5 partitions" in planned.stderr
    document, truth = commands.document("t.plan"), scene.truth()
    not_drained = [check for check in document["checks"] if check["check"] == "not-drained"]
    assert {check["seen"] for check in not_drained} == {UNSEEN_3, UNSEEN_2} and all(c["accepted"] for c in not_drained)
    rows = document["rows"]
    assert {(row["grade"], row["method"], row["why"]) for row in rows} == {("bounded", "timestamp", "least-timestamp")}
    assert wrong(rows, truth) == (0, 0)


def test_two_topics_that_would_share_a_name_are_both_blocked(
    scene: CopiedScene, commands: CommandLine, only: tuple[str, ...]
) -> None:
    (commands.folder / "shared.csv").write_text(
        "source_topic,target_topic\n" + "".join(f"{t},eu.one\n" for t in scene.topics)
    )
    shared = [word if word != "names.csv" else "shared.csv" for word in commands.clusters]
    commands.against(*shared).plan("shared.plan", *only, "--no-match").expect(3)
    rows = commands.document("shared.plan")["rows"]
    assert {(row["decision"], row["reason"]) for row in rows} == {("block", "topic-not-replicated")}
    assert {row["source_topic"] for row in rows} == set(scene.topics)


@pytest.mark.long
def test_a_replicator_that_stamps_records_anew_is_compared_all_the_same_and_never_trusted_by_its_timestamps(
    lab: Lab, tmp_path: Path
) -> None:
    scene = copied(lab, tmp_path, 1, Ways(keeps_time=False))
    commands, only = scene.commands(tmp_path), ("--group", f"g[0-9]+-{scene.suffix}")
    commands.plan("c.plan", *only).expect(0)
    rows, truth = commands.document("c.plan")["rows"], scene.truth()
    score = Judge(scene, truth, {}, whole=True).score(rows)
    assert not score.complaints and not score.pooled_short, told(score.complaints)
    assert wrong(rows, truth)[0] == 0
    commands.plan("t.plan", *only, "--by", "timestamp", "--accept", "not-drained").expect(3)
    assert checks_of(commands.document("t.plan"), "block") == {"timestamps-not-kept"}


@pytest.mark.long
def test_a_replicator_that_leaves_records_out_loses_no_other(lab: Lab, tmp_path: Path) -> None:
    scene = copied(lab, tmp_path, 1, Ways(drops_key=DROPPED_KEY))
    commands, only = scene.commands(tmp_path), ("--group", f"g[0-9]+-{scene.suffix}")
    accepted = ("--accept", "missing-on-target", "--accept", "not-drained")
    commands.plan("c.plan", *only, *accepted).expect(0)
    document, truth = commands.document("c.plan"), scene.truth()
    rows, last = document["rows"], last_copied(truth)
    named = {check["subject"] for check in document["checks"] if check["check"] == "missing-on-target"}
    behind = {place: sum(r.offset > last[place] for r in of.source.records) for place, of in truth.items()}
    assert not_copied_yet(document) == {place: many for place, many in behind.items() if many}
    score = Judge(scene, truth, {}, whole=False, named=frozenset(named), last_copied_offset=last).score(rows)
    assert wrong(rows, truth) == (0, 0)
    assert named and not score.complaints, told(score.complaints)
    commands.plan("t.plan", *only, "--by", "timestamp", *accepted).expect(0)
    assert wrong(commands.document("t.plan")["rows"], truth) == (0, 0)

"""Topics that are compacted and deleted from (cleanup.policy=compact,delete) through a whole cutover.

Kafka really compacts and really deletes: on both sides, on the source alone, and on the target alone, where an owed
record is gone for good and the plan has to say so.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration import oracle
from tests.integration.cli import CommandLine, planned_offsets
from tests.integration.clusters import (
    READ_SECONDS,
    Partition,
    all_syncs,
    alter_topic,
    bounds,
    by_place,
    commits_on,
    read_as_groups,
)
from tests.integration.judge import Judge, told
from tests.integration.killedscene import kill_mid_stream, wait_cleaned
from tests.integration.oracle import Truth
from tests.integration.placement import commit_densely
from tests.integration.scene import COMPACTED, Scene
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

MINUTE_MS = 60_000
BOTH_POLICIES = COMPACTED | {"cleanup.policy": "compact,delete", "retention.ms": str(7 * 24 * 60 * MINUTE_MS)}
# A scene's clock starts an hour ago: what is written first falls to this retention, what follows the pause does not.
SHORT, PAUSE_MS = {"retention.ms": str(55 * MINUTE_MS)}, 50 * MINUTE_MS
GROUPS = 30
# MM2 must not carry a topic's shorter retention to the other side by itself.
OPTIONS = MirrorOptions(extra={"sync.topic.configs.enabled": "false"})

Place = tuple[str, str, int]


def lapse(bootstrap: str, topic: str, ends: Mapping[Partition, int]) -> None:
    """Shorten a topic's retention, and wait until its logs start where they ended when the clock paused."""
    alter_topic(bootstrap, topic, SHORT)
    places = [place for place in ends if place[0] == topic]
    assert places, f"nobody knows where {topic} ended"

    def lapsed() -> bool:
        return all(low == ends[place] for place, (low, _) in bounds(bootstrap, places).items())

    wait_until(lapsed, READ_SECONDS, f"retention to delete the first records of {topic}", poll_seconds=1.0)


def staged(lab: Lab) -> tuple[Scene, Scene]:
    """A scene whose source alone has let records go, and one whose target has: on two topics, one on both sides."""
    early, lapsed = Scene(lab, "early", new_seed()), Scene(lab, "lapsed", new_seed())
    scenes = (early, lapsed)
    source_only = early.create("source-only", 2, BOTH_POLICIES)
    on_both, target_only = lapsed.create("both", 2, BOTH_POLICIES), lapsed.create("target-only", 2, BOTH_POLICIES)

    def write(keys_of_lapsed: int = 200) -> None:
        early.write_compacted(early.partitions, 3000, keys=200)
        lapsed.write_compacted(lapsed.partitions, 3000, keys_of_lapsed)

    # Most of these keys are never written again: no cleaner takes their records, only retention does.
    write(keys_of_lapsed=600)
    for scene in scenes:
        scene.wait_replicated()
    ends = {place: high for scene in scenes for place, (_, high) in scene.source_ends().items()}
    copies = [(scene.copy(t), p) for scene in scenes for t, p in scene.partitions]
    copied = {place: high for place, (_, high) in bounds(lab.target_bootstrap, copies).items()}
    # First: once a cleaner has merged old segments with new ones, Kafka keeps both as long as it keeps the new.
    lapse(lab.source_bootstrap, source_only, ends)
    lapse(lab.source_bootstrap, on_both, ends)
    lapse(lab.target_bootstrap, lapsed.copy(on_both), copied)
    lapse(lab.target_bootstrap, lapsed.copy(target_only), copied)
    for scene in scenes:
        scene.let_pass(PAUSE_MS)
    kill_mid_stream(lapsed, write)
    lab.mirror.start()
    write()
    for scene in scenes:
        scene.wait_replicated()
        wait_cleaned(scene, list(scene.topics))
        commit_densely(scene, GROUPS)
    return scenes


def compacted(written: Sequence[oracle.Written], log: oracle.Log) -> bool:
    """True if a cleaner has taken records above the log's start."""
    return len(log.records) < sum(record.committed and record.offset >= log.start for record in written)


def assert_it_is_what_it_says(scene: Scene, truth: Mapping[Partition, Truth]) -> None:
    assert not scene.contradictions(truth)
    for (topic, p), place in truth.items():
        on_source, on_target = not topic.startswith("target-only"), not topic.startswith("source-only")
        assert (place.source.start > 0) is on_source and (place.target.start > 0) is on_target, f"{topic}-{p}"
        assert compacted(place.written, place.source), f"{topic}-{p}: the source's cleaner took nothing"
        originals = {r.identity for r in place.written if r.offset >= place.source.start}
        left = {r.identity for r in place.target.records}
        assert originals - left, f"{topic}-{p}: the target's cleaner took nothing"


def lost_by_readers(
    scenes: Collection[Scene], read: Mapping[str, Mapping[Partition, Sequence[oracle.Found]]]
) -> dict[Place, int]:
    """How many owed records that stand on the target a real consumer of each group was not given."""
    lost: dict[Place, int] = {}
    for scene in scenes:
        truth = scene.truth()
        for (group, topic, p), committed in scene.places.items():
            there = {record.identity for record in truth[topic, p].target.records}
            given = {record.identity for record in read[group][scene.copy(topic), p]}
            if gone := (oracle.owed(truth[topic, p], committed) & there) - given:
                lost[group, topic, p] = len(gone)
    return lost


def test_a_cutover_of_topics_that_are_compacted_and_deleted_from_loses_nothing_that_kafka_has_left(
    lab_factory: Callable[..., Lab], tmp_path: Path
) -> None:
    lab = lab_factory(mirror=OPTIONS)
    scenes = early, lapsed = staged(lab)
    commands = CommandLine.of(lab, tmp_path)
    chosen = ("--group", f".*-({early.suffix}|{lapsed.suffix})")

    refused = commands.plan("refused.plan", *chosen).expect(3)
    assert "missing-on-target" in refused.stdout + refused.stderr, str(refused)
    commands.plan("c.plan", *chosen, "--accept", "missing-on-target").expect(0)
    document = commands.document("c.plan")
    named = frozenset(c["subject"] for c in document["checks"] if c["check"] == "missing-on-target")
    assert {subject.split("/")[1].split("-lapsed")[0] for subject in named} == {"target-only"}, named
    wanted = judged_rows(scenes, document["rows"], named)

    groups = [group for scene in scenes for group in scene.commits]
    commands.execute("c.plan").expect(0)
    found = commits_on(lab.target_bootstrap, groups)
    assert by_place(found) == wanted
    commands.verify("c.plan", "--records").expect(0)
    read = read_as_groups(lab.target_bootstrap, found)
    assert any(records for at in read.values() for records in at.values())
    lost = lost_by_readers(scenes, read)
    assert not lost, f"{scenes}: records lost {lost}"
    commands.undo("c.plan").expect(0)
    assert not commits_on(lab.target_bootstrap, groups)


def judged_rows(
    scenes: Collection[Scene], rows: Sequence[Mapping[str, Any]], named: frozenset[str]
) -> dict[Place, int]:
    """Hold every row against its scene's truth; returns the planned offset by group, target topic and partition."""
    for scene in scenes:
        own = [row for row in rows if row["group"].endswith(scene.suffix)]
        assert {(r["group"], r["source_topic"], r["partition"]): r["source_committed"] for r in own} == scene.places
        truth = scene.truth()
        assert_it_is_what_it_says(scene, truth)
        # Where retention works on the target, records are gone that no offset can bring back.
        score = Judge(scene, truth, all_syncs(scene.lab), whole=scene.name == "early", named=named).score(own)
        print(score)
        assert score.judged["loss"] == len(own) == GROUPS * len(scene.partitions)
        assert score.judged["best"] > 0 and not score.complaints, told(score.complaints)
        below = [place for place, offset in scene.places.items() if offset < truth[place[1:]].source.start]
        assert below, f"{scene}: no group stands below the source's log start"
    return planned_offsets(rows)

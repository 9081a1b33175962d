"""The flows and scenes that exact translation is judged on: each flow is one real MM2, each scene has its own trouble.

A flow has aliases and topics of its own, so that many run one after the other between the same two clusters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integration.clusters import (
    READ_SECONDS,
    Partition,
    alter_topic,
    create_topic,
    delete_before,
    delete_topic,
    partitions_of,
    read_logs,
)
from tests.integration.killedscene import is_behind, kill_mid_stream, wait_cleaned
from tests.integration.placement import commit_densely
from tests.integration.scene import COMPACTED, SEGMENT_MS, Scene
from tests.lab.lab import Lab
from tests.lab.options import MirrorOptions
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

EVERY = range(8)
HALF = range(4)


@dataclass(frozen=True)
class Staged:
    """A scene that is ready to be planned.

    `whole`: whatever the source still has is on the target, too; else MM2 or the scene has lost some of it, or, where
    it is not drained, MM2 has not copied it yet: then `last_copied_offset` is MM2's own position, by source partition.
    """

    scene: Scene
    whole: bool = True
    last_copied_offset: Mapping[Partition, int] | None = None

    @property
    def drained(self) -> bool:
        """True if nothing is still to come."""
        return self.last_copied_offset is None


@dataclass(frozen=True)
class Flow:
    """One MM2: options of the lab, and what is staged on it. `scenes` are the names, for MM2's filters."""

    scenes: tuple[str, ...]
    stage: Callable[[Lab, Sequence[Scene]], list[Staged]]
    version: str = "4.3.1"
    settings: tuple[tuple[str, Any], ...] = ()
    target_lines: tuple[tuple[str, str], ...] = ()

    def options(self, run: int) -> MirrorOptions:
        """The lab's options for one run of this flow, under names that no other has."""
        source, target = f"{self.scenes[0]}{run}A", f"{self.scenes[0]}{run}B"
        topics = ",".join(f".*-{scene}{run}-[0-9a-f]+" for scene in self.scenes)
        extra = {f"{target}.{key}": value for key, value in self.target_lines}
        return MirrorOptions(source, target, topics=topics, groups=topics, extra=extra, **dict(self.settings))

    def run(self, lab: Lab, run: int) -> list[Staged]:
        """Stage every scene of the flow between the lab's clusters, with seeds that nobody chose."""
        lab.change_mirror(self.options(run))
        scenes = [Scene(lab, f"{scene}{run}", new_seed()) for scene in self.scenes]
        staged = self.stage(lab, scenes)
        for ready in staged:
            commit_densely(ready.scene)
        return staged


def copied_through_kills(lab: Lab, scenes: Sequence[Scene], write: Callable[[], None], kills: int) -> None:
    """Let MM2 copy what `write` writes, killed -9 in the middle of it each time but the last."""
    lab.mirror.start()
    lab.mirror.wait_ready()
    for _ in range(kills):
        kill_mid_stream(scenes[0], write)
        lab.mirror.start()
    write()
    for scene in scenes:
        scene.wait_replicated()


def usual(kills: int) -> Callable[[Lab, Sequence[Scene]], list[Staged]]:
    """Four plain partitions and four with transactions, a quarter of them aborted."""

    def stage(lab: Lab, scenes: Sequence[Scene]) -> list[Staged]:
        for scene in scenes:
            scene.create("plain", len(HALF))
            scene.create("tx", len(HALF))

        def write() -> None:
            for scene in scenes:
                scene.write([(scene.topic("plain"), p) for p in HALF], 900)
                scene.write_transactions([(scene.topic("tx"), p) for p in HALF], 700)

        copied_through_kills(lab, scenes, write, kills)
        return [Staged(scene) for scene in scenes]

    return stage


def halted(lab: Lab, scenes: Sequence[Scene]) -> list[Staged]:
    """MM2 is killed while it copies, and again while it replays what it had copied before."""
    (scene,) = scenes
    topic = scene.create("plain", len(EVERY))
    lab.mirror.start()
    lab.mirror.wait_ready()

    def write() -> None:
        scene.write([(topic, p) for p in EVERY], 2000)

    kill_mid_stream(scene, write)
    lab.mirror.start()
    kill_mid_stream(scene, write)
    copied = scene.copied()
    with lab.mirror.copying_held():
        lab.mirror.start()
        wait_until(lambda: scene.copied() > copied, READ_SECONDS, f"MM2 to replay {scene}")
        lab.mirror.kill()
    assert is_behind(scene), f"{scene}: MM2 was through before it was killed"
    return [Staged(scene, whole=False, last_copied_offset=lab.mirror.progress.recorded())]


def beside_a_local_writer(lab: Lab, scenes: Sequence[Scene]) -> list[Staged]:
    """Names stay what they are, and somebody writes to the copies as well, before, amid and behind MM2's records."""
    local, other = scenes
    topic, theirs = local.create("plain", len(EVERY)), other.create("plain", len(EVERY))
    lab.mirror.start()
    lab.mirror.wait_ready()
    wait_until(lambda: partitions_of(lab.target_bootstrap, [topic]), READ_SECONDS, f"the copy of {topic}")

    def write() -> None:
        for _ in range(4):
            local.write([(topic, p) for p in EVERY], 400)
            local.write_locally([(topic, p) for p in EVERY], 60)
            other.write([(theirs, p) for p in EVERY], 300)

    kill_mid_stream(other, write)
    lab.mirror.start()
    write()
    local.wait_replicated(compare_last=False)
    other.wait_replicated()
    return [Staged(local), Staged(other)]


def troubled(lab: Lab, scenes: Sequence[Scene]) -> list[Staged]:
    """What befalls topics: look-alikes, other clocks, compaction, truncation, and topics that are created anew."""
    twins, appended, compacted, trimmed, running, stopped, target = scenes
    twins.twins = 0.5
    for scene in (twins, appended, running, target):
        scene.create("plain", len(EVERY))
    create_topic(
        lab.target_bootstrap,
        appended.copy(appended.topic("plain")),
        len(EVERY),
        {"message.timestamp.type": "LogAppendTime"},
    )
    both = compacted.create("both", len(HALF), COMPACTED)
    # The target's copy is made before the source is compacted, and is not.
    alone = compacted.create("alone", len(HALF), {"segment.ms": str(SEGMENT_MS)})
    early, late = trimmed.create("early", len(HALF)), trimmed.create("late", len(HALF))
    short, long = stopped.create("short", len(HALF)), stopped.create("long", len(HALF))

    def write(scene: Scene, records: int, *topics: str) -> None:
        scene.write([place for place in scene.partitions if not topics or place[0] in topics], records)

    def write_all() -> None:
        for _ in range(4):
            for scene in (twins, appended, trimmed, running, stopped, target):
                write(scene, 120)
            compacted.write_compacted(compacted.partitions, 250, keys=100)

    def write_the_rest() -> None:
        for scene in (twins, appended, trimmed, running, target):
            write(scene, 600)
        compacted.write_compacted(compacted.partitions, 1000, keys=100)

    def wait_copied() -> None:
        for scene in (twins, appended, compacted, trimmed, target):
            scene.wait_replicated()

    lab.mirror.start()
    lab.mirror.wait_ready()
    kill_mid_stream(twins, write_all)
    lab.mirror.start()
    write_the_rest()
    wait_copied()
    for scene in (running, stopped):
        scene.wait_replicated()
    # MM2 runs, and finds a shorter log than it remembers.
    running.create_anew(running.topic("plain"))
    write(running, 160)
    wait_last_copied(running)
    write(running, 3000)
    wait_last_copied(running)
    # MM2 is away, and comes back to a shorter log, to a longer one, and to no copy at all.
    lab.mirror.kill()
    stopped.create_anew(short)
    stopped.create_anew(long)
    write(stopped, 300, short)
    write(stopped, 2000, long)
    delete_topic(lab.target_bootstrap, target.copy(target.topic("plain")))
    write(target, 400)
    alter_topic(lab.source_bootstrap, alone, COMPACTED)
    compacted.compacted.add(alone)
    lab.mirror.start()
    write_the_rest()
    wait_copied()
    for scene in (running, stopped):
        wait_last_copied(scene)
    for p in HALF:
        delete_before(lab.source_bootstrap, early, p, len(trimmed.written[early, p]) // 3)
        delete_before(lab.target_bootstrap, trimmed.copy(late), p, len(trimmed.written[late, p]) // 3)
    wait_cleaned(compacted, (both, alone))
    return [
        Staged(twins),
        Staged(appended),
        Staged(compacted),
        Staged(trimmed, whole=False),
        Staged(running, whole=False),
        Staged(stopped, whole=False),
        Staged(target, whole=False),
    ]


def wait_last_copied(scene: Scene) -> None:
    """Wait until MM2's own offsets are those of each partition's last record, and its copy ends the target's log.

    What the lab's condition cannot tell of a topic that was created anew: MM2's offsets may still be the old ones.
    """
    ends = scene.source_ends()

    def copied() -> bool:
        recorded = scene.lab.mirror.progress.recorded()
        if any(recorded.get(place) != high - 1 for place, (_, high) in ends.items()):
            return False
        logs = read_logs(scene.lab.target_bootstrap, [(scene.copy(t), p) for t, p in scene.partitions])
        last = {place: scene.written[place][-1].identity for place in scene.partitions}
        return all(
            logs[scene.copy(t), p].records[-1].identity == scene.looks.get(name, name) for (t, p), name in last.items()
        )

    wait_until(copied, READ_SECONDS, f"the last records of {scene} to be copied", poll_seconds=0.5)


FLOWS = {
    "troubled": Flow(("twins", "appended", "compacted", "trimmed", "running", "stopped", "target"), troubled),
    "exactly-once": Flow(("once",), usual(kills=2), settings=(("exactly_once", True),)),
    "few-syncs": Flow(
        ("few",),
        usual(kills=1),
        settings=(("offset_lag_max", 1000),),
        target_lines=(("offset.flush.interval.ms", "8000"),),
    ),
    "identity-names": Flow(
        ("local", "onto"),
        beside_a_local_writer,
        settings=(("policy", "identity"), ("offset_syncs_location", "target")),
    ),
    "without-syncs": Flow(("silent",), usual(kills=1), settings=(("emit_offsets", False),)),
    "halted": Flow(("halted",), halted, target_lines=(("offset.flush.interval.ms", "3000"),)),
    "kafka-3.9.2": Flow(("older",), usual(kills=1), version="3.9.2"),
}

"""Logs of both clusters in memory, syncs and commits, and their comparing by Spark: what tests of it share."""

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from migrate.match.compare import compare_records
from migrate.match.equality import Content
from migrate.match.protocol import Comparison, FetchEstimate, Limits, Listener, OffsetPair, Work
from migrate.mm2.chain import chain
from migrate.mm2.flow import Flow
from migrate.mm2.wire import SyncRecord
from migrate.model import OffsetSync, TopicPartition
from migrate.spark.syncs import Syncs
from migrate.spark.tasks import SparkTasks
from tests.memorylogs import Log, MemoryReader, MemoryReaders, log_range, record
from tests.spark.records import FLOW, frame
from tests.wirebytes import encode_sync

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_LIMITS = Limits(1_000_000, None)
# Topic names in Kafka are tamer than this; nothing here may depend on it.
TOPICS = ["t", "t-1", 'it\'s "quoted"', "名前"]

# What may become of a record on its way.
CHANGED: dict[str, Callable[[int, Content], Content]] = {
    "reheaded": lambda n, content: replace(content, headers=(("h", b'"1"'),)),
    "retimed": lambda n, content: replace(content, timestamp=9_000),
    "garbled": lambda n, content: Content(5, b"?", b"?%d" % n, ()),
    "altered": lambda n, content: replace(content, value=b"?"),
    # Now and then the target's own timestamp is the source's.
    "stamped": lambda n, content: replace(content, value=b"?", timestamp=content.timestamp + n % 3),
}


@dataclass
class Scene:
    """Logs of both clusters, the syncs between them as MM2 wrote them, and commits."""

    source: dict[TopicPartition, Log] = field(default_factory=dict)
    target: dict[TopicPartition, Log] = field(default_factory=dict)
    syncs: list[tuple[TopicPartition, int, int]] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    unreadable: list[TopicPartition] = field(default_factory=list)

    def add(
        self, place: TopicPartition, log: Log, copy: Log, syncs: list[tuple[int, int]], committed: tuple[int, ...]
    ) -> None:
        to = copy_of(place)
        self.source[place], self.target[to] = log, copy
        self.syncs += [(place, u, d) for u, d in syncs]
        self.works.append(Work(place, to, log_range(log), log_range(copy), tuple(sorted(committed))))

    def readers(self) -> MemoryReaders:
        target = MemoryReader(self.target, dict.fromkeys(self.unreadable, "TOPIC_AUTHORIZATION_FAILED"))
        return MemoryReaders(MemoryReader(self.source), target)

    def turned(self) -> "Scene":
        """The way back: of each work the copy is compared with its original."""
        works = [
            Work(w.target, w.source, w.target_log, w.source_log, (w.target_log.end // 2,), source_has_copies=True)
            for w in self.works
        ]
        return Scene(self.target, self.source, self.syncs, works)

    def chain_of(self, flow: Flow, of: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """The chain of a partition, by its name on MM2's source, made by the plain function."""
        mine = [OffsetSync(n, *flow.turned(u, d)) for n, (place, u, d) in enumerate(self.syncs) if place == of]
        return tuple((s.source_offset, s.target_offset) for s in chain(mine, source_end, target_end))


def copy_of(place: TopicPartition) -> TopicPartition:
    return TopicPartition(f"A.{place.topic}", place.partition)


def random_scene(seed: int) -> Scene:
    """Partitions with restarts, gaps, stale syncs, changed copies, and some never synced or not to be read."""
    rnd, scene = random.Random(seed), Scene()
    places = [TopicPartition(topic, p) for topic in TOPICS for p in range(4)]
    for place in places:
        log = {n: record(n) for n in range(rnd.randrange(1, 400)) if rnd.random() < 0.95}
        copy: dict[int, Content] = {}
        syncs, offset, pending = [], 0, sorted(log)
        while pending:
            number = pending.pop(0)
            copy[offset] = log[number]
            if rnd.random() < 0.05:
                syncs.append((number, offset))
            offset += 1 + (rnd.random() < 0.02)
            if rnd.random() < 0.004:
                pending = [n for n in sorted(log) if n >= number - rnd.randrange(40)]
        end = max(log, default=0)
        committed = tuple(rnd.sample(range(end + 1), rnd.randrange(1, min(20, end + 2))))
        scene.add(place, log, copy, syncs if rnd.random() < 0.8 else [], committed)
    rnd.shuffle(scene.syncs) if rnd.random() < 0.3 else None
    scene.unreadable.append(copy_of(places[1]))
    # Of a log that is no more: they lie beyond an end.
    scene.syncs += [(places[0], 10**6, 3), (places[0], 3, 10**6)]
    log = {n: Content(100_000 + 100 * n, b"k%d" % n, b"v%d" % n, (("h", b"1"),)) for n in range(200)}
    for topic, changed in CHANGED.items():
        syncs = [] if topic == "stamped" else [(n, n) for n in range(0, 200, 20)]
        scene.add(TopicPartition(topic, 0), log, {n: changed(n, c) for n, c in log.items()}, syncs, (50, 120, 200))
    return scene


class Heard:
    """What a comparison said of itself."""

    def __init__(self) -> None:
        self.estimates: list[FetchEstimate] = []
        self.advances: list[tuple[int, int]] = []
        self.listener = Listener(self.estimates.append, lambda done, total: self.advances.append((done, total)))


def compare(
    spark: "SparkSession", scene: Scene, limits: Limits = NO_LIMITS, flow: Flow = FLOW, heard: "Heard | None" = None,
    held: bool = False, error: Exception | None = None,
) -> Comparison:  # fmt: skip
    """Compare by Spark, where the syncs are too unless they are `held`."""
    pairs = [encode_sync(SyncRecord(p.topic, p.partition, u, d)) for p, u, d in scene.syncs]
    with closing(Syncs(frame(spark, pairs), flow)) as syncs:
        chains = partial(scene.chain_of, flow) if held else syncs
        tasks = SparkTasks(lambda: spark, lambda: chains, replace(scene.readers(), error=error))
        return compare_records(tasks, scene.works, limits, (heard or Heard()).listener)


def plain(place: TopicPartition) -> Scene:
    scene, log = Scene(), {n: record(n) for n in range(200)}
    scene.add(place, log, log, [(u, u) for u in range(0, 200, 20)], (50,))
    return scene

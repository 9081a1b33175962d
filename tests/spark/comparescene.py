"""Logs of both clusters in memory, syncs and commits, and their comparing by Spark: what tests of it share."""

import random
from dataclasses import dataclass, field, replace
from functools import partial

from migrate.match.compare import compare_records
from migrate.match.equality import Content, Equality
from migrate.match.protocol import (
    Comparison,
    FetchEstimate,
    Limits,
    Listener,
    OffsetPair,
    PartitionAnswer,
    PartitionQuestion,
    Work,
    no_chain,
)
from migrate.match.task import match_partitions
from migrate.mm2.chain import chain
from migrate.mm2.flow import Flow
from migrate.mm2.wire import SyncRecord
from migrate.model import OffsetSync, TopicPartition
from migrate.spark.syncs import Syncs
from migrate.spark.tasks import SparkTasks
from tests.memorylogs import Log, MemoryReader, MemoryReaders, log_range, record
from tests.spark.records import FLOW, frame
from tests.wirebytes import encode_sync

NO_LIMITS = Limits(1_000_000, None)
# Topic names in Kafka are tamer than this; nothing here may depend on it.
TOPICS = ["t", "t-1", 'it\'s "quoted"', "名前"]


@dataclass
class Scene:
    """Logs of both clusters, the syncs between them as MM2 wrote them, and commits."""

    source: dict[TopicPartition, Log] = field(default_factory=dict)
    target: dict[TopicPartition, Log] = field(default_factory=dict)
    syncs: list[tuple[TopicPartition, int, int]] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)

    def add(
        self,
        place: TopicPartition,
        log: Log,
        copy: Log,
        syncs: list[tuple[int, int]],
        committed: tuple[int, ...],
        start: int = 0,
    ) -> None:
        to = copy_of(place)
        self.source[place], self.target[to] = log, copy
        self.syncs += [(place, u, d) for u, d in syncs]
        self.works.append(Work(place, to, log_range(log, start), log_range(copy), tuple(sorted(committed))))

    def readers(self) -> MemoryReaders:
        return MemoryReaders(MemoryReader(self.source), MemoryReader(self.target))

    def question(self, work: Work, equality: Equality | None) -> PartitionQuestion:
        """What a task should be asked about a partition, made by the plain functions."""
        flow = FLOW.reversed() if work.source_has_copies else FLOW
        sync_pairs = self.chain_of(flow, work.original, work.source_log.end, work.target_log.end)
        assert equality is not None
        return replace(PartitionQuestion.of(work, sync_pairs, NO_LIMITS), equality=equality)

    def chain_of(self, flow: Flow, of: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """The chain of a partition, by its name on MM2's source, made by the plain function."""
        mine = [OffsetSync(n, *flow.turned(u, d)) for n, (place, u, d) in enumerate(self.syncs) if place == of]
        return tuple((s.source_offset, s.target_offset) for s in chain(mine, source_end, target_end))


def copy_of(place: TopicPartition) -> TopicPartition:
    return TopicPartition(f"A.{place.topic}", place.partition)


def random_scene(seed: int) -> Scene:
    """Partitions with restarts, gaps, stale syncs, and some that were never synced."""
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
    return scene


class Heard:
    """What a comparison said of itself."""

    def __init__(self) -> None:
        self.estimates: list[FetchEstimate] = []
        self.advances: list[tuple[int, int]] = []
        self.listener = Listener(self.estimates.append, lambda done, total: self.advances.append((done, total)))


def compare(
    spark,
    scene: Scene,
    limits: Limits = NO_LIMITS,
    flow: Flow = FLOW,
    readers: MemoryReaders | None = None,
    heard: "Heard | None" = None,
    held: bool = False,
) -> Comparison:
    pairs = [encode_sync(SyncRecord(p.topic, p.partition, u, d)) for p, u, d in scene.syncs]
    syncs = Syncs(frame(spark, pairs), flow) if pairs and not held else None
    chains = syncs or (partial(scene.chain_of, flow) if held else no_chain)
    try:
        return compare_records(
            SparkTasks(lambda: spark, lambda: chains, readers or scene.readers()),
            scene.works,
            limits,
            (heard or Heard()).listener,
        )
    finally:
        if syncs:
            syncs.close()


def alone(readers: MemoryReaders, question: PartitionQuestion) -> PartitionAnswer:
    """What one matching answers without Spark, and without others beside it."""
    with readers() as (source, target):
        (outcome,) = match_partitions(source, target, [question])
    assert isinstance(outcome, tuple)
    return outcome[1]


def plain(place: TopicPartition, length: int = 200, committed: tuple[int, ...] = (50,)) -> Scene:
    scene = Scene()
    log = {n: record(n) for n in range(length)}
    scene.add(place, log, log, [(u, u) for u in range(0, length, 20)], committed)
    return scene

"""The eve of a cutover: two clusters, what MM2 has left on them, and groups with commits; no MM2 runs.

One scene for all figures of `scripts/bench plan` and `start`, and for two trees' figures of `scripts/bench apply`.
"""

import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate.mm2.wire import SyncRecord, WireCheckpoint
from scripts.benchmarks.bare import commit_all
from scripts.benchmarks.workload import SYNCS_TOPIC, Workload, flush, produce, producer_for, write_log
from tests.lab.cluster import Cluster, start_clusters
from tests.lab.options import MirrorOptions
from tests.wirebytes import encode_checkpoint, encode_sync

CHECKPOINTS_TOPIC, POSITIONS_TOPIC = "A.checkpoints.internal", "mm2-offsets.A.internal"
# As many as the smallest plan has rows; five of each kind for every row of a larger one, ten of the largest.
SMALL = 300
KINDS_PER_ROW = 5
LARGEST = 1_000_000
USUAL_FLOW = MirrorOptions()


@dataclass(frozen=True)
class Eve:
    """A scene of so many groups, each with a commit on every one of the partitions of one topic."""

    number_of_groups: int
    partitions: int

    @classmethod
    def of(cls, rows: int) -> "Eve":
        """Return the scene of about so many rows: groups of 10 partitions in a small one, of 100 in others."""
        partitions = 10 if rows <= SMALL else 100
        return cls(max(1, rows // partitions), partitions)

    @property
    def rows(self) -> int:
        return self.number_of_groups * self.partitions

    @property
    def groups(self) -> list[str]:
        return [f"group-{number:05}" for number in range(self.number_of_groups)]

    @property
    def syncs(self) -> int:
        """How many offset syncs there are, and how many checkpoints."""
        if self.rows <= SMALL:
            return self.rows
        return (2 * KINDS_PER_ROW if self.rows >= LARGEST else KINDS_PER_ROW) * self.rows

    @property
    def workload(self) -> Workload:
        length = 1_000 if self.rows <= SMALL else 10_000
        return Workload("orders", self.partitions, self.number_of_groups, length, recent=0.95, tail=length // 2)


@dataclass(frozen=True)
class Stage:
    """The clusters of an eve, and the words that name them to our commands, which run in `folder`."""

    eve: Eve
    source: Cluster
    target: Cluster
    folder: Path
    words: tuple[str, ...]


@contextmanager
def on_stage(eve: Eve, folder: Path) -> Iterator[Stage]:
    """Start the clusters, write everything, and stop them in the end."""
    source, target = Cluster("source", folder / "source"), Cluster("target", folder / "target")
    try:
        print(f"Starting two brokers, and writing the eve of a plan of {eve.rows:,} rows ...", flush=True)
        start_clusters(source, target)
        _write(eve, source, target)
        yield Stage(eve, source, target, folder, flow_words(source, target, folder))
    finally:
        for cluster in (source, target):
            cluster.stop()


def flow_words(source: Cluster, target: Cluster, folder: Path, options: MirrorOptions = USUAL_FLOW) -> tuple[str, ...]:
    """Write MM2's configuration to the folder; return the words that name the clusters by it."""
    config = folder / "mm2.properties"
    properties = options.properties(source.bootstrap, target.bootstrap)
    config.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    return "--mm2-config", str(config), "--source", options.source_alias, "--target", options.target_alias


def _write(eve: Eve, source: Cluster, target: Cluster) -> None:
    work, began = eve.workload, time.time_ns() // 1_000_000
    places = ((source, work.name), (target, work.copy))
    for cluster, topic in places:
        cluster.create_topic(topic, eve.partitions)
    for cluster, topic in ((source, SYNCS_TOPIC), (target, CHECKPOINTS_TOPIC), (target, POSITIONS_TOPIC)):
        cluster.create_topic(topic, 1)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        writing = [pool.submit(write_log, cluster.bootstrap, topic, work, began) for cluster, topic in places]
        for each in writing:
            each.result()
    write_topic(source, SYNCS_TOPIC, _syncs(eve))
    write_topic(target, CHECKPOINTS_TOPIC, _checkpoints(eve))
    write_topic(target, POSITIONS_TOPIC, positions(work))
    commits = {
        group: {(work.name, partition): offset for partition, offset in enumerate(offsets)}
        for group, offsets in zip(eve.groups, committed(eve), strict=True)
    }
    commit_all(source.bootstrap, commits)


def committed(eve: Eve) -> Iterator[list[int]]:
    """Yield each group's offset on every partition."""
    number, length = len(eve.groups), eve.workload.length
    for group in range(number):
        # Spread over the last half of the log; no two groups stand alike.
        yield [length - 1 - (group * 7919 + partition * 104_729) % (length // 2) for partition in range(eve.partitions)]


def _syncs(eve: Eve) -> Iterator[tuple[bytes, bytes]]:
    per_partition, length, name = eve.syncs // eve.partitions, eve.workload.length, eve.workload.name
    for number in range(per_partition):
        # A long topic has been through the log more than once, as after restarts.
        offset = number * length // per_partition if per_partition <= length else number % length
        for partition in range(eve.partitions):
            yield encode_sync(SyncRecord(name, partition, offset, offset))


def _checkpoints(eve: Eve) -> Iterator[tuple[bytes, bytes]]:
    rounds, copy = eve.syncs // eve.rows, eve.workload.copy
    for round_number in range(rounds):
        for group, offsets in zip(eve.groups, committed(eve), strict=True):
            for partition, offset in enumerate(offsets):
                below = max(0, offset - 10 * (rounds - round_number))
                yield encode_checkpoint(WireCheckpoint(group, copy, partition, below, below))


def positions(work: Workload, alias: str = "A") -> Iterator[tuple[bytes, bytes]]:
    """Yield MM2's own position at the end of every partition, as key and value."""
    for partition in range(work.partitions):
        place = {"cluster": alias, "partition": partition, "topic": work.name}
        key = json.dumps(["MirrorSourceConnector", place], separators=(",", ":"))
        yield key.encode(), json.dumps({"offset": work.length - 1}).encode()


def write_topic(cluster: Cluster, topic: str, records: Iterator[tuple[bytes, bytes]]) -> None:
    """Write records, key and value, to a topic's first partition."""
    producer = producer_for(cluster.bootstrap)
    for number, (key, value) in enumerate(records):
        produce(producer, topic, 0, key, value, 0)
        if number % 10_000 == 0:
            producer.poll(0)
    flush(producer)

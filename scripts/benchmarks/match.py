"""How fast commits find their places by comparing records, beside one consumer that only reads the same stretches.

Ours: chains out of Spark, calibration, estimate, reading both clusters, fingerprints, matching, answers in the driver;
the session is up and the offset syncs are read before the clock starts. Theirs: one confluent-kafka consumer that reads
the same stretches of the source and then of the target straight through, many partitions at a time, and throws the
records away; once with our fetch settings, which is what the ratio is against, and once with librdkafka's defaults.

Two trees are compared by what their users run: whole plans of the same commits. How long each says that it matched is
printed beside; the ratio is that of the whole.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.read_pass import BATCH, POLL_SECONDS
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.record_reader import Reach
from migrate.match.compare import compare_records
from migrate.match.equality import Equality
from migrate.match.log_reader import runs_of
from migrate.match.matcher import matching
from migrate.match.protocol import Limits, Listener, Matched, OffsetRange, PartitionQuestion, Work
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.mm2.flow import Flow
from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import LogRange, Side, TopicPartition
from migrate.session.clusters import endpoints
from migrate.spark.background import Session, background_spark
from migrate.spark.mm2_topics import SparkMirrorReader
from migrate.spark.tasks import SparkTasks
from scripts.benchmarks.bare import commit_all
from scripts.benchmarks.command import Measured, compare, in_turns, measured, of_tree, shown, trees
from scripts.benchmarks.eve import CHECKPOINTS_TOPIC, POSITIONS_TOPIC, flow_words, positions, write_topic
from scripts.benchmarks.memory import Peak
from scripts.benchmarks.plan import PLAN, first_plans, line
from scripts.benchmarks.workload import KEY_BYTES, SPREAD, SYNC_EVERY, SYNCS_TOPIC, USUAL, VALUE_BYTES, Workload, write
from tests.integration.clusters import Commits
from tests.lab.cluster import Cluster, start_clusters
from tests.lab.jars import DEFAULT_VERSION

WORKLOADS = (USUAL, SPREAD)
ROWS = (1_000, 3_000, 10_000, 30_000, 100_000)
DEADLINE_SECONDS = 60.0
# Offsets between two windows that the plain consumer reads through: tried from 0 to all, this is where it is fastest.
READ_THROUGH = 1000
MEGABYTE = 1 << 20
# Only what a consumer needs that assigns, and that must notice the end of a log.
DEFAULTS = {
    "group.id": "bench",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "log_level": 0,
}
# A record's own fields in a batch, in bytes, beside key and value.
OVERHEAD = 12
# Not compacted, never deleted: every row must find the same records.
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": str(1 << 30)}


# Nobody waits for what a comparison says of itself.
UNHEARD = Listener(lambda estimate: None, lambda done, total: None)


@dataclass(frozen=True)
class Comparison:
    """One row of the table; times in seconds, for the same records."""

    windows: int
    records: int
    ours: float
    straight: float
    with_defaults: float
    fetched: int
    expected: int
    peak: Peak


def measure(windows: int, names: Sequence[str], rounds: int, against: Path | None) -> None:
    """Start two brokers, write each workload, and print its table; then plans of two trees, so many of each."""
    checkouts = trees(against)
    workloads = [each.cut(windows) for each in WORKLOADS if each.name in names]
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder:
        source, target = Cluster("source", Path(folder, "source")), Cluster("target", Path(folder, "target"))
        try:
            print(f"Starting two brokers, Kafka {DEFAULT_VERSION} ...", flush=True)
            start_clusters(source, target)
            source.create_topic(SYNCS_TOPIC, 1, KEPT)
            with background_spark(None, {}, small=False) as session:
                syncs = 0
                for workload in workloads:
                    syncs += prepare(workload, source, target)
                    sizes = [size for size in ROWS if size < workload.windows()] + [workload.windows()]
                    report([run(workload.cut(size), source, target, session, syncs) for size in sizes])
            if against:
                compare(plans(workloads, source, target, Path(folder), checkouts, rounds))
        finally:
            source.stop()
            target.stop()


def prepare(workload: Workload, source: Cluster, target: Cluster) -> int:
    source.create_topic(workload.name, workload.partitions, KEPT)
    target.create_topic(workload.copy, workload.partitions, KEPT)
    began = time.perf_counter()
    syncs = write(workload, source.bootstrap, target.bootstrap)
    print(
        f"\n{workload.name}: {workload.partitions} partitions of {workload.length:,} records on each cluster, "
        f"{syncs:,} syncs, {workload.groups} groups (written in {time.perf_counter() - began:.0f} s)",
        flush=True,
    )
    return syncs


def plans(
    workloads: Sequence[Workload],
    source: Cluster,
    target: Cluster,
    folder: Path,
    trees: Mapping[str, Path],
    rounds: int,
) -> Mapping[str, Mapping[str, Sequence[Measured]]]:
    """Plan each workload with each tree in turns, print each run, and return them by workload and tree.

    Raises `RuntimeError` where a plan lacks a commit, or has not found its place.
    """
    words = flow_words(source, target, folder)
    target.create_topic(CHECKPOINTS_TOPIC, 1)
    target.create_topic(POSITIONS_TOPIC, 1)
    taken: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: {name: [] for name in trees})
    for workload in workloads:
        write_topic(target, POSITIONS_TOPIC, positions(workload))
        commit_all(source.bootstrap, commits_of_groups(workload))
        only = (*words, "--group", f"{workload.name}-.*")
        first_plans(only, trees, folder, workload.windows())
        for name, tree in in_turns(trees, rounds):
            with tempfile.TemporaryDirectory(dir=folder) as at:
                done = measured(of_tree(tree, "plan", *only, "--settle", "1", "--out", PLAN), Path(at))
                _, *rows = shown(tree, PLAN, Path(at))
            exact = sum(row["grade"] == "exact" and row["target_offset"] == row["source_committed"] for row in rows)
            if not len(rows) == exact == workload.windows():
                raise RuntimeError(f"{tree}: {len(rows):,} rows, {exact:,} exact, of {workload.windows():,} commits")
            taken[f"plan {workload.name}"][name].append(done)
            print(line(f"{name} {workload.name}", workload.windows(), done), flush=True)
    return taken


def commits_of_groups(workload: Workload) -> Commits:
    """Return what each group has committed: its own share of every partition's commits."""
    by_partition = [list(workload.commits(partition)) for partition in range(workload.partitions)]
    return {
        f"{workload.name}-{group:05}": {
            (workload.name, partition): each[group] for partition, each in enumerate(by_partition)
        }
        for group in range(workload.groups)
    }


def run(workload: Workload, source: Cluster, target: Cluster, session: Session, syncs: int) -> Comparison:
    """Measure ours, then theirs; every place must be the right one."""
    flow = Flow(
        FlowCluster(Side.SOURCE, "A", {"bootstrap.servers": source.bootstrap}),
        FlowCluster(Side.TARGET, "B", {"bootstrap.servers": target.bootstrap}),
        ReplicationPolicy(PolicyKind.DEFAULT, "A", "B"),
        Side.SOURCE,
        "A.checkpoints.internal",
        SYNCS_TOPIC,
    )
    works = workload.works()
    source_end, target_end = endpoints(flow, DEADLINE_SECONDS)
    java = {Side.SOURCE: source_end.java, Side.TARGET: target_end.java}
    held = ConsumedMm2Topics(flow, source_end.records(), target_end.records())
    mirror = SparkMirrorReader(session, flow, java, held)
    mirror.windows(Side.SOURCE, SYNCS_TOPIC, LogRange(0, syncs), workload.questions())
    readers = KafkaReaders(source_end.kafka, target_end.kafka, DEADLINE_SECONDS)
    tasks = SparkTasks(session, lambda: mirror.chains, readers)
    context: Any = session().sparkContext
    with Peak(context._gateway.proc.pid) as peak:
        began = time.perf_counter()
        found = compare_records(tasks, works, Limits(1_000_000, None), UNHEARD)
        ours = time.perf_counter() - began
    for work in works:
        for committed, place in found.answers[work.source].places.items():
            if not (isinstance(place, Matched) and place.exact and place.target_offset == committed):
                raise RuntimeError(f"{work.source} at {committed}: {place}")
    records = sum(answer.source_read + answer.target_read for answer in found.answers.values())
    theirs = []
    for settings in (Reach.LONG.settings(), Reach.WHOLE.settings(), DEFAULTS):
        needs = [next(matching(question(work))) for work in works]
        began = time.perf_counter()
        taken = straight(source.bootstrap, settings, {w.source: n.source for w, n in zip(works, needs, strict=True)})
        taken += straight(target.bootstrap, settings, {w.target: n.target for w, n in zip(works, needs, strict=True)})
        theirs.append(time.perf_counter() - began)
        if taken != records:
            raise RuntimeError(f"ours read {records} records, the straight read {taken}")
    fetched = found.source_bytes + found.target_bytes
    expected = found.estimate.source_bytes + found.estimate.target_bytes
    straight_read = min(theirs[:2])
    row = Comparison(workload.windows(), records, ours, straight_read, theirs[2], fetched, expected, peak)
    print(f"  {row.windows:,} windows: ours {ours:.1f} s, straight read {straight_read:.1f} s", flush=True)
    return row


def question(work: Work) -> PartitionQuestion:
    """Return what a task asks about a partition, with the chain that was written."""
    sync_pairs = tuple((offset, offset) for offset in range(0, work.source_log.end, SYNC_EVERY))
    logs = (work.source_log, work.target_log)
    return PartitionQuestion(
        work.source, work.target, *logs, work.source_committed, sync_pairs=sync_pairs, equality=Equality.ALL
    )


def straight(
    bootstrap: str, settings: Mapping[str, Any], wanted: Mapping[TopicPartition, Sequence[OffsetRange]]
) -> int:
    """Read the runs that join these ranges, many partitions at a time; return how many offsets the ranges have."""
    runs = {place: runs_of(ranges, READ_THROUGH) for place, ranges in wanted.items()}
    client = Consumer({**settings, "bootstrap.servers": bootstrap})
    taken = 0
    for depth in range(max(map(len, runs.values()))):
        waiting = {(p.topic, p.partition): each[depth] for p, each in runs.items() if depth < len(each)}
        client.assign([KafkaPartition(*place, run.start) for place, run in waiting.items()])
        while waiting:
            messages: list[Any] = client.consume(BATCH, POLL_SECONDS)
            for message in messages:
                place = (message.topic(), message.partition())
                run = waiting.get(place)
                if run is None:
                    continue
                problem = message.error()
                # The end of a log before that of a run, too: nobody read what the run lacks.
                if problem is not None:
                    raise KafkaException(problem)
                if message.offset() >= run.end - 1:
                    del waiting[place]
        taken += sum(
            r.end - r.start
            for p, each in runs.items()
            if depth < len(each)
            for r in wanted[p][each[depth].first : each[depth].last + 1]
        )
    client.close()
    return taken


def report(rows: Sequence[Comparison]) -> None:
    """Print the table of one workload."""
    needed = KEY_BYTES + VALUE_BYTES + OVERHEAD
    print(
        f"\n{'windows':>9}{'records':>12}{'ours s':>9}{'per s':>9}{'straight s':>12}{'ratio':>7}{'defaults s':>12}"
        f"{'bytes/needed':>14}{'bytes/said':>12}{'driver MB':>11}{'JVM MB':>8}{'workers MB':>12}"
    )
    for row in rows:
        print(
            f"{row.windows:9,}{row.records:12,}{row.ours:9.2f}{row.windows / row.ours:9,.0f}{row.straight:12.2f}"
            f"{row.ours / row.straight:7.2f}{row.with_defaults:12.2f}"
            f"{row.fetched / (row.records * needed):14.2f}{row.fetched / row.expected:12.2f}"
            f"{row.peak.driver / MEGABYTE:11.0f}{row.peak.jvm / MEGABYTE:8.0f}{row.peak.workers / MEGABYTE:12.0f}"
        )
    print("ratio: ours / straight. The first row warms up the JVM and starts Spark's Python workers.")
    print("Memory of driver and JVM is beyond what they had with the session up; workers are Spark's Python processes.")

"""How fast a plan is applied, beside the bare calls of the same client, and beside kafka-consumer-groups.

All of it on the same broker in the same run, in turns, with the same number of calls in flight. The bare calls check
nothing, remember nothing, and live in this process; ours pay for the process of their own, the journal on disk, and
what is made of every answer.

Two trees are compared by what their users run, in the same run and on the same clusters: whole commands from a plan,
which each tree makes for itself, to its rollback.
"""

import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from migrate.apply.assess import ApplyClusters, RunOptions, assess
from migrate.apply.history import APPLY, JournalState
from migrate.apply.journal import Journal
from migrate.apply.read_back import read_commits
from migrate.apply.write import GroupWriter
from migrate.clock import SystemClock
from migrate.kafka.admin import NOT_EMPTY
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import Failure, Side
from migrate.plan.companions import journal_path
from migrate.plan.file import write_plan
from migrate.plan.plan import Plan
from migrate.progress import BATCH, batches
from migrate.session.clusters import Endpoint
from scripts.benchmarks.bare import (
    COORDINATORS_ASKED,
    DEADLINE_SECONDS,
    LONGEST,
    WINDOW,
    bare_client,
    committed_count,
    in_window,
)
from scripts.benchmarks.command import TOOL_FLAGS, compare, measured, ours, trees
from scripts.benchmarks.eve import Eve, on_stage
from scripts.benchmarks.plan import there_and_back
from tests.fakes import NoProgress
from tests.integration.clusters import commit
from tests.integration.madeplan import made_plan, options_for
from tests.lab.cluster import Cluster
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.process import java_command

TOPIC = "orders"
COPY = "A.orders"
TOOLS_TOPIC = "filled"
# As `migrate.kafka.admin` finds out which groups are empty.
LISTINGS: tuple[dict[str, Any], ...] = (
    {"states": {ConsumerGroupState.EMPTY}},
    {"states": NOT_EMPTY},
    {"types": {ConsumerGroupType.CONSUMER}},
)
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
STEPS = ("drift check", "alter, with journal", "read-back")


@dataclass
class Bench:
    """A broker with groups on one topic. `now` is the offset at which every group stands."""

    bootstrap: str
    groups: list[str]
    partitions: int
    folder: Path
    now: int | None = None
    round: int = 0
    ours: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})
    bare: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})

    def next_offset(self) -> int:
        return 1 if self.now is None else self.now + 1

    def plan(self, groups: Iterable[str]) -> Plan:
        self.round += 1
        places = dict.fromkeys(range(self.partitions), (self.next_offset(), self.now))
        return made_plan(self.bootstrap, TOPIC, dict.fromkeys(groups, places), 1_700_000_000_000 + self.round)


def measure(groups: int, partitions: int, rounds: int, tool_groups: int, against: Path | None) -> None:
    """Start a broker, apply in turns, and print a table; then the same for whole commands of two trees."""
    checkouts = trees(against)
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder:
        cluster = Cluster("bench", Path(folder) / "broker")
        try:
            print(f"Starting a broker, Kafka {DEFAULT_VERSION} ...", flush=True)
            cluster.start()
            cluster.create_topic(COPY, partitions)
            # So many that every coordinator is asked, and has loaded its part of the offsets topic.
            commit(cluster.bootstrap, {f"first-{n}": {(COPY, 0): 0} for n in range(COORDINATORS_ASKED)})
            if tool_groups:
                # First: the rounds below leave a million commits in the offsets topic, as no cluster has for so few.
                own = Bench(cluster.bootstrap, [f"own-{n:05d}" for n in range(tool_groups)], partitions, Path(folder))
                bare_turn(own)
                beside_kafka(cluster, own)
            names = [f"group-{n:05d}" for n in range(groups)]
            bench = Bench(cluster.bootstrap, names, partitions, Path(folder))
            for number in range(rounds + 1):
                turns = (our_turn, bare_turn) if number % 2 else (bare_turn, our_turn)
                for turn in turns:
                    turn(bench)
                last = ", ".join(f"{s} {bench.ours[s][-1]:.2f} s (bare {bench.bare[s][-1]:.2f} s)" for s in STEPS)
                print(f"round {number}: {last}", flush=True)
            report(bench)
        finally:
            cluster.stop()
    if against:
        scene = Eve(groups, partitions)
        with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder, on_stage(scene, Path(folder)) as stage:
            compare(there_and_back(stage, checkouts, rounds))


def our_turn(bench: Bench) -> None:
    """The three steps of an apply, each timed by itself; the client process's start counts."""
    plan, clock = bench.plan(bench.groups), SystemClock()
    cluster = FlowCluster(Side.TARGET, "B", {"bootstrap.servers": bench.bootstrap})
    target = Endpoint(cluster, DEADLINE_SECONDS).admin(WINDOW)
    path = journal_path(bench.folder / "bench.plan", plan.fingerprint)

    looked_at = clock.monotonic()
    with timed(bench.ours["drift check"]):
        assessment = assess(plan, ApplyClusters(target), JournalState(), NoProgress(), RunOptions())
    assert len(assessment.writable) == len(bench.groups), assessment.groups[0]

    rows = {g.group: g.pending for g in assessment.writable}
    with Journal(path, plan.fingerprint, clock.now_ms).open(APPLY, {}) as journal:
        writing = target.holding(journal.lock)
        with timed(bench.ours["alter, with journal"]):
            partitions = {group: [row.target_partition for row in pending] for group, pending in rows.items()}
            journal.backup(assessment.target_commits, partitions)
            writer = GroupWriter(writing, journal, clock, 60.0, WINDOW)
            written = writer.write_offsets(rows, assessment.target_commits, looked_at)
        assert not written.trouble
        with timed(bench.ours["read-back"]):
            seen = read_commits(writing, bench.groups, clock, 60.0)
        assert all(
            not isinstance(answer := seen[group], Failure) and len(answer) == bench.partitions for group in bench.groups
        )
        writing.close()
    target.close()
    bench.now = bench.next_offset()


def bare_turn(bench: Bench) -> None:
    """The same calls and nothing else."""
    with timed(bench.bare["drift check"]):
        client = bare_client(bench.bootstrap)
        for _ in batches(bench.groups, BATCH):
            for of in LISTINGS:
                listed = client.list_consumer_groups(**of, request_timeout=LONGEST).result()
                assert not listed.errors
        bare_read(client, bench)
        places = [KafkaPartition(COPY, p) for p in range(bench.partitions)]
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
            for future in client.list_offsets(dict.fromkeys(places, spec), request_timeout=LONGEST).values():
                future.result()
    with timed(bench.bare["alter, with journal"]):
        client = bare_client(bench.bootstrap)

        def alter(group: str) -> "Future[Any]":
            places = [KafkaPartition(COPY, p, bench.next_offset()) for p in range(bench.partitions)]
            request = [ConsumerGroupTopicPartitions(group, places)]
            return client.alter_consumer_group_offsets(request, request_timeout=LONGEST)[group]

        for answer in in_window(bench.groups, alter):
            assert not any(p.error for p in answer.topic_partitions)
    bench.now = bench.next_offset()
    with timed(bench.bare["read-back"]):
        bare_read(bare_client(bench.bootstrap), bench)


def bare_read(client: AdminClient, bench: Bench) -> None:
    expected = 0 if bench.now is None else len(bench.groups) * bench.partitions
    found = committed_count(client, bench.groups)
    if found != expected:
        raise RuntimeError(f"the bare client read {found:,} commits of {expected:,}")


def fill(cluster: Cluster, topic: str, partitions: int, records: int) -> None:
    """Create a topic with so many records in each partition."""
    cluster.create_topic(topic, partitions)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for partition in range(partitions):
        for _ in range(records):
            producer.produce(topic, b"x", partition=partition)
    assert producer.flush(DEADLINE_SECONDS) == 0


class timed:  # noqa: N801
    """Appends the seconds between its start and its end to a list."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds.append(time.perf_counter() - self._start)


def report(bench: Bench) -> None:
    """Print medians without the first round, which warms the broker up, and their ratio."""
    print(f"\n{len(bench.groups):,} groups x {bench.partitions} partitions, {WINDOW} calls in flight; medians")
    print(f"{'':22}{'ours s':>8}{'bare s':>8}{'ratio':>7}{'groups/s':>10}")
    for step in STEPS:
        ours, bare = median(bench.ours[step][1:]), median(bench.bare[step][1:])
        print(f"{step:22}{ours:8.2f}{bare:8.2f}{ours / bare:7.2f}{len(bench.groups) / ours:10,.0f}")
    print("\nbare: the same librdkafka calls, results thrown away. Drift check: commits, listed states, log ranges.")


def beside_kafka(cluster: Cluster, bench: Bench) -> None:
    """Time both as commands, from start to exit, over all groups of the bench."""
    names = bench.groups
    plan = bench.plan(names)
    path = bench.folder / "beside.plan"
    write_plan(plan, path)
    options = options_for(bench.folder, bench.bootstrap)
    done = measured(ours("apply", str(path), *options, "--approve", plan.fingerprint, "--execute"), bench.folder)

    # It sets no offset beyond a log's end, but another, and warns of each: so it has a topic with records.
    offset = bench.next_offset() + 1
    fill(cluster, TOOLS_TOPIC, bench.partitions, offset)
    file = bench.folder / "offsets.csv"
    lines = (f"{group},{TOOLS_TOPIC},{p},{offset}\n" for group in names for p in range(bench.partitions))
    file.write_text("".join(lines))
    named = [word for group in names for word in ("--group", group)]
    words = ("--reset-offsets", "--from-file", str(file), "--execute", "--timeout", "60000")
    tool = java_command(cluster.jars, TOOL, "--bootstrap-server", bench.bootstrap, *named, *words, jvm_flags=TOOL_FLAGS)
    theirs = measured(tool, bench.folder)
    set_rows = sum(line.startswith("own-") for line in (bench.folder / "command.out").read_text().splitlines())
    if set_rows != len(names) * bench.partitions:
        raise RuntimeError(f"kafka-consumer-groups set {set_rows} rows of {len(names) * bench.partitions}")
    print(f"\n{len(names):,} groups x {bench.partitions}, whole commands:")
    print(f"  mm2-migrate apply {done.seconds:.1f} s (checks, journal, read-back)")
    print(f"  kafka-consumer-groups --reset-offsets {theirs.seconds:.1f} s ({set_rows:,} rows)")
    print(f"  ratio (Kafka's time / ours): {theirs.seconds / done.seconds:.0f}\n", flush=True)

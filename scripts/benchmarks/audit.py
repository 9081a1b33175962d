"""How long an audit of two logs takes beside two plain consumers that read them, and whether it finds what was planted.

Whole commands on two brokers in one run: `kafka-consumer-perf-test` of each log, one after the other, then `audit run`
with a new folder. Records of 100 to 500 bytes lie in both logs at the same times; no MM2 runs. One log of the source
has six copies, under as many aliases: as it is, with losses, doublings and changed values in one stretch of a hundred,
with as many anywhere, one that was replayed ten times, one that retention has cut short, and one with swapped
neighbours, which is audited by `--order`.
"""

import json
import multiprocessing
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import TopicPartition

from migrate.extras.audit.state import read_state
from migrate.extras.audit.stretches import STRETCH_RECORDS
from migrate.mm2.wire import SyncRecord
from scripts.benchmarks.command import MEBIBYTE, TOOL_FLAGS, Measured, measured, ours
from scripts.benchmarks.eve import flow_words, positions, write_topic
from scripts.benchmarks.workload import SEED, SYNCS_TOPIC, Workload, flush, produce, producer_for
from tests.lab.cluster import Cluster, start_clusters
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.options import MirrorOptions
from tests.lab.process import java_command
from tests.wirebytes import encode_sync

PARTITIONS = 4
KEY_BYTES, LEAST_VALUE, MOST_VALUE = 16, 84, 484
PLANTED, SWAPPED = 1_000, 100
CLEAN = "clean"
OTHERS = ONE_IN_100, KILLED, CUT_SHORT, ANYWHERE, OUT_OF_ORDER = (
    "1 in 100",
    "killed",
    "cut short",
    "anywhere",
    "swapped",
)
REPLAYS, REPLAYED = 10, 5_000
POLL_EVERY = 10_000
PERF_TOOL = "org.apache.kafka.tools.ConsumerPerformance"
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "segment.bytes": str(1 << 30)}
FILLER = random.Random(SEED).randbytes(1 << 20)
AN_HOUR_MS = 3_600_000
# Of the quickest audit, the steps that took as long are told.
TOLD_SECONDS = 0.5


@dataclass(frozen=True)
class Copy:
    """What became of the records of a log on their way: numbers of records, and ranges that were copied again.

    Those that are `swapped` were copied behind the next of their partition; the first `removed` are gone by retention.
    """

    alias: str
    lost: frozenset[int] = frozenset()
    doubled: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()
    replays: Sequence[range] = ()
    swapped: frozenset[int] = frozenset()
    removed: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """What an audit has to find, beside what is copied."""
        again = len(self.doubled) + sum(map(len, self.replays))
        named = {category: len(records) for category, records in self.named.items()}
        counts = {**named, "copied-again": again, "not-visible": self.removed}
        return {category: count for category, count in counts.items() if count}

    @property
    def exit_code(self) -> int:
        """What an audit ends in."""
        return 1 if self.lost else 4 if self.removed else 0

    @property
    def named(self) -> dict[str, frozenset[int]]:
        """The records that an audit has to name."""
        return {"missing": self.lost, "changed-in-flight": self.changed, "out-of-order": self.swapped}


def copies_of(records: int) -> dict[str, Copy]:
    """Return the copies of a log of so many records, by what the table calls them."""
    dice = random.Random(records)
    blocks = max(1, records // STRETCH_RECORDS // 100)
    length = records // PARTITIONS
    # Neighbours in one partition, so that they lie in one stretch, or in two.
    wide = 2 * 3 * PLANTED // blocks
    starts = [(dice.randrange(length - wide), dice.randrange(PARTITIONS)) for _ in range(blocks)]
    close = [(start + i) * PARTITIONS + p for start, p in starts for i in range(wide)]
    ends = [records * (i + 1) // (REPLAYS + 1) for i in range(REPLAYS)]
    again = min(REPLAYED * PARTITIONS, records // (REPLAYS + 1))
    return {
        CLEAN: Copy("A"),
        ONE_IN_100: _planted("C", dice.sample(sorted(set(close)), 3 * PLANTED)),
        KILLED: Copy("D", replays=[range(end - again, end) for end in ends]),
        CUT_SHORT: Copy("G", removed=length * 3 // 10 * PARTITIONS),
        ANYWHERE: _planted("E", dice.sample(range(records), 3 * PLANTED)),
        # No two of them, nor those that they were swapped with, are the same.
        OUT_OF_ORDER: Copy("F", swapped=_swapped(dice.sample(range(records // PARTITIONS // 2 - 1), SWAPPED), dice)),
    }


def _swapped(pairs: Sequence[int], dice: random.Random) -> frozenset[int]:
    return frozenset(2 * pair * PARTITIONS + dice.randrange(PARTITIONS) for pair in pairs)


def _planted(alias: str, chosen: Sequence[int]) -> Copy:
    lost, doubled, changed = (frozenset(chosen[i::3]) for i in range(3))
    return Copy(alias, lost, doubled, changed)


@dataclass
class Row:
    """What was measured of one copy, in each round."""

    plain: list[tuple[Measured, Measured]] = field(default_factory=list)
    audit: list[Measured] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    differing: int = 0


def measure(sizes: Sequence[int], rounds: int, names: Sequence[str]) -> None:
    """Start two brokers; for each size write the clean copy and these, run everything in turns, and print a table."""
    with TemporaryDirectory(prefix="mm2-bench-") as name:
        folder = Path(name)
        source, target = Cluster("source", folder / "source"), Cluster("target", folder / "target")
        try:
            print(f"Starting two brokers, Kafka {DEFAULT_VERSION} ...", flush=True)
            start_clusters(source, target)
            source.create_topic(SYNCS_TOPIC, 1, KEPT)
            for records in sizes:
                Bench(source, target, folder, records, names).run(rounds)
        finally:
            source.stop()
            target.stop()


class Bench:
    """Logs of one size, their copies, and what is measured of them."""

    def __init__(self, source: Cluster, target: Cluster, folder: Path, records: int, names: Sequence[str]) -> None:
        self._source, self._target, self._folder = source, target, folder
        self._records = records
        self._topic = f"records-{records}"
        self._copies = {name: copy for name, copy in copies_of(records).items() if name in (CLEAN, *names)}
        self._words: dict[str, tuple[str, ...]] = {}

    def run(self, rounds: int) -> None:
        began = time.perf_counter()
        self._write()
        print(f"\n{self._topic}: {len(self._copies) + 1} logs in {time.perf_counter() - began:.0f} s", flush=True)
        rows = {name: Row() for name in self._copies}
        for number in range(rounds):
            for name, row in rows.items():
                self._turn(name, row, number)
        grown = self._second_run()
        report(self._records, rows, grown)
        # A client's futures never end once it is gone.
        on_source, on_target = self._source.admin(), self._target.admin()
        on_source.delete_topics([self._topic])[self._topic].result(60)
        copies = [f"{copy.alias}.{self._topic}" for copy in self._copies.values()]
        for future in on_target.delete_topics(copies).values():
            future.result(60)

    def _write(self) -> None:
        self._source.create_topic(self._topic, PARTITIONS, KEPT)
        write_topic(
            self._source, SYNCS_TOPIC, (encode_sync(SyncRecord(self._topic, p, 0, 0)) for p in range(PARTITIONS))
        )
        began = time.time_ns() // 1_000_000 - AN_HOUR_MS
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            logs = [pool.submit(write_log, self._source.bootstrap, self._topic, range(self._records), began, Copy("A"))]
            for name, copy in self._copies.items():
                topic, options = f"{copy.alias}.{self._topic}", MirrorOptions(copy.alias, "B")
                self._target.create_topic(topic, PARTITIONS, KEPT)
                if options.connect_offsets_topic not in self._target.admin().list_topics(timeout=30).topics:
                    self._target.create_topic(options.connect_offsets_topic, 1)
                self._say_position(copy, self._records)
                place = self._folder / f"{self._records}-{copy.alias}"
                place.mkdir()
                self._words[name] = flow_words(self._source, self._target, place, options)
                logs.append(pool.submit(write_log, self._target.bootstrap, topic, range(self._records), began, copy))
            for log in logs:
                log.result()
        for copy in filter(attrgetter("removed"), self._copies.values()):
            topic, start = f"{copy.alias}.{self._topic}", copy.removed // PARTITIONS
            admin = self._target.admin()
            removed = admin.delete_records([TopicPartition(topic, p, start) for p in range(PARTITIONS)])
            for future in removed.values():
                future.result(60)
        self._began = began

    def _say_position(self, copy: Copy, records: int) -> None:
        work = Workload(self._topic, PARTITIONS, 0, records // PARTITIONS, 0.0, 0)
        write_topic(self._target, MirrorOptions(copy.alias, "B").connect_offsets_topic, positions(work, copy.alias))

    def _turn(self, name: str, row: Row, number: int) -> None:
        copy = self._copies[name]
        row.load.append(os.getloadavg()[0])
        there = self._records - len(copy.lost) - copy.removed + len(copy.doubled) + sum(map(len, copy.replays))
        row.plain.append((
            self._plainly_read(self._source, self._topic, self._records),
            self._plainly_read(self._target, f"{copy.alias}.{self._topic}", there),
        ))  # fmt: skip
        row.audit.append(self._audit(name, f"state-{number}"))
        row.differing = self._check(name, f"state-{number}")
        a, b, audit = *(each.seconds for each in row.plain[-1]), row.audit[-1].seconds
        print(f"round {number + 1}, {name}: plain {a:.1f} + {b:.1f} s, audit {audit:.1f} s, load {row.load[-1]:.1f}",
              flush=True)  # fmt: skip

    def _plainly_read(self, cluster: Cluster, topic: str, records: int) -> Measured:
        """kafka-consumer-perf-test with its own defaults, its JVM's start and end included."""
        asked = ("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--num-records", str(records))
        words = java_command(cluster.jars, PERF_TOOL, *asked, heap="512m", jvm_flags=TOOL_FLAGS)
        done = measured(words, self._folder)
        told = (self._folder / "command.out").read_text().splitlines()
        read = int(told[-1].split(",")[4])
        if read < records:
            raise RuntimeError(f"the plain consumer read {read:,} of {records:,} records of {topic}")
        return done

    def _audit(self, name: str, state: str) -> Measured:
        copy = self._copies[name]
        only = ("--topic", self._topic, "--state", f"{copy.alias}-{self._records}-{state}", "--format", "json")
        order = ("--order",) if copy.swapped else ()
        return measured(ours("audit", "run", *self._words[name], *only, *order), self._folder, (copy.exit_code,))

    def _check(self, name: str, state: str, more: int = 0) -> int:
        """Raise `RuntimeError` where not exactly the planted was found; return how many stretches differ."""
        copy, folder = self._copies[name], self._folder / f"{self._copies[name].alias}-{self._records}-{state}"
        counts = json.loads((self._folder / "command.out").read_text())["counts"]
        copied = self._records + more - len(copy.lost) - len(copy.changed) - copy.removed
        found: dict[str, set[int]] = {category: set() for category in copy.named}
        for line in (folder / "found.jsonl").read_text().splitlines():
            each = json.loads(line)
            found[each["category"]].add(each["offset"] * PARTITIONS + each["partition"])
        if counts != {"copied": copied, **copy.counts} or found != copy.named:
            wrong = {category: len(found[category] ^ planted) for category, planted in copy.named.items()}
            raise RuntimeError(f"{name}: the audit found {counts}, and {wrong} wrong offsets")
        return len(read_state(folder).topics[self._topic].differing())

    def _second_run(self) -> tuple[Measured, Measured]:
        """Append one record in a hundred to both logs of the clean copy; return an audit of these, and of nothing."""
        copy, more = self._copies[CLEAN], self._records // 100
        numbers = range(self._records, self._records + more)
        for cluster, topic in ((self._source, self._topic), (self._target, f"{copy.alias}.{self._topic}")):
            write_log(cluster.bootstrap, topic, numbers, self._began, copy)
        self._say_position(copy, self._records + more)
        again = self._audit(CLEAN, "state-0")
        self._check(CLEAN, "state-0", more)
        return again, self._audit(CLEAN, "state-0")


def write_log(bootstrap: str, topic: str, numbers: range, began: int, copy: Copy) -> None:
    """Write records as they were copied: a record a millisecond in each partition, at the same times on both sides."""
    producer = producer_for(bootstrap)
    for number in _order(numbers, copy):
        if number in copy.lost:
            continue
        partition, timestamp = number % PARTITIONS, began + number // PARTITIONS
        key, value = content_of(number, number in copy.changed)
        for _ in range(2 if number in copy.doubled else 1):
            produce(producer, topic, partition, key, value, timestamp)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    flush(producer)


def _order(numbers: range, copy: Copy) -> Iterator[int]:
    """Yield the numbers, and again those that were replayed."""
    at = numbers.start
    for replay in copy.replays:
        yield from range(at, replay.stop)
        at = replay.start
    behind = {number + PARTITIONS: number for number in copy.swapped}
    for number in range(at, numbers.stop):
        if number not in copy.swapped:
            yield number
        if number in behind:
            yield behind[number]


def content_of(number: int, is_changed: bool) -> tuple[bytes, bytes]:
    """Return a record's key and value."""
    size = LEAST_VALUE + number * 7919 % (MOST_VALUE - LEAST_VALUE + 1)
    at = (number * 104_729 + is_changed) % (len(FILLER) - MOST_VALUE)
    return b"%0*d" % (KEY_BYTES, number), FILLER[at : at + size]


def report(records: int, rows: Mapping[str, Row], grown: tuple[Measured, Measured]) -> None:
    """Print the quickest of each, and the ratio."""
    print(
        f"\n{records:,} records a side{'plain A s':>14}{'plain B s':>11}{'CPU':>7}{'audit s':>9}{'CPU':>7}{'ratio':>7}"
        f"{'driver MiB':>12}{'JVM MiB':>9}{'differ':>8}{'load':>7}"
    )
    for name, row in rows.items():
        a, b = (min(side, key=attrgetter("seconds")) for side in zip(*row.plain, strict=True))
        best = min(row.audit, key=attrgetter("seconds"))
        print(
            f"{name:24}{a.seconds:14.1f}{b.seconds:11.1f}{a.cpu + b.cpu:7.1f}{best.seconds:9.1f}{best.cpu:7.1f}"
            f"{best.seconds / (a.seconds + b.seconds):7.2f}"
            f"{best.driver_peak_bytes / MEBIBYTE:12.0f}{best.peak_bytes.get('JVM', 0) / MEBIBYTE:9.0f}"
            f"{row.differing:8}{min(row.load):7.1f}"
        )
    for name, row in rows.items():
        steps = min(row.audit, key=attrgetter("seconds")).steps
        print(f"{name}: " + "; ".join(f"{text} {seconds:.1f} s" for text, seconds in steps if seconds >= TOLD_SECONDS))
    first = min(each.seconds for each in rows[CLEAN].audit)
    print(
        f"A later run over 1 % more: {grown[0].seconds:.1f} s; over nothing: {grown[1].seconds:.1f} s; the first took "
        f"{first:.1f} s. All that was planted was found, and nothing else.",
        flush=True,
    )

"""How fast the checkpoints topic becomes the newest checkpoint per key, beside Kafka's own way to do it.

Both read the same topic on the same broker in the same run, in turns, each with its JVM up already. Ours ends with
Python values in hand, Kafka's with Java's.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from migrate.mm2.wire import WireCheckpoint
from migrate.model import LogRange
from migrate.spark.checkpoints import read_checkpoints
from migrate.spark.session import spark_session, stop_session
from tests.lab.cluster import Cluster
from tests.lab.jars import DEFAULT_VERSION, java_executable
from tests.wirebytes import encode_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALIAS = "A"
TOPIC = f"{ALIAS}.checkpoints.internal"
THEIRS = Path(__file__).with_name("TranslateOffsets.java")
STOP_SECONDS = 30
# The JVMs go on compiling for some rounds.
WARM_UP = 4


@dataclass(frozen=True)
class Size:
    """How many checkpoints, of how many groups with how many partitions each."""

    records: int
    groups: int
    partitions: int

    @property
    def keys(self) -> int:
        return min(self.records, self.groups * self.partitions)


def measure(size: Size, rounds: int, one_core: bool) -> None:
    """Start a broker, fill the topic, read it in turns, and print a table; `one_core`: ours on one core as well."""
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder:
        cluster = Cluster("bench", Path(folder))
        try:
            print(f"Starting a broker, Kafka {DEFAULT_VERSION} ...", flush=True)
            cluster.start()
            # Not compacted: every round must find the same records.
            cluster.create_topic(TOPIC, 1, {"cleanup.policy": "delete", "segment.bytes": str(1 << 30)})
            fill(cluster.bootstrap, size)
            print(f"{TOPIC}: {size.records:,} checkpoints, {size.keys:,} keys ({size.groups} groups)", flush=True)
            ours, theirs = alternate(cluster, size, rounds)
            report(size, ours, theirs)
            if one_core:
                # The broker takes its share of either core, as it does above.
                report_cores(ours, ours_on_one_core(cluster.bootstrap, size, rounds))
        finally:
            cluster.stop()


def fill(bootstrap: str, size: Size) -> None:
    """Write the checkpoints round by round over all keys, as MM2 does."""

    def records() -> Iterator[tuple[bytes, bytes, int]]:
        for number in range(size.records):
            group, partition = divmod(number % size.keys, size.partitions)
            place = 1_000_000 + number
            yield (
                *encode_checkpoint(
                    WireCheckpoint(f"group-{group:05d}", f"{ALIAS}.orders", partition, place, place - 7)
                ),
                0,
            )

    write(bootstrap, TOPIC, records())


def write(bootstrap: str, topic: str, records: Iterable[tuple[bytes, bytes, int]], **settings: str) -> None:
    """Write records (key, value, partition) in their order; raises where the broker does not take them all."""
    producer = Producer({
        "bootstrap.servers": bootstrap,
        "linger.ms": 50,
        "batch.size": 1_000_000,
        "batch.num.messages": 100_000,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 1 << 20,
        **settings,
    })  # fmt: skip
    for key, value, partition in records:
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the broker did not take all records in 120 s")


def alternate(cluster: Cluster, size: Size, rounds: int) -> tuple[list[float], list[float]]:
    """Return seconds per reading, ours and theirs; the first of each is cold."""
    command = [java_executable(), "-Xmx2g", "-cp", str(cluster.jars / "*"), str(THEIRS), cluster.bootstrap, ALIAS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as theirs:
        spark = spark_session()
        try:

            def our_turn() -> float:
                return read_by_us(spark, cluster.bootstrap, size)

            def their_turn() -> float:
                assert theirs.stdin is not None and theirs.stdout is not None
                theirs.stdin.write("go\n")
                theirs.stdin.flush()
                seconds, found = theirs.stdout.readline().split()
                check("RemoteClusterUtils", int(found), size)
                return float(seconds)

            turns: list[tuple[list[float], Callable[[], float]]] = [([], our_turn), ([], their_turn)]
            for number in range(WARM_UP + rounds):
                for seconds, turn in turns if number % 2 else reversed(turns):
                    seconds.append(turn())
                print(f"round {number}: ours {turns[0][0][-1]:.2f} s, Kafka's {turns[1][0][-1]:.2f} s", flush=True)
            return turns[0][0], turns[1][0]
        finally:
            assert theirs.stdin is not None
            theirs.stdin.close()
            theirs.wait(STOP_SECONDS)
            stop_session(spark)


def ours_on_one_core(bootstrap: str, size: Size, rounds: int) -> list[float]:
    """Return seconds per reading of a Spark that may use one core only."""
    spark = spark_session("local[1]")
    try:
        return [read_by_us(spark, bootstrap, size) for _ in range(WARM_UP + rounds)]
    finally:
        stop_session(spark)


def read_by_us(spark: "SparkSession", bootstrap: str, size: Size) -> float:
    """Return the seconds that one reading takes."""
    start = time.perf_counter()
    reading = read_checkpoints(spark, {"kafka.bootstrap.servers": bootstrap}, TOPIC, LogRange(0, size.records))
    seconds = time.perf_counter() - start
    check("ours", len(reading.latest), size)
    return seconds


def check(who: str, found: int, size: Size) -> None:
    if found != size.keys:
        raise RuntimeError(f"{who}: found {found} keys of {size.keys}")


def report(size: Size, ours: list[float], theirs: list[float]) -> None:
    """Print medians of the warm rounds (the first WARM_UP warm up), the cold first rounds, and the ratio."""
    print()
    print(f"{'':34}{'cold s':>8}{'warm s':>8}{'best s':>8}{'records/s, warm':>17}")
    for name, seconds in (("mm2-migrate, Spark's Kafka source", ours), ("RemoteClusterUtils, pattern form", theirs)):
        warm = median(seconds[WARM_UP:])
        print(f"{name:34}{seconds[0]:8.2f}{warm:8.2f}{min(seconds[WARM_UP:]):8.2f}{size.records / warm:17,.0f}")
    print(f"\nratio (Kafka's time / ours, medians): {median(theirs[WARM_UP:]) / median(ours[WARM_UP:]):.2f}")
    print(f"JVM start is left out on both sides; warm: after {WARM_UP} rounds.")


def report_cores(all_cores: list[float], one_core: list[float]) -> None:
    """Print how many times as fast ours is on all cores as on one (medians of the warm rounds)."""
    on_all, on_one = median(all_cores[WARM_UP:]), median(one_core[WARM_UP:])
    print(f"ours on one core: {on_one:.2f} s warm; on {os.cpu_count()}: {on_one / on_all:.2f} times as fast")

"""How fast `__consumer_offsets` becomes the newest commit per key, beside a plain consumer that only reads it.

Both read the same topic on the same broker in the same run, in turns; ours, as a plan reads it, ends with Python values
in hand, in a Spark that is up already. The consumer keeps nothing.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import LogRange, Side
from migrate.spark.consumer_offsets import offsets_session, topic_reader
from migrate.spark.java_settings import java_settings
from migrate.spark.session import spark_session, stop_session
from migrate.spark.topic_commits import newest_commits
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from migrate.survey.offsets_wire import CommitValue
from scripts.benchmarks.read import Size, write
from tests.integration.clusters import commit
from tests.lab.cluster import Cluster
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.waiting import wait_until
from tests.offsetsbytes import commit_key, commit_value

PARTITIONS = 50
START_SECONDS = 120
AT_MS = 1_790_000_000_000
# Brokers take records of internal topics from a client of this name alone (AdminUtils).
WRITER = {"client.id": "__admin_client"}
READER: dict[str, Any] = {
    "group.id": "bench",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 256 << 10,
}
READ_SECONDS = 600
WARM_UP = 2


def measure(size: Size, rounds: int) -> None:
    """Start a broker, fill its offsets topic, read it in turns, and print a table."""
    # Nothing is compacted: every round must find the same records.
    overrides = {
        "offsets.topic.num.partitions": str(PARTITIONS),
        "offsets.topic.segment.bytes": str(1 << 30),
        "log.cleaner.enable": "false",
    }
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder:
        cluster = Cluster("bench", Path(folder), overrides=overrides)
        try:
            print(f"Starting a broker, Kafka {DEFAULT_VERSION} ...", flush=True)
            cluster.start()
            cluster.create_topic("orders", size.partitions)
            # The topic is not there before somebody commits.
            commit(cluster.bootstrap, {"first": {("orders", 0): 1}})
            wait_until(lambda: _has_leaders(cluster.bootstrap), START_SECONDS, f"leaders of {OFFSETS_TOPIC}")
            fill(cluster.bootstrap, size)
            logs = wait_until(lambda: _filled(cluster.bootstrap, size), START_SECONDS, "the records to be readable")
            print(f"{OFFSETS_TOPIC}: {size.records:,} commits, {size.keys:,} keys ({size.groups:,} groups)", flush=True)
            report(size, *alternate(cluster.bootstrap, logs, size, rounds))
        finally:
            cluster.stop()


def fill(bootstrap: str, size: Size) -> None:
    """Write commits round by round over all keys, each where its group's coordinator would."""
    names = [f"group-{number:05d}" for number in range(size.groups)]
    homes = [partition_of(name, PARTITIONS) for name in names]

    def records() -> Iterator[tuple[bytes, bytes, int]]:
        for number in range(size.records):
            group, partition = divmod(number % size.keys, size.partitions)
            value = commit_value(CommitValue(3, number, None, "", AT_MS + number))
            yield commit_key(names[group], "orders", partition), value, homes[group]

    write(bootstrap, OFFSETS_TOPIC, records(), **WRITER)


def _has_leaders(bootstrap: str) -> bool:
    consumer = Consumer({"bootstrap.servers": bootstrap, **READER})
    try:
        partitions = consumer.list_topics(OFFSETS_TOPIC, timeout=5).topics[OFFSETS_TOPIC].partitions
    finally:
        consumer.close()
    return len(partitions) == PARTITIONS and all(each.leader >= 0 for each in partitions.values())


def _filled(bootstrap: str, size: Size) -> Mapping[int, LogRange] | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, **READER})
    try:
        found = {n: consumer.get_watermark_offsets(TopicPartition(OFFSETS_TOPIC, n)) for n in range(PARTITIONS)}
    finally:
        consumer.close()
    logs = {n: LogRange(*ends) for n, ends in found.items() if ends is not None}
    return logs if sum(log.end - log.start for log in logs.values()) > size.records else None


def alternate(bootstrap: str, logs: Mapping[int, LogRange], size: Size, rounds: int) -> tuple[list[float], list[float]]:
    """Return seconds per reading, ours and the consumer's; the first WARM_UP of each warm up."""
    spark = offsets_session(spark_session)
    read = topic_reader(spark, java_settings(FlowCluster(Side.SOURCE, "bench", {"bootstrap.servers": bootstrap})))
    try:

        def our_turn() -> int:
            told = newest_commits(read, logs, PARTITIONS)
            return sum(map(len, told.commits.values())) - len(told.commits.get("first", ()))

        def plain_turn() -> int:
            return plainly_read(bootstrap, logs) - 1

        turns: list[tuple[list[float], Callable[[], int], int]] = [
            ([], our_turn, size.keys), ([], plain_turn, size.records),
        ]  # fmt: skip
        for number in range(WARM_UP + rounds):
            for seconds, turn, wanted in turns if number % 2 else reversed(turns):
                began = time.perf_counter()
                found = turn()
                seconds.append(time.perf_counter() - began)
                # Groups' own records, that of "first", lie beside.
                if found < wanted:
                    raise RuntimeError(f"found {found:,} of {wanted:,}")
            print(f"round {number}: ours {turns[0][0][-1]:.2f} s, consumer {turns[1][0][-1]:.2f} s", flush=True)
        return turns[0][0], turns[1][0]
    finally:
        stop_session(spark)


def plainly_read(bootstrap: str, logs: Mapping[int, LogRange]) -> int:
    """Return how many records one consumer reads, from the start of each partition to its end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, **READER})
    wanted, read = sum(log.end - log.start for log in logs.values()), 0
    deadline = time.monotonic() + READ_SECONDS
    try:
        consumer.assign([TopicPartition(OFFSETS_TOPIC, n, log.start) for n, log in logs.items() if log.start < log.end])
        while read < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the consumer read {read:,} of {wanted:,} records in {READ_SECONDS} s")
            for message in consumer.consume(10_000, 0.5):
                if message.error() is not None:
                    raise RuntimeError(str(message.error()))
                read += 1
    finally:
        consumer.close()
    return read


def report(size: Size, ours: list[float], plain: list[float]) -> None:
    """Print medians of the warm rounds, and how many times as long ours takes."""
    print(f"\n{'':34}{'cold s':>8}{'warm s':>8}{'records/s, warm':>17}")
    for name, seconds in (("newest commit per key, by Spark", ours), ("a plain consumer, keeping none", plain)):
        warm = median(seconds[WARM_UP:])
        print(f"{name:34}{seconds[0]:8.2f}{warm:8.2f}{size.records / warm:17,.0f}")
    print(f"\nratio (ours / the consumer's, medians): {median(ours[WARM_UP:]) / median(plain[WARM_UP:]):.2f}")

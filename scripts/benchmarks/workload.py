"""Logs of both clusters, the offset syncs between them, and the commits: what `scripts/bench match` compares."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from confluent_kafka import Producer

from migrate.match.protocol import Work
from migrate.mm2.topics import WindowQuestion
from migrate.mm2.wire import SyncRecord
from migrate.model import LogRange, TopicPartition
from tests.wirebytes import encode_sync

SYNCS_TOPIC = "mm2-offset-syncs.B.internal"
KEY_BYTES = 16
VALUE_BYTES = 184
# One sync per this many records: what makes a window about 100 records wide.
SYNC_EVERY = 100
# Batches of about 20 KB, near what Java's producers make by default.
RECORDS_PER_BATCH = 100
SEED = 20_260_101
_FILLER = random.Random(SEED).randbytes(1 << 20)


@dataclass(frozen=True)
class Workload:
    """`windows` commits: `groups` of them on each partition, on logs of `length` records.

    `recent` is the share of commits within `tail` records of the end; the others lie anywhere before.
    """

    name: str
    partitions: int
    groups: int
    length: int
    recent: float
    tail: int

    @property
    def copy(self) -> str:
        return f"A.{self.name}"

    def cut(self, windows: int) -> "Workload":
        """Return the same on so many partitions that it has about `windows` commits, and at least one."""
        partitions = max(1, min(self.partitions, round(windows / self.groups)))
        return Workload(self.name, partitions, self.groups, self.length, self.recent, self.tail)

    def works(self) -> list[Work]:
        """Return the partitions with their commits; equal commits of several groups share a window."""
        log = LogRange(0, self.length)
        return [
            Work(
                TopicPartition(self.name, p),
                TopicPartition(self.copy, p),
                log,
                log,
                tuple(sorted(set(self.commits(p)))),
            )
            for p in range(self.partitions)
        ]

    def windows(self) -> int:
        return self.partitions * self.groups

    def commits(self, partition: int) -> Iterator[int]:
        """Yield what each group has committed on a partition."""
        source = random.Random(f"{SEED}-{self.name}-{partition}")
        for _ in range(self.groups):
            if source.random() < self.recent:
                yield source.randrange(self.length - self.tail, self.length)
            else:
                yield source.randrange(0, self.length - self.tail)

    def questions(self) -> list[WindowQuestion]:
        return [WindowQuestion(self.name, p, 0, self.length, self.length) for p in range(self.partitions)]


USUAL = Workload("usual", partitions=1000, groups=100, length=5000, recent=0.95, tail=2000)
SPREAD = Workload("spread", partitions=200, groups=500, length=20_000, recent=0.0, tail=0)


def write(workload: Workload, source: str, target: str) -> int:
    """Write both logs and the syncs, the three side by side; return the number of syncs."""
    began = time.time_ns() // 1_000_000
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        logs = [
            pool.submit(write_log, bootstrap, topic, workload, began)
            for bootstrap, topic in ((source, workload.name), (target, workload.copy))
        ]
        syncs = _write_syncs(source, workload)
        for log in logs:
            log.result()
    return syncs


def write_log(bootstrap: str, topic: str, workload: Workload, began: int) -> None:
    """Fill every partition, a stretch of each in turn, so that many are written to at once."""
    producer = producer_for(bootstrap)
    for start in range(0, workload.length, RECORDS_PER_BATCH):
        for partition in range(workload.partitions):
            for offset in range(start, min(workload.length, start + RECORDS_PER_BATCH)):
                key = b"%0*d" % (KEY_BYTES, partition * workload.length + offset)
                at = (partition * 7919 + offset * 104_729) % (len(_FILLER) - VALUE_BYTES)
                value = key + _FILLER[at : at + VALUE_BYTES - KEY_BYTES]
                produce(producer, topic, partition, key, value, began + offset)
        producer.poll(0)
    flush(producer)


def _write_syncs(bootstrap: str, workload: Workload) -> int:
    producer = producer_for(bootstrap)
    count = 0
    for offset in range(0, workload.length, SYNC_EVERY):
        for partition in range(workload.partitions):
            key, value = encode_sync(SyncRecord(workload.name, partition, offset, offset))
            produce(producer, SYNCS_TOPIC, 0, key, value, 0)
            count += 1
        producer.poll(0)
    flush(producer)
    return count


def producer_for(bootstrap: str) -> Producer:
    """Return a producer of many small batches."""
    return Producer({
        "bootstrap.servers": bootstrap,
        # Or a busy broker's retries put batches into another order on one of the clusters.
        "enable.idempotence": True,
        "linger.ms": 50,
        "batch.num.messages": RECORDS_PER_BATCH,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 256 << 10,
        "log_level": 0,
    })  # fmt: skip


def produce(producer: Producer, topic: str, partition: int, key: bytes, value: bytes, timestamp: int) -> None:
    """Hand one record over, once there is room for it."""
    while True:
        try:
            producer.produce(topic, value, key, partition, timestamp=timestamp)
            return
        except BufferError:
            producer.poll(0.05)


def flush(producer: Producer) -> None:
    """Wait until all is written."""
    if producer.flush(300):
        raise RuntimeError("the broker did not take all records in 300 s")

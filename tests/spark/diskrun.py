"""A comparing of so many topics that what Spark's tasks are given does not fit into a megabyte; run by a test.

`python -m tests.spark.diskrun FOLDER SECRET...` leaves its event log in the folder, and Spark's local files below it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.settings import ClientSettings
from migrate.match.compare import compare_records
from migrate.match.protocol import Limits, Work, no_chain
from migrate.mm2.wire import SyncRecord
from migrate.model import LogRange, Side, TopicPartition
from migrate.spark.session import spark_session, stop_session
from migrate.spark.syncs import Syncs
from migrate.spark.tasks import SparkTasks
from tests.memorylogs import MemoryReader
from tests.spark.comparescene import Heard
from tests.spark.records import FLOW, frame
from tests.wirebytes import encode_sync

TOPICS = 4_500
# Of the longest names that there are, fewer topics do.
NAME_LENGTH = 249
EMPTY = LogRange(0, 0)


@dataclass(frozen=True)
class SecretReaders:
    """What travels to the tasks as it does in earnest: settings with secrets. The logs that it opens are empty."""

    settings: KafkaReaders

    @contextmanager
    def __call__(self) -> Iterator[tuple[MemoryReader, MemoryReader]]:
        yield MemoryReader(defaultdict(dict)), MemoryReader(defaultdict(dict))


def name_of(number: int) -> str:
    return f"{number:05}".ljust(NAME_LENGTH, "t")


def main(folder: Path, secrets: list[str]) -> None:
    events = folder / "events"
    events.mkdir()
    spark = spark_session(
        "local[2]",
        {
            "spark.local.dir": str(folder / "local"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{events}",
            "spark.eventLog.compress": "false",
            # What is looked for must not hide: all is written as it is.
            "spark.io.encryption.enabled": "false",
            "spark.broadcast.compress": "false",
            "spark.shuffle.compress": "false",
            "spark.shuffle.spill.compress": "false",
        },
    )
    names = [name_of(number) for number in range(TOPICS)]
    works = [Work(TopicPartition(n, 0), TopicPartition(f"A.{n}"[:249], 0), EMPTY, EMPTY, (0,)) for n in names]
    sides = [
        ClientSettings(
            side, side.name, str(side), {"sasl.password": secret, "ssl.key.pem": secret}, frozenset({secret})
        )
        for side, secret in zip(Side, secrets, strict=True)
    ]
    try:
        readers = SecretReaders(KafkaReaders(sides[0], sides[1], 10.0))
        syncs = Syncs(frame(spark, [encode_sync(SyncRecord(names[0], 0, 0, 0))]), FLOW)
        # The questions held in the driver, and in Spark.
        for chains in (no_chain, syncs):
            tasks = SparkTasks(lambda: spark, lambda chains=chains: chains, readers)  # type: ignore[misc]
            found = compare_records(tasks, works, Limits(1000, None), Heard().listener)
            print(len(found.answers))
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

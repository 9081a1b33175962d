"""One partition of a topic, between two pinned offsets, as a DataFrame of Spark's own Kafka source."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from migrate.model import LogRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The source's own columns, for a range that holds nothing.
SCHEMA = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}

# Sizes that suit topics of small records; the user's own properties win.
TUNING = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(32 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
}
# What an answer, or a night, depends on: no property of the user's changes it. Spark asks the broker for the
# log's ends after every poll, and a poll at the end of a range waits for fetch.max.wait: with the defaults
# (500 records, 500 ms) a long topic takes ten times as long.
FIXED = {
    "kafka.fetch.max.wait.ms": "1",
    "kafka.max.poll.records": "50000",
    "kafka.isolation.level": "read_committed",
    "kafka.allow.auto.create.topics": "false",
    "failOnDataLoss": "true",
}


def read_topic(
    spark: "SparkSession",
    options: Mapping[str, str],
    topic: str,
    pinned: LogRange,
    partition: int = 0,
    min_partitions: int | None = None,
) -> "DataFrame":
    """Return the records of `topic`-`partition` with `pinned.start` <= offset < `pinned.end`, read_committed.

    `options` are those of the source (Java client properties under `kafka.`); `min_partitions` is into how many
    tasks the range is cut, by default as many as Spark runs at once. Nothing is read until an action runs; if
    the log's start has passed `pinned.start` by then, the action fails.
    """
    if pinned.start >= pinned.end:
        return spark.range(0).selectExpr(*(f"cast(null as {kind}) as {name}" for name, kind in SCHEMA.items()))
    tasks = min_partitions or spark.sparkContext.defaultParallelism
    ranges = {
        "assign": json.dumps({topic: [partition]}),
        "startingOffsets": json.dumps({topic: {str(partition): pinned.start}}),
        "endingOffsets": json.dumps({topic: {str(partition): pinned.end}}),
        "minPartitions": str(max(1, min(tasks, pinned.end - pinned.start))),
    }
    return spark.read.format("kafka").options(**{**TUNING, **options, **FIXED, **ranges}).load()

"""A partition of a topic between two pinned offsets as a DataFrame, and values to and from Spark's JVM in bulk.

The reading is Spark's own Kafka source. Into Spark, values travel as JSON documents of some thousand values each; out
of it as columns of arrays, without Python workers, pandas or Arrow: both are handled by fast library code, while
single rows cost microseconds each on both sides.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from migrate.errors import ClusterError
from migrate.mm2.secrets import redact
from migrate.model import LogRange
from migrate.spark.java_errors import root_cause
from migrate.spark.java_settings import JavaSettings, allow_token_endpoint, is_for_this_machine, out_of_reach
from migrate.spark.machine import log_file
from migrate.spark.session_settings import is_local
from migrate.survey.offsets_topic import READER_GROUP_PREFIX

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
    "kafka.allow.auto.create.topics": "false",
    "failOnDataLoss": "true",
}


def read_topic(
    spark: "SparkSession", options: Mapping[str, str], topic: str, pinned: LogRange, min_partitions: int | None = None
) -> "DataFrame":
    """Return the records of the topic's partition 0 with `pinned.start` <= offset < `pinned.end`, read_committed.

    `options` are those of the source (Java client properties under `kafka.`); `min_partitions` is into how many
    tasks the range is cut, by default as many as Spark runs at once. Nothing is read until an action runs; if
    the log's start has passed `pinned.start` by then, the action fails.
    """
    tasks = min_partitions or spark.sparkContext.defaultParallelism
    cut = {"minPartitions": str(max(1, min(tasks, pinned.end - pinned.start)))}
    return read_ranges(spark, {**options, **cut}, topic, {0: pinned})


def read_ranges(
    spark: "SparkSession",
    options: Mapping[str, str],
    topic: str,
    ranges: Mapping[int, LogRange],
    isolation_level: str = "read_committed",
) -> "DataFrame":
    """Return the records of a topic between pinned offsets by partition; of ranges that hold nothing, none."""
    held = {partition: log for partition, log in ranges.items() if log.start < log.end}
    if not held:
        return spark.range(0).selectExpr(*(f"cast(null as {kind}) as {name}" for name, kind in SCHEMA.items()))
    if is_for_this_machine(options) and not is_local(spark.sparkContext.master):
        raise out_of_reach()
    allow_token_endpoint(spark._jvm, options)
    pinned = {
        "kafka.isolation.level": isolation_level,
        "assign": json.dumps({topic: sorted(held)}),
        "startingOffsets": json.dumps({topic: {str(p): log.start for p, log in held.items()}}),
        "endingOffsets": json.dumps({topic: {str(p): log.end for p, log in held.items()}}),
    }
    return spark.read.format("kafka").options(**{**TUNING, **options, **FIXED, **pinned}).load()


DOCUMENT_SIZE = 10_000


def into_spark(spark: "SparkSession", rows: Iterable[Sequence[object]], schema: str) -> "DataFrame":
    """Return a DataFrame of `rows`; `schema` is DDL such as "id bigint, name string", in the rows' order.

    Values are what JSON can say (None is NULL); text may hold any character.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import expr

    fields = [field.split() for field in schema.split(",")]
    names, struct = [name for name, _ in fields], ",".join(map(":".join, fields))
    jvm: Any = spark._jvm
    documents = jvm.java.util.ArrayList()
    source = iter(rows)
    while batch := [dict(zip(names, row, strict=True)) for row in islice(source, DOCUMENT_SIZE)]:
        documents.add(json.dumps(batch))
    strings = spark._jsparkSession.createDataset(documents, jvm.org.apache.spark.sql.Encoders.STRING())
    frame = DataFrame(strings.toDF(), spark)
    if documents.size() > 1:
        # One document list is one partition; parsing is the slow part.
        frame = frame.repartition(min(documents.size(), spark.sparkContext.defaultParallelism))
    return frame.select(expr(f"inline(from_json(value, 'array<struct<{struct}>>'))"))


def out_of_spark(frame: "DataFrame", place: str) -> Iterator[tuple[Any, ...]]:
    """Run the query and yield its rows as plain tuples. No value may be NULL: arrays leave NULLs out.

    `place` is an integer expression over the frame's columns, by whose remainders rows are spread evenly over a few
    arrays per column.
    """
    from pyspark.sql.functions import expr

    buckets = max(4, frame.sparkSession.sparkContext.defaultParallelism)
    arrays = [expr(f"collect_list(`{name}`)") for name in frame.columns]
    for _, *columns in frame.groupBy(expr(f"pmod({place}, {buckets})")).agg(*arrays).collect():
        yield from zip(*columns, strict=True)


def as_bytes(value: bytearray | None) -> bytes | None:
    """Return a binary column's value as Python's own type."""
    return None if value is None else bytes(value)


@contextmanager
def reading_topic(settings: JavaSettings, topic: str) -> Iterator[None]:
    """Make one paragraph, without a stack trace or a secret, of what Spark raises over a topic."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        cause = redact(root_cause(error), settings.secrets)
        remedy = "Check that the topic still exists and that this principal may READ and DESCRIBE it"
        if "GroupAuthorizationException" in cause:
            remedy = f"Let this principal DESCRIBE groups that begin with {READER_GROUP_PREFIX} (docs/rights.md)"
        raise ClusterError(
            f"Topic {topic} on {settings.name} could not be read: {cause}.",
            f"{remedy}; Spark's own log is {log_file()}.",
        ) from error

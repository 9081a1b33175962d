"""MM2's checkpoints topic: read once, the newest checkpoint of every group and partition, and a count of the rest.

The newest is the one at the greatest log offset, never the one of the greatest timestamp. Records are grouped by
their raw keys (the encoding is canonical) with fixed-width aggregates only, which Spark hashes instead of
sorting; strings are decoded afterwards, once per key. A record that is no checkpoint is counted under its label
and otherwise ignored; a tombstone takes the checkpoints before it away.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.mirror import CheckpointKey, CheckpointReading, CheckpointRecord
from migrate.model import LogRange
from migrate.spark import columns
from migrate.spark.source import read_topic
from migrate.spark.transport import arrays, bucket
from migrate.wire import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_checkpoints(
    spark: "SparkSession", options: Mapping[str, str], topic: str, pinned: LogRange
) -> CheckpointReading:
    """Read a checkpoints topic (one partition, as MM2 makes it) between two pinned offsets.

    Reads the range once, and the part of it that holds metadata once more if any newest checkpoint has some.
    """
    if pinned.start >= pinned.end:
        return CheckpointReading({}, {})
    reading, unfinished = newest_checkpoints(read_topic(spark, options, topic, pinned))
    if not unfinished:
        return reading
    part = LogRange(min(unfinished), max(unfinished) + 1)
    texts = metadata_at(read_topic(spark, options, topic, part), unfinished)
    finished = {key: replace(reading.latest[key], metadata=texts[p]) for p, key in unfinished.items()}
    return CheckpointReading({**reading.latest, **finished}, reading.counts)


def newest_checkpoints(records: "DataFrame") -> tuple[CheckpointReading, Mapping[int, CheckpointKey]]:
    """Return the newest checkpoint per key of a DataFrame with the source's columns.

    The records at the positions in the second result have metadata, which is still missing in the first.
    """
    newest: dict[tuple[str, str, int], tuple[int, int, int, int, int]] = {}
    counts: dict[str, int] = {}
    for label, count, *told in _by_label(_labelled(records)).collect():
        counts[label] = counts.get(label, 0) + count
        for group, topic, partition, *found in zip(*told, strict=True):
            # A key comes more than once where values of different shapes were written under it.
            before = newest.get((group, topic, partition))
            if before is None or before[0] < found[0]:
                newest[group, topic, partition] = tuple(found)
    latest: dict[CheckpointKey, CheckpointRecord] = {}
    unfinished: dict[int, CheckpointKey] = {}
    for names_of, (position, shape, source_offset, target_offset, timestamp) in newest.items():
        if shape == columns.TOMBSTONE:
            continue
        key = CheckpointKey(*names_of)
        latest[key] = CheckpointRecord(source_offset, target_offset, "", position, timestamp)
        if shape == columns.CHECKPOINT_WITH_METADATA:
            unfinished[position] = key
    return CheckpointReading(latest, counts), unfinished


def metadata_at(records: "DataFrame", positions: Collection[int]) -> Mapping[int, str]:
    """Return the metadata of the checkpoints at these positions."""
    rows = records.where(f"length(value) > {columns.CHECKPOINT_HEAD}").selectExpr(
        "offset", f"cast({columns.metadata()} as string)"
    )
    return {offset: text for offset, text in rows.toLocalIterator() if offset in positions}


def _labelled(records: "DataFrame") -> "DataFrame":
    """Return one row per raw key and shape of value: its label, how many (`n`), and the newest one's contents."""
    from pyspark.sql.functions import expr

    decoded = records.selectExpr(
        "key",
        "value",
        "offset as position",
        "unix_millis(timestamp) as timestamp",
        f"{columns.first_number()} as source_offset",
        f"{columns.second_number()} as target_offset",
    )
    shaped = decoded.withColumn("shape", expr(columns.shape("source_offset", "target_offset")))
    grouped = shaped.groupBy("key", "shape").agg(
        expr("count(*) as n"),
        expr("max(position) as position"),
        expr("coalesce(max_by(source_offset, position), 0) as source_offset"),
        expr("coalesce(max_by(target_offset, position), 0) as target_offset"),
        expr("max_by(timestamp, position) as timestamp"),
    )
    return grouped.withColumn("label", expr(columns.label(Kind.CHECKPOINT)))


def _by_label(labelled: "DataFrame") -> "DataFrame":
    """Return few rows: a label, how many records have it, and arrays with what its keys say.

    Only checkpoints, and tombstones under a checkpoint's key, are in the arrays: a wrong topic may have any number
    of keys. (An Observation would count in passing too, but waits forever where Spark finds a stage empty.)
    """
    from pyspark.sql.functions import expr

    of_a_key = (
        f"label = '{Kind.CHECKPOINT}' or (label = '{Kind.TOMBSTONE}' and {columns.checkpoint_key_problem()} is null)"
    )
    numbers = ("position", "shape", "source_offset", "target_offset", "timestamp")
    wanted = {**columns.checkpoint_key(), **{name: name for name in numbers}}
    named = labelled.selectExpr(
        "label", "n", *(f"{sql} as `{name}`" for name, sql in wanted.items()), f"{of_a_key} as of_a_key"
    )
    return (
        named.groupBy("label", bucket(named, "position"))
        .agg(expr("sum(n)"), *arrays(list(wanted), "of_a_key"))
        .drop("bucket")
    )

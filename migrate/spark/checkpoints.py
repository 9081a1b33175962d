"""MM2's checkpoints topic: the newest checkpoint of every group and partition, and a count of all records by label.

The newest is the one at the greatest log offset, never the one of the greatest timestamp. Two passes: the first
finds the newest position of each raw key (the encoding is canonical) with fixed-width aggregates only, which Spark
hashes instead of sorting, and decodes nothing; the second reads the records at these positions. Most often they
are near the log's end, so that the second pass is short. A record that is no checkpoint is counted under its label
and otherwise ignored; a tombstone takes the checkpoints before it away.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from migrate.mm2.checkpoint_table import CheckpointTable, WrittenCheckpoints
from migrate.mm2.topics import CheckpointReading
from migrate.mm2.wire import RecordKind
from migrate.model import LogRange
from migrate.spark import columns
from migrate.spark.dataframes import read_topic
from migrate.survey.offsets_pin import CompactedMeanwhileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_checkpoints(
    spark: "SparkSession", options: Mapping[str, str], topic: str, pinned: LogRange
) -> CheckpointReading:
    """Read a checkpoints topic (one partition, as MM2 makes it) between two pinned offsets.

    Raises `CompactedMeanwhileError` if the topic is compacted between the two passes.
    """
    if pinned.start >= pinned.end:
        return CheckpointReading({}, {})
    return newest_checkpoints(lambda part: read_topic(spark, options, topic, part), pinned)


def newest_checkpoints(records: Callable[[LogRange], "DataFrame"], pinned: LogRange) -> CheckpointReading:
    """Return what the records in a range say; `records` reads a part of it, with the source's columns.

    Raises `CompactedMeanwhileError` if a record that the first pass saw was gone in the second: a newer one, beyond
    the pin, won.
    """
    newest = _newest_positions(records(pinned)).persist()
    try:
        counts: dict[str, int] = {}
        positions: list[int] = []
        expected = 0
        for label, count, keys, first, last in _by_label(newest).collect():
            counts[label] = count
            if keys:
                expected += keys
                positions += (first, last)
        if not positions:
            return CheckpointReading({}, counts)
        part = LogRange(min(positions), max(positions) + 1)
        written = list(_written(_contents(records(part), newest)))
    finally:
        newest.unpersist()
    found = sum(len(each.positions) for each in written)
    if found != expected:
        raise CompactedMeanwhileError("MM2's checkpoints topic")
    return CheckpointReading(CheckpointTable(written), counts)


def _newest_positions(records: "DataFrame") -> "DataFrame":
    """Return one row per raw key and shape of value: label, number, newest position, and whether it is of a key.

    Only checkpoints and tombstones under a checkpoint's key are (`of_a_key`): a wrong topic may have any number of
    keys, and none of them leaves Spark.
    """
    shaped = records.selectExpr("key", "offset", f"{columns.shape()} as shape")
    newest = shaped.groupBy("key", "shape").agg({"*": "count", "offset": "max"})
    of_a_key = f"label = '{RecordKind.CHECKPOINT}' or (label = '{RecordKind.TOMBSTONE}' and names_key)"
    return columns.with_label(newest, RecordKind.CHECKPOINT).selectExpr(
        "label", "`count(1)` as n", "`max(offset)` as position", f"{of_a_key} as of_a_key"
    )


def _by_label(newest: "DataFrame") -> "DataFrame":
    from pyspark.sql.functions import expr

    return newest.groupBy("label").agg(
        expr("sum(n)"),
        expr("count_if(of_a_key)"),
        expr("min(position) filter (where of_a_key)"),
        expr("max(position) filter (where of_a_key)"),
    )


def _contents(records: "DataFrame", newest: "DataFrame") -> "DataFrame":
    """Return the records at the newest positions, decoded in full; offsets of a tombstone are 0."""
    from pyspark.sql.functions import broadcast

    places = newest.where("of_a_key").selectExpr("position as offset")
    names = columns.checkpoint_key()
    source_offset, target_offset = columns.int64("value", 3), columns.int64("value", 11)
    kept = records.join(broadcast(places), "offset", "left_semi")
    return kept.selectExpr("*", f"{columns.group_size()} as first").selectExpr(
        *(f"{sql} as `{name}`" for name, sql in names.items()),
        "offset as position",
        "if(value is null, 1, 0) as is_tombstone",
        f"coalesce({source_offset}, 0) as source_offset",
        f"coalesce({target_offset}, 0) as target_offset",
        f"coalesce(cast({columns.metadata()} as string), '') as metadata",
        "unix_millis(timestamp) as timestamp",
    )


def _written(contents: "DataFrame") -> Iterator[WrittenCheckpoints]:
    """Run the query and yield what was written about each group and topic.

    Each column travels as one text: a million Python numbers for each would be there at once otherwise.
    """
    from pyspark.sql.functions import expr

    numbers = ("partition", "position", "is_tombstone", "source_offset", "target_offset", "timestamp")
    listed = [expr(f"array_join(collect_list(cast(`{name}` as string)), ',') as `{name}`") for name in numbers]
    # All columns of a group are collected from the same rows, in the same order.
    metadata = expr("if(max(length(metadata)) = 0, cast(array() as array<string>), collect_list(metadata)) as metadata")
    for group, topic, *lists, texts in contents.groupBy("group", "topic").agg(*listed, metadata).collect():
        partitions, positions, *others = (array("q", map(int, each.split(","))) for each in lists)
        is_tombstone, source_offsets, target_offsets, timestamps = others
        yield WrittenCheckpoints(
            group, topic, partitions, positions, is_tombstone, source_offsets, target_offsets, timestamps, texts
        )

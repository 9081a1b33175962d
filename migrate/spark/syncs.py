"""MM2's offset-syncs topic: the full history, and the window around each committed offset asked about."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from migrate.mirror import SyncReading, WindowQuestion
from migrate.model import LogRange, OffsetSync
from migrate.spark import chain, columns
from migrate.spark.source import read_topic
from migrate.spark.transport import into_spark, out_of_spark
from migrate.translation import Window
from migrate.wire import Kind, encode_sync_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_WINDOW = Window(None, None)
# Stands for "no sync on this side" while a row travels; positions are never negative.
_NONE = -1
_PARTS = ("position", "source", "target")


def read_windows(
    spark: "SparkSession",
    options: Mapping[str, str],
    topic: str,
    pinned: LogRange,
    questions: Collection[WindowQuestion],
) -> SyncReading:
    """Read an offset-syncs topic (one partition, as MM2 makes it) between two pinned offsets, once."""
    if pinned.start >= pinned.end:
        return SyncReading(dict.fromkeys(questions, NO_WINDOW), {})
    return windows_of(read_topic(spark, options, topic, pinned), questions)


def windows_of(records: "DataFrame", questions: Collection[WindowQuestion]) -> SyncReading:
    """Return the windows from a DataFrame with the source's columns, and the count of records by label."""
    from pyspark.storagelevel import StorageLevel

    asked = list(dict.fromkeys(questions))
    decoded = _decoded(records).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counts = _counts(decoded)
        windows = dict.fromkeys(asked, NO_WINDOW)
        if asked and Kind.OFFSET_SYNC.value in counts:
            for found, *around in out_of_spark(_answers(decoded, asked), "id"):
                windows[asked[found]] = Window(_sync(*around[:3]), _sync(*around[3:]))
        return SyncReading(windows, counts)
    finally:
        decoded.unpersist()


def _decoded(records: "DataFrame") -> "DataFrame":
    source_offset, target_offset = columns.sync_offsets()
    return records.selectExpr(
        "key",
        "offset as position",
        f"{source_offset} as source_offset",
        f"{target_offset} as target_offset",
        f"{columns.shape()} as shape",
    )


def _counts(decoded: "DataFrame") -> Mapping[str, int]:
    """Count the records by label; labels are found once per key and shape."""
    labelled = columns.with_label(decoded.groupBy("key", "shape").count(), Kind.OFFSET_SYNC)
    return dict(labelled.groupBy("label").sum("count").collect())


def _answers(decoded: "DataFrame", asked: Collection[WindowQuestion]) -> "DataFrame":
    """Return one row per question that has a sync on either side; the row's `id` is the question's place."""
    spark = decoded.sparkSession
    keys = {place: encode_sync_key(*place).hex() for place in {(q.source_topic, q.partition) for q in asked}}
    bounds = {(keys[q.source_topic, q.partition], q.source_end, q.target_end) for q in asked}
    ends = into_spark(spark, bounds, "hex string, source_end bigint, target_end bigint")
    commits = into_spark(
        spark,
        ((keys[q.source_topic, q.partition], i, q.source_committed) for i, q in enumerate(asked)),
        "hex string, id bigint, source_committed bigint",
    )
    syncs = decoded.where(f"shape in {columns.SYNCS}").drop("shape")
    links = chain.links(chain.inside(syncs, _with_key(ends)))
    found = chain.windows(links, _with_key(commits))
    return found.where("lower_position is not null or upper_position is not null").selectExpr(
        "id", *(f"coalesce({side}_{part}, {_NONE})" for side in ("lower", "upper") for part in _PARTS)
    )


def _with_key(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("unhex(hex) as key", *(name for name in frame.columns if name != "hex"))


def _sync(position: int, source_offset: int, target_offset: int) -> OffsetSync | None:
    return None if position == _NONE else OffsetSync(position, source_offset, target_offset)

"""MM2's offset-syncs topic: the full history, and the window around each committed offset asked about."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from migrate.mm2.chain import Window
from migrate.mm2.topics import SyncReading, WindowQuestion
from migrate.mm2.wire import Kind, encode_sync_key
from migrate.model import LogRange, OffsetSync
from migrate.spark import chain, columns
from migrate.spark.dataframes import read_topic
from migrate.spark.transport import into_spark, out_of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_WINDOW = Window(None, None)
# Stands for "no sync on this side" while a row travels; positions are never negative.
_NONE = -1
_PARTS = ("position", "source", "target")


class Syncs:
    """An offset-syncs topic, read and decoded once, and kept in Spark until it is closed.

    `records` has the columns of Spark's Kafka source; `inverted` is True for a failback: what MM2 calls downstream is
    the source of the plan then.
    """

    def __init__(self, records: "DataFrame", inverted: bool = False) -> None:
        from pyspark.storagelevel import StorageLevel

        self._decoded = _decoded(records, inverted).persist(StorageLevel.MEMORY_AND_DISK)

    def reading(self, questions: Collection[WindowQuestion]) -> SyncReading:
        """Return the window of each question, and the count of records by label."""
        asked = list(dict.fromkeys(questions))
        counts = _counts(self._decoded)
        windows = dict.fromkeys(asked, NO_WINDOW)
        if asked and Kind.OFFSET_SYNC.value in counts:
            for found, *around in out_of_spark(_answers(self._decoded, asked), "id"):
                windows[asked[found]] = Window(_sync(*around[:3]), _sync(*around[3:]))
        return SyncReading(windows, counts)

    def chains(self, ends: "DataFrame") -> "DataFrame":
        """Return the chain of each partition in `ends` that has one: key, links (source_offset, target_offset).

        `ends`: key, source_end, target_end. Links are in log order, which is the order of either offset.
        """
        from pyspark.sql.functions import expr

        links = chain.links(chain.inside(_syncs(self._decoded), ends))
        return links.groupBy("key").agg(
            expr("array_sort(collect_list(struct(source_offset, target_offset)))").alias("links")
        )

    def close(self) -> None:
        """Let Spark forget the topic."""
        self._decoded.unpersist()


def read_syncs(
    spark: "SparkSession", options: Mapping[str, str], topic: str, pinned: LogRange, inverted: bool = False
) -> Syncs:
    """Return an offset-syncs topic (one partition, as MM2 makes it) between two pinned offsets, to be read once."""
    return Syncs(read_topic(spark, options, topic, pinned), inverted)


def windows_of(records: "DataFrame", questions: Collection[WindowQuestion], inverted: bool = False) -> SyncReading:
    """Return the windows from a DataFrame with the source's columns, and the count of records by label."""
    with closing(Syncs(records, inverted)) as syncs:
        return syncs.reading(questions)


def _decoded(records: "DataFrame", inverted: bool) -> "DataFrame":
    upstream, downstream = columns.sync_offsets()
    source_offset, target_offset = (downstream, upstream) if inverted else (upstream, downstream)
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
    links = chain.links(chain.inside(_syncs(decoded), _with_key(ends)))
    found = chain.windows(links, _with_key(commits))
    return found.where("lower_position is not null or upper_position is not null").selectExpr(
        "id", *(f"coalesce({side}_{part}, {_NONE})" for side in ("lower", "upper") for part in _PARTS)
    )


def _syncs(decoded: "DataFrame") -> "DataFrame":
    return decoded.where(f"shape in {columns.SYNCS}").drop("shape")


def _with_key(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("unhex(hex) as key", *(name for name in frame.columns if name != "hex"))


def _sync(position: int, source_offset: int, target_offset: int) -> OffsetSync | None:
    return None if position == _NONE else OffsetSync(position, source_offset, target_offset)

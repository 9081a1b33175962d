"""MM2's offset-syncs topic in full: Law 1 of docs/translation.md and the window around each offset, in Spark SQL.

The same as `chain` and `window` in `migrate.mm2.chain`, at the size of a whole topic: both are linear passes over
one sorted shuffle each, never a join by range. Frames name a partition by the raw key of its syncs.
"""

from collections.abc import Collection, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING

from migrate.mm2.chain import NO_WINDOW, Window
from migrate.mm2.flow import Flow
from migrate.mm2.topics import SyncReading, WindowQuestion
from migrate.mm2.wire import RecordKind, encode_sync_key
from migrate.model import OffsetSync
from migrate.spark import columns
from migrate.spark.dataframes import into_spark, out_of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_SYNC = "cast(null as struct<position: bigint, source_offset: bigint, target_offset: bigint>)"
_LATER = "over (partition by key order by position desc rows between unbounded preceding and 1 preceding)"


def inside(syncs: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """Return the syncs of the partitions in `ends` that lie below both log ends.

    `syncs`: key, position, source_offset, target_offset. `ends`: key, source_end, target_end; a NULL end is
    unknown and filters nothing.
    """
    from pyspark.sql.functions import broadcast

    return (
        syncs.join(broadcast(ends), "key")
        .where(
            "source_offset < coalesce(source_end, 9223372036854775807)"
            " and target_offset < coalesce(target_end, 9223372036854775807)"
        )
        .drop("source_end", "target_end")
    )


def chain_of(syncs: "DataFrame") -> "DataFrame":
    """Return the syncs that no later one contradicts (Law 1): two suffix minima in one window.

    Takes and returns key, position, source_offset, target_offset.
    """
    return (
        syncs.selectExpr(
            "*", f"min(source_offset) {_LATER} as least_source", f"min(target_offset) {_LATER} as least_target"
        )
        .where("least_source is null or (source_offset < least_source and target_offset < least_target)")
        .drop("least_source", "least_target")
    )


def windows(chain: "DataFrame", commits: "DataFrame") -> "DataFrame":
    """Return the chain's syncs on either side of each commit.

    `chain` as `chain_of` returns it; `commits`: key, id, source_committed. The result has one row per commit that has
    a sync on either side: id, then position, source_offset and target_offset of the lower sync and of the upper, all
    `_NONE` on a side where the chain has no sync.
    """
    sync = "struct(position, source_offset, target_offset)"
    marked = chain.selectExpr("key", "cast(null as bigint) as id", "source_offset as place", f"{sync} as sync")
    asked = commits.selectExpr("key", "id", "source_committed as place", f"{_NO_SYNC} as sync")
    # Of a sync and a commit at the same place, the sync comes first: it is the lower end, the one after it the upper.
    order = "partition by key order by place, id nulls first"
    both = marked.unionByName(asked).selectExpr(
        "id",
        f"last_value(sync) ignore nulls over ({order} rows between unbounded preceding and current row) as lower",
        f"lead(sync) ignore nulls over ({order}) as upper",
    )
    return both.where("id is not null and (lower is not null or upper is not null)").selectExpr(
        "id", *(f"coalesce({side}.{part}, {_NONE}) as {side}_{part}" for side in ("lower", "upper") for part in _PARTS)
    )


# Means "no sync on this side" while a row travels; positions are never negative.
_NONE = -1
_PARTS = ("position", "source_offset", "target_offset")


class Syncs:
    """An offset-syncs topic, read and decoded once, and kept in Spark until it is closed.

    `records` has the columns of Spark's Kafka source (one partition, as MM2 makes it); `flow` says which of a
    sync's two offsets is the source's.
    """

    def __init__(self, records: "DataFrame", flow: Flow) -> None:
        from pyspark.storagelevel import StorageLevel

        self._decoded = _decoded(records, flow).persist(StorageLevel.MEMORY_AND_DISK)

    def reading(self, questions: Collection[WindowQuestion]) -> SyncReading:
        """Return the window of each question, and the count of records by label."""
        asked, counts = list(dict.fromkeys(questions)), self._counts
        windows = dict.fromkeys(asked, NO_WINDOW)
        if asked and RecordKind.OFFSET_SYNC.value in counts:
            window = cache(_window)  # commits between the same two syncs share one
            for index, *around in out_of_spark(_answers(self._decoded, asked), "id"):
                windows[asked[index]] = window(*around)
        return SyncReading(windows, counts)

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        """How many records have which label; labels are made once per key and shape."""
        labelled = columns.with_label(self._decoded.groupBy("key", "shape").count(), RecordKind.OFFSET_SYNC)
        return dict(labelled.groupBy("label").sum("count").collect())

    def chains(self, ends: "DataFrame") -> "DataFrame":
        """Return the chain of each partition in `ends` that has one: key, sync_pairs (source_offset, target_offset).

        `ends`: key, source_end, target_end. The pairs are in log order, which is the order of either offset.
        """
        from pyspark.sql.functions import expr

        chain = chain_of(inside(_syncs(self._decoded), ends))
        return chain.groupBy("key").agg(
            expr("sort_array(collect_list(struct(source_offset, target_offset)))").alias("sync_pairs")
        )

    def close(self) -> None:
        """Let Spark forget the topic."""
        self._decoded.unpersist()


def _decoded(records: "DataFrame", flow: Flow) -> "DataFrame":
    source_offset, target_offset = flow.turned(*columns.sync_offsets())
    return records.selectExpr(
        "key",
        "offset as position",
        f"{source_offset} as source_offset",
        f"{target_offset} as target_offset",
        f"{columns.shape()} as shape",
    )


def _answers(decoded: "DataFrame", asked: Collection[WindowQuestion]) -> "DataFrame":
    """Return the `windows` of the questions; a row's `id` is the question's index."""
    spark = decoded.sparkSession
    key_of = cache(lambda topic, partition: encode_sync_key(topic, partition).hex())
    keys = [key_of(q.source_topic, q.partition) for q in asked]
    bounds = {(key, q.source_end, q.target_end) for key, q in zip(keys, asked, strict=True)}
    ends = into_spark(spark, bounds, "hex string, source_end bigint, target_end bigint")
    places = ((key, i, q.source_committed) for i, (key, q) in enumerate(zip(keys, asked, strict=True)))
    commits = into_spark(spark, places, "hex string, id bigint, source_committed bigint")
    chain = chain_of(inside(_syncs(decoded), _with_key(ends)))
    return windows(chain, _with_key(commits))


def _syncs(decoded: "DataFrame") -> "DataFrame":
    return decoded.where(f"shape in {columns.SYNCS}").drop("shape")


def _with_key(frame: "DataFrame") -> "DataFrame":
    return frame.selectExpr("unhex(hex) as key", *(name for name in frame.columns if name != "hex"))


def _window(*around: int) -> Window:
    return Window(_sync(*around[:3]), _sync(*around[3:]))


def _sync(position: int, source_offset: int, target_offset: int) -> OffsetSync | None:
    return None if position == _NONE else OffsetSync(position, source_offset, target_offset)

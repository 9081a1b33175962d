"""The commits of `__consumer_offsets` as a time series, in Spark: a row per group, partition and bucket of time.

One pass: records go by raw key, shape and bucket into fixed-width aggregates (a commit's offset stands at the same
place in every version of its value), and keys are decoded once for each of those. What is judged and counted, and how,
is `migrate.spark.consumer_offsets`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from migrate.errors import ClusterError
from migrate.extras.offsets_topic import offset_columns as columns
from migrate.extras.offsets_topic.chosen import judged_and_counted, timed_records
from migrate.extras.offsets_topic.csv_columns import csv_rows
from migrate.extras.offsets_topic.history_values import OFFSET_DELETED, HistoryRequest, end_rows, reason_of
from migrate.extras.offsets_topic.request import TOMBSTONE_UNASKED, Exported
from migrate.kafka.log_times import PlaceTime
from migrate.model import Failure, LogRange, TopicPartition
from migrate.spark.columns import int64
from migrate.spark.consumer_offsets import Read
from migrate.spark.dataframes import into_spark
from migrate.survey import offsets_wire as wire
from migrate.survey.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELDS = {
    "time": "timestamp_millis(time_ms)",
    "group": "`group`",
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "commits": "commits",
    "records_per_s": "records_per_s",
    "end_at_time": "end_at_time",
    "lag": "end_at_time - offset",
    "lag_is_estimate": "if(end_at_time is null, null, true)",
}
_ORDER = ("`group`", "topic", "partition", "time_ms")
# Beyond it Spark decides itself how to join.
_BROADCAST_ROWS = 1_000_000
_TIME = "date_format(timestamp_millis(time_ms), \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"
_IS_COMMIT = f"shape in ({columns.COMMIT}, {columns.COMMIT_WITH_OTHER_TAGS})"
_COMMITS = f"record_type in ({', '.join(map(str, wire.COMMIT_TYPES))})"


@dataclass(frozen=True)
class CommitSeries:
    """The rows of a time series, whose log ends are NULL until they are added; nothing is collected.

    `counted` says what became of all records that were read, `rows` how many rows there are.
    """

    frame: "DataFrame"
    counted: Exported
    rows: int

    def newest(self, count: int) -> "CommitSeries":
        """Return only the rows of the newest times."""
        some = self.frame.orderBy("time_ms", *_ORDER[:3], ascending=[False, True, True, True]).limit(count)
        return replace(self, frame=some)

    def lookups(self) -> int:
        """Return at how many (partition, time) the log's end would have to be asked for."""
        return int(self._places().count())

    def places(self) -> list[PlaceTime]:
        """Return them: ask `lookups` first how many there are."""
        return [(TopicPartition(topic, partition), time_ms) for topic, partition, time_ms in self._places().collect()]

    def _places(self) -> "DataFrame":
        return self.frame.where("not is_gone").select("topic", "partition", "time_ms").distinct()

    def with_ends(self, ends: Mapping[PlaceTime, int | Failure]) -> "CommitSeries":
        """Return the rows with the log's end at their time, NULL where it is not visible.

        An offset that is gone by then has no lag: another group's question may be the same.
        """
        from pyspark.sql.functions import broadcast, expr

        spark, names = self.frame.sparkSession, ("topic", "partition", "time_ms")
        schema = "topic string,partition int,time_ms bigint,end_found bigint,unseen_found string"
        known = into_spark(spark, end_rows(ends), schema)
        known = broadcast(known) if len(ends) <= _BROADCAST_ROWS else known
        joined = self.frame.join(known, list(names), "left").drop("end_at_time", "unseen")
        found = {
            "end_at_time": expr("if(is_gone, null, end_found)"),
            "unseen": expr(f"if(is_gone, '{reason_of(OFFSET_DELETED)}', unseen_found)"),
        }
        return replace(self, frame=joined.withColumns(found).drop("end_found", "unseen_found"))

    def unseen(self) -> dict[str, int]:
        """Return of how many rows the log's end is not visible, by reason."""
        rows = self.frame.where("unseen is not null").groupBy("unseen").count().collect()
        return {row[0]: row[1] for row in rows}

    def csv_lines(self) -> Iterator[str]:
        """Yield a header and a CSV row for each, by group, topic, partition and time; no value is an empty cell.

        Names are made harmless.
        """
        yield ",".join(FIELDS)
        said = {**FIELDS, "time": _TIME}
        table = self.frame.orderBy(*_ORDER).selectExpr(*(f"{sql} as `{name}`" for name, sql in said.items()))
        for row in csv_rows(table).toLocalIterator(prefetchPartitions=True):
            yield row[0]

    def table(self) -> "DataFrame":
        """Return them as columns, in the same order; `time` is a timestamp."""
        return self.frame.orderBy(*_ORDER).selectExpr(*(f"{sql} as `{name}`" for name, sql in FIELDS.items()))

    def shown(self) -> list[Any]:
        """Return all rows, by the names of their fields; `time` in ms since 1970. Only for few."""
        said = {**FIELDS, "time": "time_ms", "unseen": "unseen"}
        return list(self.frame.selectExpr(*(f"{sql} as `{name}`" for name, sql in said.items())).collect())


@contextmanager
def commit_series(
    read: Read, logs: Mapping[int, LogRange], partitions: int, request: HistoryRequest
) -> Iterator[CommitSeries]:
    """Read the topic, which has so many `partitions`, and yield the series; what Spark keeps is given up in the end.

    Raises `ClusterError` if what Spark read twice was compacted in between.
    """
    census = _census(read(logs), request).persist()
    try:
        judged, counted = judged_and_counted(census, request.as_export(), partitions)
        series = _series(judged, request).persist()
        try:
            row = series.selectExpr("count(1)", "coalesce(sum(commits), 0)").collect()[0]
            if row[1] != counted.lines:
                raise ClusterError(f"{OFFSETS_TOPIC} was compacted while it was read.", "Run the command again.")
            yield CommitSeries(series, counted, row[0])
        finally:
            series.unpersist()
    finally:
        census.unpersist()


def _census(records: "DataFrame", request: HistoryRequest) -> "DataFrame":
    """One row per partition of the topic, raw key, shape and bucket."""
    from pyspark.sql.functions import expr

    counts = f"{_COMMITS} and outside = 0 and (shape = {columns.TOMBSTONE} or {_IS_COMMIT})"
    bucket = f"log_timestamp - pmod(log_timestamp, {request.bucket_ms})"
    shaped = timed_records(records, request.as_export()).selectExpr(
        "log_partition", "key", "record_type", "shape", "outside", "log_offset",
        f"case when {counts} then {bucket} end as bucket",
        f"case when {_COMMITS} and {_IS_COMMIT} then {int64('value', 3)} end as committed",
    )  # fmt: skip
    rows = shaped.groupBy("log_partition", "key", "record_type", "shape", "outside", "bucket").agg(
        expr("count(1)").alias("n"),
        expr("max(log_offset)").alias("position"),
        expr("max_by(committed, log_offset)").alias("newest"),
        expr("min(committed)").alias("lowest"),
        expr("max(committed)").alias("highest"),
    )
    return columns.labelled(rows)


def _series(judged: "DataFrame", request: HistoryRequest) -> "DataFrame":
    """One row per group, partition and bucket in which it committed.

    Tombstones are no rows, but what follows one begins anew: its progress would be that since another life.
    """
    from pyspark.sql.functions import expr

    is_tombstone = f"label = '{wire.COMMIT_TOMBSTONE}'"
    kept = judged.where(
        f"bucket is not null and (reason is null or (reason = '{TOMBSTONE_UNASKED}' and {is_tombstone}))"
    )
    points = kept.groupBy("group", "topic", "topic_partition", "bucket").agg(
        expr(f"sum(if({is_tombstone}, 0, n))").alias("commits"),
        expr(f"sum(if({is_tombstone}, n, 0))").alias("tombstones"),
        expr(f"max_by(newest, position) filter (where not {is_tombstone})").alias("offset"),
        expr("max_by(newest, position)").alias("standing"),
        expr("min(lowest)").alias("lowest"),
        expr("max(highest)").alias("highest"),
    )
    end = f"bucket + {request.bucket_ms}"
    cut = request.cut_ms
    timed = points.selectExpr("*", f"if(bucket < {cut} and {cut} < {end}, cast({cut} as bigint), {end}) as time_ms")
    before = "over (partition by `group`, topic, topic_partition order by bucket)"
    rated = timed.selectExpr("*", f"lag(standing) {before} as offset_before", f"lag(time_ms) {before} as ms_before")
    # A group that went back has made no progress, and none that is negative; nor has one that began anew.
    went_on = "tombstones = 0 and lowest >= offset_before and offset >= highest"
    rate = f"case when {went_on} then round((offset - offset_before) / ((time_ms - ms_before) / 1000.0D), 3) end"
    return rated.where("commits > 0").selectExpr(
        "time_ms", "`group`", "topic", "topic_partition as partition", "offset", "commits", f"{rate} as records_per_s",
        "cast(null as bigint) as end_at_time", "cast(null as string) as unseen", "standing is null as is_gone",
    )  # fmt: skip

"""`__consumer_offsets` in full through Spark: which records count, and these as columns or lines.

Two passes. The first groups by raw key and shape of value with fixed-width aggregates only, and decodes no value; what
it leaves, one row for each, is judged: the newest of a key counts, if it is in its group's own partition, tombstones
win, filters see the names. The second reads the chosen records. What was chosen and is not found then was compacted
away in between.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.errors import ClusterError
from migrate.extras.offsets_topic import export_columns as lines
from migrate.extras.offsets_topic import offset_columns as columns
from migrate.extras.offsets_topic import request as export
from migrate.extras.offsets_topic.csv_columns import csv_rows
from migrate.extras.offsets_topic.request import Exported, ExportKinds, ExportRequest
from migrate.model import LogRange
from migrate.spark.consumer_offsets import OFFSETS_A_TASK, Read, topic_reader
from migrate.spark.dataframes import into_spark, reading_topic
from migrate.spark.java_settings import JavaSettings
from migrate.survey import offsets_wire as wire
from migrate.survey.offsets_pin import ATTEMPTS, OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# More than one, for two partitions' lines may come to one task, by their hash.
_TASKS_A_PARTITION = 4
# Brokers take both types of key for the same commit, whose later record counts.
_ONE_KEY = "if(record_type = 0, concat(X'0001', substring(key, 3)), key)"
_TOO_EARLY, _TOO_LATE = 1, 2
_COMMIT_LABELS = (wire.COMMIT, wire.COMMIT_WITH_OTHER_TAGS, wire.COMMIT_TOMBSTONE)
_GROUP_LABELS = (wire.GROUP, wire.GROUP_TOMBSTONE)
_TOMBSTONES = (wire.COMMIT_TOMBSTONE, wire.GROUP_TOMBSTONE)
_ROW = ("log_partition", "key", "record_type", "shape", "empty_since", "outside")

Renewed = Callable[[], Mapping[int, LogRange]]
"""Gives the topic's ranges as they are now."""


@dataclass(frozen=True)
class ChosenRecords:
    """The records to write, as they are asked for; nothing is read before."""

    frame: "DataFrame"
    kinds: ExportKinds

    def json_lines(self) -> Iterator[str]:
        """Yield a line of JSON for each; those of one partition of the topic in the order of its log."""
        return _streamed(lines.as_json(self.frame, self.kinds))

    def csv_lines(self) -> Iterator[str]:
        """Yield a header, and a CSV row for each, on one line: what is not plainly visible is escaped."""
        yield ",".join(lines.names(self.kinds))
        yield from _streamed(csv_rows(self.table()))

    def records(self) -> "DataFrame":
        """Return them as records of another topic (`key`, `value`), those of one key in the order of the log."""
        made = lines.as_records(self.frame, self.kinds)
        # A key's records are in one partition, which several tasks have read: one has to write them.
        ordered = made.repartition("log_partition").sortWithinPartitions("log_partition", "log_offset")
        return ordered.select("key", "value")

    def table(self) -> "DataFrame":
        """Return them as columns, `members` as a list of structs."""
        return lines.as_table(self.frame, self.kinds)


def export_offsets(
    spark: "SparkSession", settings: JavaSettings, pin: OffsetsPin, request: ExportRequest, retention_ms: int | None,
    write: Callable[[ChosenRecords], int], renewed: Renewed | None = None,
) -> Exported:  # fmt: skip
    """Read the pinned topic, let `write` write what is chosen (it returns how many), and say what became of all.

    `spark` is an `offsets_session`. `retention_ms` is how long the brokers keep offsets, None where that is not known.
    `write` is called anew where the topic was compacted in between; then `renewed` gives later ends: what was taken
    away has given place to a record beyond the earlier ones.
    Raises `ClusterError` if the topic cannot be read to its end, or is compacted time and again.
    """
    with reading_topic(settings, OFFSETS_TOPIC):
        read = topic_reader(spark, settings)
        return chosen_and_written(read, pin.logs, pin.partitions, request, retention_ms, write, renewed)


def chosen_and_written(
    read: Read, logs: Mapping[int, LogRange], partitions: int, request: ExportRequest, retention_ms: int | None,
    write: Callable[[ChosenRecords], int], renewed: Renewed | None = None,
) -> Exported:  # fmt: skip
    """As `export_offsets`, from wherever `read` reads; the topic has so many `partitions`."""
    attempts = ATTEMPTS if renewed else 1
    for attempt in range(attempts):
        if attempt and renewed:
            logs = renewed()
        census = _census(read(logs), request).persist()
        try:
            verdicts = _Verdicts.of(census, request, partitions)
            judged = _judged(census, request, verdicts)
            exported = _counted(judged, request)
            chosen = _chosen(read, logs, judged, verdicts, request)
            facts = None if request.history else _group_facts(judged)
            decoded = lines.decoded(chosen, facts, retention_ms)
            if not request.history:
                tasks = 1 if exported.lines <= OFFSETS_A_TASK else _TASKS_A_PARTITION * max(1, len(logs))
                decoded = decoded.repartition(tasks, "log_partition").sortWithinPartitions(
                    "log_partition", "log_offset"
                )
            if write(ChosenRecords(decoded, request.kinds)) == exported.lines:
                return replace(exported, unknown=request.filters.unknown_names(verdicts.present))
        finally:
            census.unpersist()
    times = "once" if attempts == 1 else f"{attempts} times"
    raise ClusterError(f"{OFFSETS_TOPIC} was compacted {times} while it was read.", "Run the command again.")


def timed_records(records: "DataFrame", request: ExportRequest) -> "DataFrame":
    """The source's records under names of their own, with shapes, and `outside`: 0 where their time is inside."""
    early = f"log_timestamp < {request.since_ms}" if request.since_ms is not None else "false"
    late = f"log_timestamp >= {request.until_ms}" if request.until_ms is not None else "false"
    named = records.selectExpr(
        "key", "value", "partition as log_partition", "offset as log_offset",
        "unix_millis(timestamp) as log_timestamp",
    )  # fmt: skip
    outside = f"case when {late} then {_TOO_LATE} when {early} then {_TOO_EARLY} else 0 end as outside"
    return columns.shaped(named).selectExpr("*", outside)


def _census(records: "DataFrame", request: ExportRequest) -> "DataFrame":
    """One row per partition of the topic, raw key and shape: how many, where the last, and is it the key's newest."""
    from pyspark.sql.functions import expr

    # In a history every change of a group would be a row of its own, and nobody asks when its commits expire.
    empty_since = "cast(null as bigint) as empty_since" if request.history else "empty_since"
    shaped = timed_records(records, request).selectExpr(
        *(n for n in _ROW if n != "empty_since"), empty_since, "log_offset"
    )
    rows = shaped.groupBy(*_ROW).agg(expr("count(1)").alias("n"), expr("max(log_offset)").alias("position"))
    newest = f"max(if(outside < {_TOO_LATE}, position, null)) over (partition by log_partition, {_ONE_KEY})"
    return columns.labelled(rows).selectExpr("*", f"coalesce(position = {newest}, false) as is_newest")


@dataclass(frozen=True)
class _Verdicts:
    """The names that a filter takes, by filter; `present` are the groups that the filters are asked about.

    Of these something is there, and is not a tombstone unasked. A group counts in its own partition of the topic alone.
    `strays` are groups with another one in which records of theirs lie, left from when the topic had fewer: no
    coordinator reads them there.
    """

    groups: Mapping[str, str]
    topics: Mapping[str, str]
    present: frozenset[str]
    strays: frozenset[tuple[str, int]]

    @classmethod
    def of(cls, census: "DataFrame", request: ExportRequest, partitions: int) -> "_Verdicts":
        from pyspark.sql.functions import expr

        # Of broken values too: filters are asked about their groups, and such a group is there.
        is_named = f"label not like '{wire.OTHER_TYPE}%'"
        is_there = "true" if request.tombstones else f"not {_among(_TOMBSTONES)}"
        if not request.history:
            is_there += f" and (is_newest or outside = {_TOO_LATE})"
        groups = census.where("`group` is not null").groupBy("group", "log_partition")
        counts = [expr(f"bool_or({is_named})"), expr(f"bool_or({is_named} and {is_there})")]
        rows = [tuple(row) for row in groups.agg(*counts).collect()]
        strays = frozenset((group, place) for group, place, *_ in rows if place != partition_of(group, partitions))
        filters = request.filters
        named = census.where(f"topic is not null and {is_named}")
        topics = named.select("topic").distinct().collect() if filters.topics or filters.exclude_topics else []
        return cls(
            {g: verdict for g, _, has_name, _ in rows if has_name and (verdict := filters.group_verdict(g))},
            {topic: verdict for (topic,) in topics if (verdict := filters.topic_verdict(topic))},
            frozenset(group for group, place, _, is_in in rows if is_in and (group, place) not in strays),
            strays,
        )

    def joined(self, frame: "DataFrame") -> "DataFrame":
        """Add `group_verdict` and `topic_verdict`, NULL where no filter takes a name, and `is_stray`."""
        from pyspark.sql.functions import broadcast

        for name, verdicts in (("group", self.groups), ("topic", self.topics)):
            if not verdicts:
                frame = frame.selectExpr("*", f"cast(null as string) as {name}_verdict")
                continue
            taken = into_spark(frame.sparkSession, verdicts.items(), f"{name}_named string,{name}_verdict string")
            frame = frame.join(broadcast(taken), frame[name] == taken[f"{name}_named"], "left").drop(f"{name}_named")
        if not self.strays:  # as on nearly every cluster
            return frame.selectExpr("*", "false as is_stray")
        strays = into_spark(frame.sparkSession, sorted(self.strays), "stray_group string,stray_partition int")
        is_it = (frame["group"] == strays["stray_group"]) & (frame["log_partition"] == strays["stray_partition"])
        marked = frame.join(broadcast(strays), is_it, "left").selectExpr("*", "stray_group is not null as is_stray")
        return marked.drop("stray_group", "stray_partition")


def _judged(frame: "DataFrame", request: ExportRequest, verdicts: _Verdicts) -> "DataFrame":
    """Add `reason`, why a row's newest record is not written, NULL where it is; and `is_lost`: it should be."""
    wanted = {
        ExportKinds.COMMITS: wire.COMMIT_TYPES,
        ExportKinds.GROUPS: tuple(wire.GROUP_KINDS),
        ExportKinds.ALL: (*wire.COMMIT_TYPES, *wire.GROUP_KINDS),
    }[request.kinds]
    is_wanted = f"record_type in ({', '.join(map(str, wanted))})"
    reason = (
        # Of a type that is not known, what looks like a group's name may be none.
        f"case when is_stray and label not like '{wire.OTHER_TYPE}%' then '{export.NOT_ITS_PARTITION}'"
        f" when not {_among(_COMMIT_LABELS + _GROUP_LABELS)} then label"
        f" when outside <> 0 then '{export.OUTSIDE_TIME}'"
        f" when not {is_wanted} then '{export.OTHER_KIND}'"
        f" when group_verdict is not null then concat('{export.FILTER}', group_verdict)"
        f" when topic_verdict is not null then concat('{export.FILTER}', topic_verdict)"
        + ("" if request.history else f" when not is_newest then '{export.SUPERSEDED}'")
        + ("" if request.tombstones else f" when {_among(_TOMBSTONES)} then '{export.TOMBSTONE_UNASKED}'")
        + " end"
    )
    # A key that cannot be read may be anybody's, and of any type if not even that is there.
    is_lost = (
        f"(label like '{wire.BROKEN_KEY}%' or label like '{wire.BROKEN_VALUE}%') and outside = 0"
        f" and not is_stray and coalesce({is_wanted}, true) and group_verdict is null and topic_verdict is null"
        + ("" if request.history else " and is_newest")
        + ("" if request.tombstones else f" and shape <> {columns.TOMBSTONE}")
    )
    return verdicts.joined(frame).selectExpr("*", f"{reason} as reason", f"{is_lost} as is_lost")


def _counted(judged: "DataFrame", request: ExportRequest) -> Exported:
    from pyspark.sql.functions import expr

    labels: dict[str, int] = {}
    written: dict[str, int] = {}
    left_out: dict[str, int] = {}
    lost: dict[str, int] = {}
    counts = judged.groupBy("label", "reason", "is_lost").agg(expr("sum(n)"), expr("count(1)")).collect()
    for label, reason, is_lost, n, rows in counts:
        labels[label] = labels.get(label, 0) + n
        kept = n
        if not request.history and reason in (None, export.TOMBSTONE_UNASKED):
            # Each of these rows has one newest record, and those before it.
            kept = rows
            left_out[export.SUPERSEDED] = left_out.get(export.SUPERSEDED, 0) + n - rows
        if reason is None:
            written[label] = kept
        else:
            left_out[reason] = left_out.get(reason, 0) + kept
        if is_lost:
            lost[label] = n if request.history else rows
    return Exported(labels, written, {reason: count for reason, count in left_out.items() if count}, lost=lost)


def _chosen(
    read: Read, logs: Mapping[int, LogRange], judged: "DataFrame", verdicts: _Verdicts, request: ExportRequest
) -> "DataFrame":
    from pyspark.sql.functions import expr

    if request.history:
        # Record by record, as it is read: no shuffle, and the order of the log.
        return _judged(columns.labelled(timed_records(read(logs), request)), request, verdicts).where("reason is null")
    places = judged.where("reason is null").select("log_partition", expr("position as log_offset"))
    ends = places.groupBy("log_partition").agg(expr("min(log_offset)"), expr("max(log_offset)")).collect()
    part = {partition: LogRange(first, last + 1) for partition, first, last in ends}
    kept = timed_records(read(part), request).join(places, ["log_partition", "log_offset"], "left_semi")
    return columns.labelled(kept)


def _group_facts(judged: "DataFrame") -> "DataFrame":
    """One row per group: what its own newest records say of when its commits expire."""
    from pyspark.sql.functions import expr

    members = f"record_type in (5, 19) and shape <> {columns.TOMBSTONE}"
    return (
        judged.where("is_newest and not is_stray and `group` is not null and record_type not in (0, 1)")
        .groupBy("group")
        .agg(
            expr("max(empty_since)").alias("empty_since"),
            expr(f"bool_or(label like '{wire.BROKEN_VALUE}%')").alias("is_broken"),
            expr(f"bool_or(label = '{wire.GROUP}' and record_type in (3, 17))").alias("is_newer_kind"),
            expr(f"bool_or({members})").alias("has_members"),
        )
        .withColumnRenamed("group", "facts_of")
    )


def _among(labels: tuple[str, ...]) -> str:
    listed = "', '".join(labels)
    return f"label in ('{listed}')"


def _streamed(frame: "DataFrame") -> Iterator[str]:
    """Yield the texts of a frame of one column; the driver holds those of two tasks at most."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        yield row[0]


def judged_and_counted(census: "DataFrame", request: ExportRequest, partitions: int) -> "tuple[DataFrame, Exported]":
    """Add `reason` to rows that stand for `n` records each of a history, and return what became of all of them.

    Rows have `log_partition`, `label`, `group`, `topic`, `outside`, `record_type` and `shape`; the topic has so many
    `partitions`. The census is run twice: persist it.
    """
    verdicts = _Verdicts.of(census, request, partitions)
    judged = _judged(census, request, verdicts)
    return judged, replace(_counted(judged, request), unknown=request.filters.unknown_names(verdicts.present))

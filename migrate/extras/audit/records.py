"""Both logs of a topic in Spark SQL: sums of stretches, and of those that differ what became of every record.

Fingerprints are SQL expressions: no payload leaves the task that reads it, and no Python is in a record's path. Frames
of records have the columns of Spark's Kafka source, headers too. What is shuffled are a count and sums of each stretch,
and of stretches that differ some fixed columns of each record.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from migrate.extras.audit.stretches import Cut, Ranges, Stretch, Sums, offsets_of
from migrate.extras.audit.verdict import LACKED, NAMED, Bounds, Category, Lack, Named
from migrate.match.equality import Equality, Part
from migrate.spark.dataframes import into_spark, read_ranges
from migrate.spark.java_settings import JavaSettings

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import Column, DataFrame, SparkSession

_HALVES = [
    f"{half} as {word}_{i}"
    for word in ("a", "b")
    for i, half in enumerate((f"{word} & 4294967295", f"shiftrightunsigned({word}, 32)"))
]
_PRINT = "partition, a, b"
# What `--max-rate` counts of a record, and how long a pause is at least: what is read in less costs no time of its own.
_SIZE = "coalesce(length(key), 0) + coalesce(length(value), 0)"
_SIZE_OF_HEADERS = "coalesce(aggregate(headers, 0, (sum, h) -> sum + length(h.key) + coalesce(length(h.value), 0)), 0)"
PAUSE_MS = 100
FETCH_BYTES = "kafka.max.partition.fetch.bytes"
# Offsets of each partition below which a reading is short, and what it fetches at a time.
SHORT_RANGE, SHORT_FETCH_BYTES = 100_000, 1 << 20
_BARE = "headers is null or size(headers) = 0"
_HEADERS = "transform(headers, h -> struct(h.key, h.value is null, h.value))"


def log_records(
    spark: "SparkSession",
    settings: JavaSettings,
    topic: str,
    readings: Iterable[Ranges],
    equality: Equality,
    isolation_level: str = "read_committed",
    max_rate: int | None = None,
) -> "DataFrame":
    """Return the records of a topic in these ranges, none of which is empty; nothing is read until an action runs.

    Spark reads one range of a partition at a time: there is at least one of `readings`. `max_rate` are bytes a second,
    as `paced` has them; None for no limit.
    """
    tasks = spark.sparkContext.defaultParallelism

    def options(ranges: Ranges) -> dict[str, str]:
        options = {
            **settings.source,
            "minPartitions": str(min(tasks, offsets_of(ranges))),
            "includeHeaders": str(Part.HEADERS in equality.parts).lower(),
        }
        if max_rate is not None:
            # What is fetched ahead, while a task pauses, is a second's share.
            options[FETCH_BYTES] = str(min(8 << 20, max_rate // tasks + 1))
        elif all(log.end - log.start <= SHORT_RANGE for log in ranges.values()):
            # More would lie beyond the end, and Spark keeps the last batch of each partition of each reading in memory.
            options.setdefault(FETCH_BYTES, str(SHORT_FETCH_BYTES))
        return options

    # United first: Spark would analyse what is computed from each reading once a reading.
    records = all_of(read_ranges(spark, options(each), topic, each, isolation_level) for each in readings)
    return records if max_rate is None else paced(records, max_rate)


def all_of(frames: "Iterable[DataFrame]") -> "DataFrame":
    """Return the rows of all frames; they have the same columns, and there is at least one."""
    return reduce(lambda one, other: one.unionByName(other), frames)


def paced(records: "DataFrame", max_rate: int) -> "DataFrame":
    """Return records whose tasks pause as they read, so that all together read about so many bytes a second at most.

    What counts are keys, values and headers. Where a task pauses follows from sizes and offsets alone, so that none
    needs to count, or to know of others. A pause ends at a multiple of `PAUSE_MS` on the clock, so that what was read
    since the last one takes no time beside it.
    """
    # The rate is shared by all tasks that read at once.
    tasks = records.sparkSession.sparkContext.defaultParallelism
    late = f"cast(reflect('java.lang.System', 'currentTimeMillis') as bigint) % {PAUSE_MS}"
    sleep = f"if(pause_ms > 0, reflect('java.lang.Thread', 'sleep', pause_ms - {late}), '') is not null"
    return records.coalesce(tasks).selectExpr("*", pause_ms(records, max_rate / tasks)).where(sleep)


def pause_ms(records: "DataFrame", bytes_per_second: float) -> str:
    """Return the expression for how long a task pauses at a record that shares so many bytes a second.

    It is a multiple of `PAUSE_MS`: that of the golden ratio spreads these evenly over records.
    """
    size = f"({_SIZE} + {_SIZE_OF_HEADERS})" if "headers" in records.columns else f"({_SIZE})"
    pauses = f"floor({size} / {bytes_per_second * PAUSE_MS / 1000}D + (offset * 0.6180339887498949D) % 1)"
    return f"{pauses} * {PAUSE_MS} as pause_ms"


def fingerprinted(records: "DataFrame", cut: Cut, salt: int) -> "DataFrame":
    """Return of each record: partition, number (of its stretch), offset, time, a and b (its fingerprint), key_hash,
    has_key, is_tombstone.

    `salt` is the folder's own: without it nobody can try which payload gives a fingerprint. A hash passes over nulls,
    so that each part has a flag before it; a text counts with its length, so that ("ab", "c") is not ("a", "bc").
    """
    parts = {
        Part.TIMESTAMP: ["time"],
        Part.KEY: ["key is null", "key"],
        Part.VALUE: ["value is null", "value"],
        Part.HEADERS: [f"if({_BARE}, 0, size(headers))", f"if({_BARE}, null, {_HEADERS})"],
    }
    chosen = [expression for part, each in parts.items() if part in cut.equality.parts for expression in each]
    # Two words, so that what one takes for the same by chance the other hardly does: in another order too.
    first, second = ", ".join(chosen), ", ".join(reversed(chosen))
    number = f"time div {cut.width_ms}" if cut.equality.keeps_time else "a"
    return (
        records.selectExpr("*", "unix_millis(timestamp) as time")
        .selectExpr(
            "partition",
            "offset",
            "time",
            f"xxhash64({salt}L, 1, {first}) as a",
            f"xxhash64({salt}L, 2, {second}) as b",
            f"xxhash64({salt}L, 3, key) as key_hash",
            "key is not null as has_key",
            "value is null as is_tombstone",
        )
        .selectExpr("*", f"cast(pmod({number}, {cut.stretches}) as int) as number")
    )


def nothing(spark: "SparkSession") -> "DataFrame":
    """Return what `fingerprinted` does of no records."""
    longs, flags = ("offset", "time", "a", "b", "key_hash"), ("has_key", "is_tombstone")
    return spark.range(0).selectExpr(
        *(f"cast(id as int) as {name}" for name in ("partition", "number")),
        *(f"id as {name}" for name in longs),
        *(f"id = 0 as {name}" for name in flags),
    )


def summed(prints: "DataFrame") -> dict[Stretch, Sums]:
    """Read the records, and return the sums of each stretch."""
    words = [f"{w}_{i}" for w in ("a", "b") for i in range(2)]
    sums = (
        prints.selectExpr("partition", "number", "offset", *_HALVES)
        .groupBy("partition", "number")
        .agg(*_expressions("count(*)", *(f"sum({word})" for word in words), "min(offset)", "max(offset)"))
    )
    return {Stretch(row[0], row[1]): Sums(row[2], tuple(row[3:7]), row[7], row[8]) for row in sums.collect()}


def out_of_order(source: "DataFrame", target: "DataFrame", cut_short: Collection[int]) -> "DataFrame":
    """Return the records whose first copy stands behind that of a later record: partition, offset (the source's), time.

    Of records with an equal nobody knows which copy is whose: they are left out. In partitions that are `cut_short` the
    target has removed first copies, or they are not looked at; what stands there may be a further one.
    """
    originals = source.groupBy("partition", "a", "b").agg(
        *_expressions("count(*) as equals", "min(offset) as offset", "min(time) as time")
    )
    copies = target.groupBy("partition", "a", "b").agg(*_expressions("min(offset) as place"))
    by_place = "partition by partition order by place"
    return (
        originals.where("equals = 1")
        .join(copies, ["partition", "a", "b"])
        .selectExpr(
            *("partition", "offset", "time"),
            f"max(offset) over ({by_place} rows between unbounded preceding and 1 preceding) as furthest",
            f"first_value(offset) over ({by_place}) as begins",
            "partition in ({}) as is_cut".format(", ".join(map(str, cut_short)) or "-1"),
        )
        .where("offset < furthest and (not is_cut or offset > begins)")
        .select("partition", "offset", "time")
    )


def inside(prints: "DataFrame", stretches: Collection[Stretch]) -> "DataFrame":
    """Return the records of these stretches."""
    from pyspark.sql.functions import broadcast

    wanted = into_spark(prints.sparkSession, stretches, "partition int, number int")
    return prints.join(broadcast(wanted), ["partition", "number"], "left_semi")


@dataclass(frozen=True)
class Paired:
    """How many records of a stretch have copies, and what lies alone on either side.

    `first_copied` and `last_copied` are source offsets, None where no record has a copy. Of equal records some of which
    have none, the last counts as copied for the former, and none for the latter: neither says more than is known.
    """

    copied: int
    again: int
    alone_on_source: int
    alone_on_target: int
    first_copied: int | None
    last_copied: int | None

    @property
    def alone(self) -> int:
        """How many records of either side have no counterpart."""
        return self.alone_on_source + self.alone_on_target

    def plus(self, other: "Paired") -> "Paired":
        """Return what was found of two sets of records, where no record of one equals a record of the other."""
        firsts, lasts = (
            [o for o in offsets if o is not None]
            for offsets in ((self.first_copied, other.first_copied), (self.last_copied, other.last_copied))
        )
        return Paired(
            self.copied + other.copied,
            self.again + other.again,
            self.alone_on_source + other.alone_on_source,
            self.alone_on_target + other.alone_on_target,
            min(firsts, default=None),
            max(lasts, default=None),
        )


def both_logs(source: "DataFrame", target: "DataFrame") -> "DataFrame":
    """Return the records of either log, as `fingerprinted` has them, with their side: 0 for the source, 1."""
    return source.selectExpr("0 as side", "*").unionByName(target.selectExpr("1 as side", "*"))


def counted(both: "DataFrame") -> "DataFrame":
    """Return how often each side has each record: partition, number, a, b, here, there, first, last.

    The last two are source offsets. Records all of which have copies are one line of a stretch, without a and b.
    """
    equal = both.groupBy("partition", "number", "a", "b").agg(
        *_expressions(
            "count_if(side = 0) as here",
            "count_if(side = 1) as there",
            "min(offset) filter (where side = 0) as first",
            "max(offset) filter (where side = 0) as last",
        )
    )
    words = (f"if(here > 0 and there >= here, null, {word}) as {word}" for word in ("a", "b"))
    return (
        equal.selectExpr("partition", "number", *words, "here", "there", "first", "last")
        .groupBy("partition", "number", "a", "b")
        .agg(*_expressions("sum(here) as here", "sum(there) as there", "min(first) as first", "max(last) as last"))
    )


def paired(counts: "DataFrame") -> dict[Stretch, Paired]:
    """Return what was found of each stretch, from what `counted` returns or some lines of it."""
    found = counts.groupBy("partition", "number").agg(
        *_expressions(
            "sum(least(here, there))",
            "sum(there - here) filter (where here > 0 and there > here)",
            "sum(here - there) filter (where here > there)",
            "sum(there) filter (where here = 0)",
            "min(if(here > there, last, first)) filter (where there > 0)",
            "max(last) filter (where there >= here)",
        )
    )
    return {Stretch(row[0], row[1]): Paired(*(n or 0 for n in row[2:6]), *row[6:]) for row in found.collect()}


class Counts:
    """How often each side has each record of differing stretches, read once and kept in Spark until closed.

    `both` is what `both_logs` returns.
    """

    def __init__(self, both: "DataFrame") -> None:
        from pyspark.storagelevel import StorageLevel

        self._lines = counted(both).persist(StorageLevel.MEMORY_AND_DISK)

    def close(self) -> None:
        """Let Spark forget them."""
        self._lines.unpersist()

    def paired(self) -> dict[Stretch, Paired]:
        """Return what was found of each stretch."""
        return paired(self._lines)

    def copied(self) -> dict[Stretch, Paired]:
        """Return what was found of the records all of which have copies."""
        return paired(self._lines.where("a is null"))

    def others_of(self, both: "DataFrame") -> "DataFrame":
        """Return the records of both logs that equal one without a counterpart, itself included."""
        others = self._lines.where("a is not null").select("partition", "a", "b")
        return both.join(others, ["partition", "a", "b"], "left_semi")


class Comparison:
    """Records of differing stretches, kept in Spark until closed.

    `both` is what `both_logs` returns, or what `Counts.others_of` leaves of it.
    """

    def __init__(self, both: "DataFrame") -> None:
        from pyspark.storagelevel import StorageLevel

        self._held: list[DataFrame] = []
        self._both = self._kept(both, StorageLevel.MEMORY_AND_DISK)

    def _kept(self, frame: "DataFrame", level: "StorageLevel") -> "DataFrame":
        kept = frame.persist(level)
        self._held.append(kept)
        return kept

    def close(self) -> None:
        """Let Spark forget the records."""
        for frame in self._held:
            frame.unpersist()

    def paired(self) -> dict[Stretch, Paired]:
        """Return what was found of each stretch."""
        return paired(counted(self._both))

    def classified(
        self,
        cut: Cut,
        bounds: Mapping[int, Bounds],
        originals_visible: Collection[int],
        with_aborted: "DataFrame | None" = None,
        source_keys: "DataFrame | None" = None,
    ) -> "Classified":
        """Pair each record with one of the other side, and judge those without a counterpart.

        Of equal records the last on one side is paired with the last on the other, and so on; those of the source that
        are not copied yet come after all others.

        `originals_visible` are the partitions of whose source nothing was removed and nothing is hidden. `with_aborted`
        are the same stretches of the source with its aborted records, None where those are not asked for. `source_keys`
        are all records of the source where the target's cleaner takes superseded ones, None where it does not.
        """
        from pyspark.storagelevel import StorageLevel

        rows = ((p, b.visible_from, b.copied_to, p in originals_visible) for p, b in bounds.items())
        schema = "partition int, visible_from bigint, copied_to bigint, all_there boolean"
        placed = self._both.join(into_spark(self._both.sparkSession, rows, schema), "partition")
        equal = f"partition by {_PRINT}"
        pairs = self._kept(
            placed.selectExpr(
                "*",
                f"count_if(side = 0) over ({equal}) as on_source",
                f"count_if(side = 1) over ({equal}) as on_target",
                f"row_number() over ({equal}, side order by side = 0 and offset >= copied_to, offset desc) as place",
            ).selectExpr(
                *("side", "partition", "number", "offset", "time", "a", "b", "key_hash", "has_key", "is_tombstone"),
                *("visible_from", "copied_to", "all_there"),
                "place > if(side = 0, on_target, on_source) as is_alone",
                "side = 1 and on_source > 0 as has_original",
            ),
            StorageLevel.MEMORY_AND_DISK,
        )
        alone = pairs.where("is_alone and not has_original").withColumn("is_aborted", _no())
        if with_aborted is not None:
            visible = pairs.where("side = 0").select("partition", "offset")
            aborted = with_aborted.join(visible, ["partition", "offset"], "left_anti").selectExpr(
                *("partition", "a", "b", "true as was_aborted")
            )
            alone = alone.join(aborted.distinct(), ["partition", "a", "b"], "left").withColumn(
                "is_aborted", _expressions("side = 1 and coalesce(was_aborted, false)")[0]
            )
        alone = self._with_changed(alone, cut)
        alone = self._with_keys(alone, pairs, source_keys)
        category = f"""
            case when side = 0 and is_changed then '{Category.CHANGED}'
                 when side = 0 and offset >= copied_to then '{Category.NOT_COPIED_YET}'
                 when side = 0 and is_superseded then '{Category.SUPERSEDED}'
                 when side = 0 and (is_hidden or offset < visible_from) then '{Category.MAYBE_COPIED}'
                 when side = 0 then '{Category.MISSING}'
                 when is_changed then null
                 when is_aborted then '{Category.ABORTED_COPY}'
                 when all_there then '{Category.FOREIGN}'
                 else '{Category.NO_ORIGINAL_VISIBLE}' end as category"""
        judged = alone.selectExpr(category, "partition", "number", "offset", "time").where("category is not null")
        return Classified(self._kept(judged, StorageLevel.MEMORY_AND_DISK))

    @staticmethod
    def _with_changed(alone: "DataFrame", cut: Cut) -> "DataFrame":
        """Pair what has the same key and time on both sides, where that and more should have survived."""
        if not (cut.equality.keeps_time and Part.VALUE in cut.equality.parts):
            return alone.withColumn("is_changed", _no())
        alike = "partition by partition, time, has_key, key_hash, is_aborted"
        return alone.selectExpr(
            "*",
            f"row_number() over ({alike}, side order by offset) as nth",
            f"count_if(side = 0) over ({alike}) as here",
            f"count_if(side = 1) over ({alike}) as there",
        ).selectExpr("*", "not is_aborted and nth <= least(here, there) as is_changed")

    @staticmethod
    def _with_keys(alone: "DataFrame", pairs: "DataFrame", source_keys: "DataFrame | None") -> "DataFrame":
        """Look whether a later record of the same key has a copy, or what else a cleaner may have gone by.

        Where the newest of a key is a tombstone without a copy, or the target has further records of that key, its
        cleaner may have taken the copy.
        """
        if source_keys is None:
            return alone.withColumns({"is_superseded": _no(), "is_hidden": _no()})
        ours = alone.where("side = 0 and has_key")
        waiting = ours.selectExpr("partition", "offset", "true as waits")
        of_keys = source_keys.where("has_key").join(
            ours.select("partition", "key_hash").distinct(), ["partition", "key_hash"], "left_semi"
        )
        newest = (
            of_keys.join(waiting, ["partition", "offset"], "left")
            .groupBy("partition", "key_hash")
            .agg(
                *_expressions(
                    "max(offset) filter (where waits is null) as newest_copied",
                    "max_by(waits is not null and is_tombstone, offset) as ends_in_tombstone",
                )
            )
        )
        further = pairs.where("side = 1 and is_alone and has_key").selectExpr(
            "partition", "key_hash", "true as has_further"
        )
        return (
            alone.join(newest, ["partition", "key_hash"], "left")
            .join(further.distinct(), ["partition", "key_hash"], "left")
            .selectExpr(
                "*",
                "side = 0 and has_key and coalesce(newest_copied > offset, false) as is_superseded",
                "has_key and (coalesce(ends_in_tombstone, false) or coalesce(has_further, false)) as is_hidden",
            )
        )


@dataclass(frozen=True)
class Classified:
    """Records without a counterpart: category, partition, number (of their stretch), offset, time."""

    frame: "DataFrame"

    def counts(self) -> defaultdict[Stretch, Counter[Category]]:
        """Return how many records of each stretch are in each category."""
        counts = defaultdict[Stretch, Counter[Category]](Counter)
        for row in self.frame.groupBy("partition", "number", "category").count().collect():
            counts[Stretch(row[0], row[1])][Category(row[2])] = row[3]
        return counts

    def named(self) -> Iterator[Named]:
        """Yield every record that is named, by category, partition and offset."""
        wanted = self.frame.where(f"category in ({_quoted(NAMED)})")
        for row in wanted.orderBy("category", "partition", "offset").toLocalIterator():
            yield Named(Category(row["category"]), row["partition"], row["offset"], row["time"])

    def lacks(self, owed_from: Collection[tuple[int, int]]) -> tuple[Lack, ...]:
        """Return what is lacking, or may be, from each of these (partition, source offset) on."""
        owed = into_spark(self.frame.sparkSession, owed_from, "place int, owed_from bigint")
        found = (
            self.frame.where(f"category in ({_quoted(LACKED)})")
            .join(owed, _expressions("partition = place and offset >= owed_from"))
            .groupBy("partition", "owed_from", "category")
            .agg(*_expressions("count(*)", "min(offset)", "max(offset)"))
        )
        return tuple(sorted(Lack(row[0], row[1], Category(row[2]), *row[3:]) for row in found.collect()))


def _quoted(categories: Iterable[Category]) -> str:
    return ", ".join(f"'{each}'" for each in categories)


def _expressions(*texts: str) -> "list[Column]":
    from pyspark.sql.functions import expr

    return [expr(text) for text in texts]


def _no() -> "Column":
    from pyspark.sql.functions import lit

    return lit(False)

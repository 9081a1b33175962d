"""The newest commits in `__consumer_offsets`, through Spark, for a plan.

Two passes. The first finds the newest position of each key with fixed-width hash aggregates, and decodes nothing; the
second decodes the records there. What was found and is not there any more was compacted away in between. As of an
earlier time a third pass counts records, where places have none of then.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from migrate.model import LogRange
from migrate.spark.background import Session
from migrate.spark.consumer_offsets import Read, offsets_session, topic_reader
from migrate.spark.dataframes import as_bytes, reading_topic
from migrate.spark.java_settings import JavaSettings
from migrate.survey.offsets_pin import CompactedMeanwhileError, OffsetsPin, TopicCommits
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from migrate.survey.topic_commits import (
    GONE,
    NewestOf,
    NewestRecord,
    commits_of,
    newest_records,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The keys of commits; and those of nobody knows what, which must not be passed over.
_OF_COMMITS = "key is null or length(key) < 2 or substring(key, 1, 2) in (X'0000', X'0001')"
# Both types of key say the same behind the type, and mean one commit.
_PLACE = "substring(key, 3)"
# One record may be the newest both of all and of those before the time that was asked for.
_ROLES = (
    f"array(named_struct('position', live, 'role', {NewestOf.LIVE:d}),"
    f" named_struct('position', earlier, 'role', {NewestOf.THEN:d}))"
)
# Keys of a group and topic differ in what they end with.
_HEAD = "substring(key, 1, greatest(length(key) - 4, 0))"
# A text for each: a million values one by one would take longer than all the reading. Arrays leave NULLs out.
_TAILS = "array_join(collect_list(coalesce(hex(substring(key, greatest(length(key) - 3, 1))), '')), ' ')"
_VALUES = f"array_join(collect_list(coalesce(hex(value), '{GONE}')), ' ')"


def topic_commits(session: Session, settings: JavaSettings, pin: OffsetsPin, as_of_ms: int | None) -> TopicCommits:
    """Read one cluster's offsets topic, read_committed: `migrate.survey.offsets_pin.ReadTopicCommits`."""
    spark = offsets_session(session)
    with reading_topic(settings, OFFSETS_TOPIC):
        return newest_commits(topic_reader(spark, settings), pin.logs, pin.partitions, as_of_ms)


def newest_commits(
    read: Read, logs: Mapping[int, LogRange], partitions: int, as_of_ms: int | None = None
) -> TopicCommits:
    """As `topic_commits`, from wherever `read` reads; `partitions` is how many the topic has."""
    from pyspark.sql.functions import expr

    before = "false" if as_of_ms is None else f"unix_millis(timestamp) < {as_of_ms}"
    newest = (
        read(logs)
        .where(_OF_COMMITS)
        .groupBy("partition", expr(_PLACE).alias("place"))
        .agg(expr("max(offset)").alias("live"), expr(f"max(if({before}, offset, null))").alias("earlier"))
        .selectExpr("partition", f"inline({_ROLES})")
        .where("position is not null")
        .persist()
    )
    try:
        of_each = newest.groupBy("partition").agg(expr("min(position)"), expr("max(position)"), expr("count(1)"))
        ends = of_each.collect()
        part = {partition: LogRange(first, last + 1) for partition, first, last, _ in ends}
        answers = _kept(read(part), newest).collect()
    finally:
        newest.unpersist()
    if sum(count for *_, count in answers) == sum(count for *_, count in ends):
        decoded = chain.from_iterable(_decoded(*answer) for answer in answers)
        found = commits_of(decoded, partitions, as_of_ms is not None)
        return found if as_of_ms is None else _with_none_then(read, logs, partitions, found, as_of_ms)
    raise CompactedMeanwhileError(OFFSETS_TOPIC)


def _with_none_then(
    read: Read, logs: Mapping[int, LogRange], partitions: int, found: TopicCommits, as_of_ms: int
) -> TopicCommits:
    """Name, of the places without a record of then, those that had none, where no record of before can be missing."""
    homes = {key: partition_of(key.group, partitions) for key in found.gone}
    whole = _whole_before(read, {home: logs[home] for home in set(homes.values())}, as_of_ms)
    none_then = frozenset(key for key, home in homes.items() if home in whole)
    return replace(found, gone=found.gone - none_then, none_then=found.none_then | none_then)


def _whole_before(read: Read, logs: Mapping[int, LogRange], as_of_ms: int) -> frozenset[int]:
    """Return the partitions with a record of before that time at every offset below the first record of later.

    Any gap may be a commit that compaction has taken: a transaction's marker looks like one.
    """
    from pyspark.sql.functions import expr

    begun = {number: log for number, log in logs.items() if log.start == 0}
    if not begun:
        return frozenset()
    earlier = f"unix_millis(timestamp) < {as_of_ms}"
    counted = (
        read(begun)
        .groupBy("partition")
        .agg(
            expr(f"count_if({earlier})"),
            expr(f"coalesce(max(if({earlier}, offset, null)) + 1, 0)"),
            expr(f"min(if({earlier}, null, offset))"),
        )
    )
    return frozenset(partition for partition, count, *ends in counted.collect() if set(ends) == {count})


def _kept(records: "DataFrame", newest: "DataFrame") -> "DataFrame":
    """Return the records at the newest positions, those of a group and topic in one row."""
    from pyspark.sql.functions import expr

    places = newest.selectExpr("partition", "position as offset", "role")
    kept = records.select("key", "value", "partition", "offset").join(places, ["partition", "offset"])
    by_topic = kept.groupBy("partition", "role", expr(_HEAD).alias("head"))
    return by_topic.agg(expr(_TAILS), expr(_VALUES), expr("count(1)"))


def _decoded(
    partition: int, role: int, head: bytearray | None, tails: str, values: str, _count: int
) -> Iterator[NewestRecord]:
    return newest_records(partition, as_bytes(head), tails, values, role)

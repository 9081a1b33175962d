"""The newest commits in `__consumer_offsets`, through Spark, for a plan.

Two passes. The first finds the newest position of each key with fixed-width hash aggregates, and decodes nothing; the
second decodes the records there. What was found and is not there any more was compacted away in between.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from migrate.model import LogRange
from migrate.spark import offset_columns as columns
from migrate.spark.background import Session
from migrate.spark.consumer_offsets import Read, offsets_session, topic_reader
from migrate.spark.dataframes import out_of_spark
from migrate.spark.java_settings import JavaSettings
from migrate.spark.scanner import reading_topic
from migrate.survey.offsets_export import OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.topic_commits import (
    NO_EPOCH,
    CompactedMeanwhileError,
    NewestOf,
    NewestRecord,
    TopicCommits,
    commits_of,
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
# Arrays leave NULLs out.
_ANSWER = (
    "coalesce(`group`, '') as committed_by", "coalesce(topic, '') as topic",
    "coalesce(topic_partition, 0) as topic_partition", "log_partition", "label",
    "coalesce(committed_offset, 0) as committed_offset", "coalesce(metadata, '') as metadata",
    f"coalesce(leader_epoch, {NO_EPOCH}) as leader_epoch", "role",
)  # fmt: skip


class SparkTopicCommits:
    """Behind `migrate.survey.topic_commits.OffsetsTopicReader`: one cluster's offsets topic, read_committed."""

    def __init__(self, session: Session, settings: JavaSettings) -> None:
        self._session = session
        self._settings = settings

    def commits(self, pin: OffsetsPin, as_of_ms: int | None = None) -> TopicCommits:
        """Return the newest commits of all groups in the pinned ranges, and those of an earlier time."""
        spark = offsets_session(self._session)
        with reading_topic(self._settings, OFFSETS_TOPIC):
            return newest_commits(topic_reader(spark, self._settings), pin.logs, pin.partitions, as_of_ms)


def newest_commits(
    read: Read, logs: Mapping[int, LogRange], partitions: int, as_of_ms: int | None = None
) -> TopicCommits:
    """As `SparkTopicCommits.commits`, from wherever `read` reads; `partitions` is how many the topic has."""
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
        answers = list(out_of_spark(_decoded(read(part), newest), "hash(committed_by, topic, topic_partition)"))
    finally:
        newest.unpersist()
    if len(answers) == sum(count for *_, count in ends):
        return commits_of(map(NewestRecord._make, answers), partitions, as_of_ms is not None)
    raise CompactedMeanwhileError


def _decoded(records: "DataFrame", newest: "DataFrame") -> "DataFrame":
    places = newest.selectExpr("partition as log_partition", "position as log_offset", "role")
    named = records.selectExpr("key", "value", "partition as log_partition", "offset as log_offset")
    kept = named.join(places, ["log_partition", "log_offset"])
    said = columns.with_commit_values(columns.labelled(columns.shaped(kept)))
    return said.selectExpr(*_ANSWER)

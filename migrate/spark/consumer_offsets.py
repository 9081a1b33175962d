"""`__consumer_offsets` through Spark: a session that shows it, and what reads parts of it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from migrate.model import LogRange
from migrate.spark.background import Session
from migrate.spark.dataframes import read_ranges
from migrate.spark.java_settings import JavaSettings
from migrate.spark.session import with_newer_sources
from migrate.spark.session_settings import SQL_SETTINGS, UNCOMPILED
from migrate.survey.offsets_topic import OFFSETS_TOPIC, READER_GROUP_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The Admin-based listing leaves out topics that brokers call internal, and then finds ours lacking (Spark 4.0's
# ConsumerStrategy.retrieveAllPartitions); the older one asks for the ends of what is assigned.
_OLDER_LISTING = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
# For a short topic: planning the query anew after every stage takes longer than it saves as well.
_SMALL = {**UNCOMPILED, "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
# The driver holds the lines of a task at once.
OFFSETS_A_TASK = 100_000

Read = Callable[[Mapping[int, LogRange]], "DataFrame"]
"""Gives the records of a part of the topic, with the columns of Spark's Kafka source."""


def offsets_session(session: Session, is_small: bool = False) -> "SparkSession":
    """Return a session of its own that also reads internal topics: the setting must not reach any other reading.

    `is_small`: so little is read that compiling and adapting the queries would take longer than it saves.
    """
    spark = with_newer_sources(session().newSession())
    for key, value in {**SQL_SETTINGS, _OLDER_LISTING: "true", **(_SMALL if is_small else {})}.items():
        spark.conf.set(key, value)
    return spark


def topic_reader(spark: "SparkSession", settings: JavaSettings) -> Read:
    """Return what reads the offsets topic of a cluster; `spark` is an `offsets_session`."""
    # That listing asks for what its own group has committed, which takes DESCRIBE on it: names that begin alike can be
    # granted. A JVM keeps one client for a group and a partition, and refuses another's properties (Spark's
    # InternalKafkaConsumerPool): under one name, two clusters could not be read in a process.
    group = {"kafka.group.id": f"{READER_GROUP_PREFIX}{uuid4().hex}"}

    def read(logs: Mapping[int, LogRange]) -> "DataFrame":
        offsets = sum(log.end - log.start for log in logs.values())
        tasks = max(spark.sparkContext.defaultParallelism, offsets // OFFSETS_A_TASK)
        options = {**settings.source, **group, "minPartitions": str(tasks)}
        return read_ranges(spark, options, OFFSETS_TOPIC, logs)

    return read

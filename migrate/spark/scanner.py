"""Small topics through Spark, record by record: one job each, of one stage, without a shuffle or generated code.

The first query of its kind takes a cold JVM seconds, so what a few thousand records say is found out in Python
(`migrate.mm2.topic_reader`), and Spark is asked one simple thing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.errors import ClusterError
from migrate.match.equality import Content
from migrate.match.protocol import OffsetRange
from migrate.mm2.secrets import redact
from migrate.model import LogRange, TopicPartition
from migrate.spark.background import Session
from migrate.spark.dataframes import read_ranges
from migrate.spark.java_errors import root_cause
from migrate.spark.java_settings import JavaSettings
from migrate.spark.machine import log_file
from migrate.spark.session import with_newer_sources
from migrate.spark.session_settings import UNCOMPILED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No key or value of MM2's is as long; whole ones of a topic that is not MM2's might fill the memory.
MOST_BYTES = 100_000
_COLUMNS = (
    "partition", "offset", "unix_millis(timestamp)", f"substring(key, 1, {MOST_BYTES})",
    f"substring(value, 1, {MOST_BYTES})",
)  # fmt: skip


class SparkScanner:
    """Behind `migrate.mm2.topic_reader.TopicScanner`: one cluster's small topics, read_committed.

    Raises `ClusterError` for a topic that cannot be read to its end.
    """

    def __init__(self, session: Session, settings: JavaSettings) -> None:
        self._session = session
        self._settings = settings

    @cached_property
    def _spark(self) -> "SparkSession":
        # Of its own, for no other query may lose its generated code.
        spark = with_newer_sources(self._session().newSession())
        for key, value in UNCOMPILED.items():
            spark.conf.set(key, value)
        return spark

    def scan(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Mapping[TopicPartition, Mapping[int, Content]]:
        """Return every record of one range of each partition, by offset in log order; without headers."""
        by_topic: dict[str, dict[int, LogRange]] = defaultdict(dict)
        for place, piece in ranges.items():
            by_topic[place.topic][place.partition] = LogRange(piece.start, piece.end)
        found: dict[TopicPartition, dict[int, Content]] = {place: {} for place in ranges}
        for topic, logs in by_topic.items():
            with reading_topic(self._settings, topic):
                records = read_ranges(self._spark, self._settings.source, topic, logs).selectExpr(*_COLUMNS).collect()
            for partition, offset, timestamp, key, value in sorted(records, key=lambda record: (record[0], record[1])):
                content = Content(timestamp, as_bytes(key), as_bytes(value), ())
                found[TopicPartition(topic, partition)][offset] = content
        return found


def as_bytes(value: bytearray | None) -> bytes | None:
    """Return a binary column's value as Python's own type."""
    return None if value is None else bytes(value)


@contextmanager
def reading_topic(settings: JavaSettings, topic: str) -> Iterator[None]:
    """Make one paragraph, without a stack trace or a secret, of what Spark raises over a topic."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        cause = redact(root_cause(error), settings.secrets)
        raise ClusterError(
            f"Topic {topic} on {settings.name} could not be read: {cause}.",
            f"Check that the topic still exists and that this principal may READ and DESCRIBE it; "
            f"Spark's own log is {log_file()}.",
        ) from error

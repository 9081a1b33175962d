"""MM2's topics read with Spark: the adapter behind `migrate.mm2.topics.MirrorReader`, and MM2's Connect offsets.

Of the Connect offsets topic, the newest record of every key that MM2's source connector wrote counts.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from migrate.errors import ClusterError
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.flow import Flow
from migrate.mm2.secrets import redact
from migrate.mm2.topics import CheckpointReading, SyncReading, WindowQuestion
from migrate.model import LogRange, Side, TopicPartition
from migrate.spark.background import Session
from migrate.spark.checkpoints import read_checkpoints
from migrate.spark.dataframes import read_ranges, read_topic
from migrate.spark.java_errors import root_cause
from migrate.spark.java_settings import JavaSettings
from migrate.spark.session import log_file
from migrate.spark.syncs import NO_WINDOW, Syncs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkMirrorReader:
    """Reads MM2's topics through Spark's Kafka source; each call reads its range once, in full.

    `settings` are those of both clusters, by side. `syncs` are those that `windows` has read last, kept for the
    comparing of records.
    """

    def __init__(self, session: Session, flow: Flow, settings: Mapping[Side, JavaSettings]) -> None:
        self._session = session
        self._flow = flow
        self._settings = settings
        self.syncs: Syncs | None = None

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic, on the target; raises `ClusterError` if it cannot be read to its end."""
        spark, settings = self._session(), self._settings[Side.TARGET]
        with _reading(settings, topic):
            return read_checkpoints(spark, settings.source, topic, pinned)

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic on `side`; raises `ClusterError` if it cannot be read to its end."""
        spark, settings = self._session(), self._settings[side]
        if self.syncs is not None:
            self.syncs.close()
            self.syncs = None
        if pinned.start >= pinned.end:
            return SyncReading(dict.fromkeys(questions, NO_WINDOW), {})
        self.syncs = Syncs(read_topic(spark, settings.source, topic, pinned), self._flow.failback)
        with _reading(settings, topic):
            return self.syncs.reading(questions)

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        """Read the Connect offsets topic, on the target; raises `ClusterError` if it cannot be read to its end."""
        spark, settings = self._session(), self._settings[Side.TARGET]
        ranges = {partition: log for partition, log in pinned.items() if log.start < log.end}
        if not ranges:
            return {}
        with _reading(settings, topic):
            records = read_ranges(spark, settings.source, topic, ranges)
            return positions_in(records, self._flow.source.alias, self._flow.runtime.source_connectors)


@contextmanager
def _reading(settings: JavaSettings, topic: str) -> Iterator[None]:
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


# Only keys that name a topic can be a source connector's; a checkpoint connector's name a group as well.
_OF_SOURCE_CONNECTOR = "contains(cast(key as string), '\"topic\"') and not contains(cast(key as string), '\"group\":')"


def positions_in(
    records: "DataFrame", source_alias: str, connectors: Collection[str] = ()
) -> dict[TopicPartition, int]:
    """Return MM2's positions from the records of a Connect offsets topic, with the columns of Spark's Kafka source.

    Connect puts a key always on the same partition, so the last record of a key is that of the greatest offset.
    `connectors` are MM2's, where their names are known: others share a worker's topic.
    """
    from pyspark.sql.functions import expr

    # In a struct with its offset, for a null value (the position was cleared) must win as well.
    newest = records.where(_OF_SOURCE_CONNECTOR).groupBy("key").agg(expr("max(struct(offset, value)).value as value"))
    pairs = ((_bytes(row.key), _bytes(row.value)) for row in newest.collect())
    return positions_of(pairs, source_alias, connectors)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

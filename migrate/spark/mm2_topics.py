"""MM2's topics read with Spark: the adapter behind `migrate.mm2.topics.MirrorReader`, and MM2's Connect offsets.

A small topic is left to plain consumers, for the first query of its kind takes a cold JVM seconds; of a large one only
answers leave Spark. Of the Connect offsets topic, the newest record of every key that MM2's source connector wrote
counts.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from migrate.match.protocol import ChainOf, no_chain
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.mm2.topics import MOST_HELD, CheckpointReading, SyncReading, WindowQuestion
from migrate.model import LogRange, Side, TopicPartition
from migrate.spark.background import Session
from migrate.spark.checkpoints import read_checkpoints
from migrate.spark.dataframes import as_bytes, read_ranges, read_topic, reading_topic
from migrate.spark.java_settings import JavaSettings
from migrate.spark.syncs import Syncs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkMirrorReader:
    """Reads MM2's topics in full through Spark's Kafka source, and those of up to `most_held` offsets through `held`.

    `settings` are those of both clusters, by side. `chains` are what `windows` has read last, for the comparing of
    records: the syncs in Spark, or what gives a partition's chain where they are held.
    """

    def __init__(
        self,
        session: Session,
        flow: Flow,
        settings: Mapping[Side, JavaSettings],
        held: ConsumedMm2Topics,
        most_held: int = MOST_HELD,
    ) -> None:
        self._session = session
        self._flow = flow
        self._settings = settings
        self._most_held = most_held
        self._held = held
        self._syncs: Syncs | None = None
        self._syncs_of: tuple[Side, str, LogRange] | None = None
        self.chains: Syncs | ChainOf = no_chain

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic, on the target; raises `ClusterError` if it cannot be read to its end."""
        if self._holds(pinned):
            return self._held.checkpoints(topic, pinned)
        spark, settings = self._session(), self._settings[Side.TARGET]
        with reading_topic(settings, topic):
            return read_checkpoints(spark, settings.source, topic, pinned)

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic on `side`; raises `ClusterError` if it cannot be read to its end.

        The range that was read last is not read again.
        """
        if self._holds(pinned):
            self._forget()
            self.chains = self._held.sync_pairs
            return self._held.windows(side, topic, pinned, questions)
        spark, settings = self._session(), self._settings[side]
        if self._syncs is None or self._syncs_of != (side, topic, pinned):
            self._forget()
            self._syncs = Syncs(read_topic(spark, settings.source, topic, pinned), self._flow)
            self.chains, self._syncs_of = self._syncs, (side, topic, pinned)
        with reading_topic(settings, topic):
            return self._syncs.reading(questions)

    def _forget(self) -> None:
        if self._syncs is not None:
            self._syncs.close()
            self._syncs = self._syncs_of = None

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        """Read the Connect offsets topic, on the target; raises `ClusterError` if it cannot be read to its end."""
        if self._holds(*pinned.values()):
            return self._held.positions(topic, pinned)
        spark, settings = self._session(), self._settings[Side.TARGET]
        ranges = {partition: log for partition, log in pinned.items() if log.start < log.end}
        if not ranges:
            return {}
        with reading_topic(settings, topic):
            records = read_ranges(spark, settings.source, topic, ranges)
            return positions_in(records, self._flow.mm2_source_alias, self._flow.runtime.source_connectors)

    def _holds(self, *logs: LogRange) -> bool:
        return sum(log.end - log.start for log in logs) <= self._most_held


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
    pairs = ((as_bytes(row.key), as_bytes(row.value)) for row in newest.collect())
    return positions_of(pairs, source_alias, connectors)

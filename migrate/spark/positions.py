"""MM2's Connect offsets topic: the newest record of every key that MM2's source connector wrote."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from migrate.mm2.connect_offsets import positions_of
from migrate.model import LogRange, TopicPartition
from migrate.spark.dataframes import FIXED, TUNING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Only keys that name a topic can be a source connector's; a checkpoint connector's name a group as well.
_OF_SOURCE_CONNECTOR = "contains(cast(key as string), '\"topic\"') and not contains(cast(key as string), '\"group\":')"


def read_positions(
    spark: "SparkSession",
    options: Mapping[str, str],
    topic: str,
    pinned: Mapping[int, LogRange],
    source_alias: str,
    connectors: Collection[str] = (),
) -> dict[TopicPartition, int]:
    """Read a Connect offsets topic between pinned offsets, once; `pinned` are its ranges by partition.

    Connect puts a key always on the same partition, so the last record of a key is that of the greatest offset.
    `connectors` are MM2's, where their names are known: others share a worker's topic.
    """
    ranges = {partition: log for partition, log in pinned.items() if log.start < log.end}
    if not ranges:
        return {}
    read = {
        "assign": json.dumps({topic: sorted(ranges)}),
        "startingOffsets": json.dumps({topic: {str(p): log.start for p, log in ranges.items()}}),
        "endingOffsets": json.dumps({topic: {str(p): log.end for p, log in ranges.items()}}),
    }
    records = spark.read.format("kafka").options(**{**TUNING, **options, **FIXED, **read}).load()
    return positions_in(records, source_alias, connectors)


def positions_in(
    records: "DataFrame", source_alias: str, connectors: Collection[str] = ()
) -> dict[TopicPartition, int]:
    """Return the positions that stand in a DataFrame with the source's columns."""
    from pyspark.sql.functions import expr

    # In a struct with its offset, for a null value (the position was cleared) must win as well.
    newest = records.where(_OF_SOURCE_CONNECTOR).groupBy("key").agg(expr("max(struct(offset, value)).value as value"))
    told = ((_bytes(row.key), _bytes(row.value)) for row in newest.collect())
    return positions_of(told, source_alias, connectors)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

"""DataFrames with the columns of Spark's Kafka source, made of plain bytes."""

from contextlib import closing
from datetime import UTC, datetime, timedelta

from migrate.model import LogRange
from migrate.spark.checkpoints import newest_checkpoints
from migrate.spark.syncs import Syncs

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
SCHEMA = "key binary, value binary, offset bigint, timestamp timestamp"


def frame(spark, pairs):
    """Records in log order: offsets 0, 1, 2...; each one millisecond after the one before."""
    rows = [
        (
            None if key is None else bytearray(key),
            None if value is None else bytearray(value),
            offset,
            EPOCH + timedelta(milliseconds=offset),
        )
        for offset, (key, value) in enumerate(pairs)
    ]
    return spark.createDataFrame(rows, SCHEMA)


def newest(spark, pairs):
    """The reading of a checkpoints topic that holds these pairs."""
    whole = frame(spark, pairs)
    return newest_checkpoints(
        lambda part: whole.where(f"offset between {part.start} and {part.end - 1}"), LogRange(0, len(pairs))
    )


def windows_of(records, questions, failback=False):
    """The windows from a DataFrame with the source's columns, and the count of records by label."""
    with closing(Syncs(records, failback)) as syncs:
        return syncs.reading(questions)

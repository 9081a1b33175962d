"""DataFrames with the columns of Spark's Kafka source, made of plain bytes."""

from contextlib import closing
from datetime import UTC, datetime

from migrate.model import LogRange
from migrate.spark.checkpoints import newest_checkpoints
from migrate.spark.syncs import Syncs

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
SCHEMA = "key binary, value binary, offset bigint, timestamp timestamp"
BYTES = ("cast(? as binary) as key", "cast(? as binary) as value")


def held(spark, rows, columns):
    """Rows in the JVM's memory: what Python hands over as a list, its workers make anew for each query.

    `columns` are an expression for each value of a row, and its name.
    """
    named = {f"_{number}": column for number, column in enumerate(columns)}
    made = ", ".join(f"{column.replace('?', value)}" for value, column in named.items())
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    # Not as values of the query: Spark would work out all that is asked of them while it plans, and run no task.
    return spark.sql(f"select {made} from values {values} as t({', '.join(named)})").localCheckpoint()


def _literal(value):
    if value is None:
        return "null"
    return f"X'{bytes(value).hex()}'" if isinstance(value, (bytes, bytearray)) else str(value)


def frame(spark, pairs):
    """Records in log order: offsets 0, 1, 2...; each one millisecond after the one before."""
    rows = [(key, value, offset, EPOCH_MS + offset) for offset, (key, value) in enumerate(pairs)]
    if not rows:
        return spark.createDataFrame([], SCHEMA)
    return held(spark, rows, [*BYTES, "cast(? as bigint) as offset", "timestamp_millis(?) as timestamp"])


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

"""DataFrames with the columns of Spark's Kafka source, made of plain bytes."""

from contextlib import closing
from datetime import UTC, datetime

from migrate.mm2.config_file import client_flow
from migrate.model import LogRange
from migrate.spark.checkpoints import newest_checkpoints
from migrate.spark.syncs import Syncs

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
BYTES = ("cast(? as binary) as key", "cast(? as binary) as value")
OFFSET, TIMESTAMP = "cast(? as bigint) as offset", "timestamp_millis(?) as timestamp"


def in_jvm(spark, rows, columns):
    """A DataFrame of rows that the JVM holds: those of a Python list are sent by Python workers in every query.

    `columns` have an expression for each value of a row, which stands where its `?` is.
    """
    values = {f"_{number}": column for number, column in enumerate(columns)}
    selected = ", ".join(column.replace("?", value) for value, column in values.items())
    # Values without a row are no SQL.
    literals = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows or [[None] * len(columns)])
    made = spark.sql(f"select {selected} from values {literals} as t({', '.join(values)})").where(str(bool(rows)))
    # As values of the query, Spark would work out all that is asked of them while it plans, and run no task.
    return made.localCheckpoint()


def _literal(value):
    if value is None:
        return "null"
    return f"X'{bytes(value).hex()}'" if isinstance(value, (bytes, bytearray)) else str(value)


def frame(spark, pairs):
    """Records in log order: offsets 0, 1, 2...; each one millisecond after the one before."""
    rows = [(key, value, offset, EPOCH_MS + offset) for offset, (key, value) in enumerate(pairs)]
    return in_jvm(spark, rows, (*BYTES, OFFSET, TIMESTAMP))


FLOW = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")


def newest(spark, pairs):
    """The reading of a checkpoints topic that holds these pairs."""
    whole = frame(spark, pairs)
    return newest_checkpoints(
        lambda part: whole.where(f"offset between {part.start} and {part.end - 1}"), LogRange(0, len(pairs))
    )


def windows_of(records, questions, flow=FLOW):
    """The windows from a DataFrame with the source's columns, and the count of records by label."""
    with closing(Syncs(records, flow)) as syncs:
        return syncs.reading(questions)

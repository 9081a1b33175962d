"""DataFrames with the columns of Spark's Kafka source, made of plain bytes."""

from datetime import UTC, datetime

from migrate.mm2.config_file import client_flow

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


def damaged(rnd, data):
    """The same bytes cut, extended, with a byte changed, replaced by noise, or left out."""
    place = rnd.randrange(len(data) + 1)
    # Early on, where versions, counts and lengths are.
    early = rnd.randrange(min(len(data), 40) + 1)
    changed = data[:early][:-1] + bytes([rnd.choice([0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF])]) + data[early:]
    noise = rnd.randbytes(rnd.choice([0, 1, 2, 5, 9, 10, 15, 16, 17, 20, 21, 30, 40]))
    return rnd.choice([None, data[:place], data + rnd.randbytes(rnd.randrange(1, 6)), noise, changed, changed, data])

"""An offsets topic in memory, and what reads ranges of it."""

from collections import Counter
from datetime import UTC, datetime

from migrate.model import LogRange
from tests.spark.records import BYTES, held

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
COLUMNS = (*BYTES, "? as partition", "cast(? as bigint) as offset", "timestamp_millis(?) as timestamp")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)


def topic_of(spark, records):
    """A topic with these (partition, key, value), a millisecond apart; `read` of it."""
    ends = Counter()
    rows = []
    for number, (partition, key, value) in enumerate(records):
        rows.append((key, value, partition, ends[partition], EPOCH_MS + number))
        ends[partition] += 1
    whole = held(spark, rows, COLUMNS) if rows else spark.createDataFrame([], SCHEMA)

    def read(logs):
        inside = [f"(partition = {p} and offset between {log.start} and {log.end - 1})" for p, log in logs.items()]
        return whole.where(" or ".join(inside) or "false")

    return read, {partition: LogRange(0, end) for partition, end in ends.items()}

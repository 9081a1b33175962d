"""An offsets topic in memory, and what reads ranges of it."""

from collections import Counter

from migrate.model import LogRange
from tests.spark.records import BYTES, EPOCH_MS, OFFSET, TIMESTAMP, in_jvm

COLUMNS = (*BYTES, "cast(? as int) as partition", OFFSET, TIMESTAMP)


def topic_of(spark, records):
    """A topic with these (partition, key, value), a millisecond apart; `read` of it."""
    timed = [(partition, number, key, value) for number, (partition, key, value) in enumerate(records)]
    return timed_topic(spark, timed)


def timed_topic(spark, records):
    """A topic with these (partition, ms after `EPOCH_MS`, key, value); what reads it, and its ranges."""
    ends = Counter()
    rows = []
    for partition, after_ms, key, value in records:
        rows.append((key, value, partition, ends[partition], EPOCH_MS + after_ms))
        ends[partition] += 1
    whole = in_jvm(spark, rows, COLUMNS)

    def read(logs):
        inside = [f"(partition = {p} and offset between {log.start} and {log.end - 1})" for p, log in logs.items()]
        return whole.where(" or ".join(inside) or "false")

    return read, {partition: LogRange(0, end) for partition, end in ends.items()}

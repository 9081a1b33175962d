"""Records of the offsets topic in Spark, as its Kafka source gives them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from migrate.model import LogRange

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp timestamp"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
EPOCH_MS = int(EPOCH.timestamp() * 1000)
Timed = tuple[int, int, bytes | None, bytes | None]
Read = Callable[[Mapping[int, LogRange]], Any]


def timed_topic(spark: Any, records: Sequence[Timed]) -> tuple[Read, dict[int, LogRange]]:
    """A topic with these (partition, ms after `EPOCH`, key, value); what reads it, and its ranges."""
    ends: Counter[int] = Counter()
    rows = []
    for partition, after_ms, key, value in records:
        raw = (None if part is None else bytearray(part) for part in (key, value))
        rows.append((*raw, partition, ends[partition], EPOCH + timedelta(milliseconds=after_ms)))
        ends[partition] += 1
    whole = spark.createDataFrame(rows, SCHEMA)

    def read(logs: Mapping[int, LogRange]) -> Any:
        inside = [f"(partition = {p} and offset between {log.start} and {log.end - 1})" for p, log in logs.items()]
        return whole.where(" or ".join(inside) or "false")

    return read, {partition: LogRange(0, end) for partition, end in ends.items()}

"""Records as Spark's Kafka source gives them, and logs that are read from memory."""

from dataclasses import dataclass, field

from migrate.extras.audit.judge import LogReading
from migrate.extras.audit.records import fingerprinted
from migrate.model import Side
from tests.spark.records import BYTES, OFFSET, TIMESTAMP, in_jvm

COLUMNS = (
    "cast(? as int) as partition",
    *BYTES,
    OFFSET,
    TIMESTAMP,
    "from_json(?, 'array<struct<key: string, value: string>>') as named",
)
HEADERS = "transform(named, h -> struct(h.key as key, unhex(h.value) as value)) as headers"


def frame(spark, records):
    """A frame of (partition, record) pairs."""
    rows = [
        (p, r.key, r.value, r.offset, r.time_ms, f"'{_json(r.headers)}'" if r.headers else None) for p, r in records
    ]
    return in_jvm(spark, rows, COLUMNS).selectExpr("*", HEADERS).drop("named")


def _json(headers):
    fields = (
        f'{{"key": "{name}"' + (f', "value": "{value.hex()}"' if value is not None else "") + "}"
        for name, value in headers
    )
    return f"[{', '.join(fields)}]"


@dataclass(frozen=True)
class MemoryReading(LogReading):
    """Reads logs that lie in Spark's memory; `ranges` are those that were asked for."""

    frames: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def records(self, topic, side, ranges, cut, isolation="read_committed"):
        self.asked.append((side, dict(ranges)))
        held = self.frames[side, isolation if side is Side.SOURCE else "read_committed"]
        inside = " or ".join(
            f"(partition = {p} and offset >= {log.start} and offset < {log.end})" for p, log in ranges.items()
        )
        return fingerprinted(held.where(inside), cut, self.salt)

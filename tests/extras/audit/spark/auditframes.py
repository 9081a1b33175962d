"""Records as Spark's Kafka source gives them, and audits of logs that lie in memory."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

from migrate.extras.audit.judge import LogReading, judged
from migrate.extras.audit.pin import PinnedTopic
from migrate.extras.audit.records import fingerprinted, summed
from migrate.extras.audit.stretches import Cut, TopicSums
from migrate.match.equality import Equality
from migrate.model import LogRange, Side
from tests.seeds import new_seed
from tests.spark.records import BYTES, OFFSET, TIMESTAMP, in_jvm

CUT = Cut(Equality.ALL, 40, 6)
NAMED = "from_json(?, 'array<struct<key: string, value: string>>') as named"
COLUMNS = ("cast(? as int) as partition", *BYTES, OFFSET, TIMESTAMP, NAMED)
HEADERS = "transform(named, h -> struct(h.key as key, unhex(h.value) as value)) as headers"


def frame(spark, records):
    """A frame of (partition, record) pairs."""

    def headers(record):
        told = [{"key": name} | ({} if value is None else {"value": value.hex()}) for name, value in record.headers]
        return f"'{json.dumps(told)}'" if told else None

    rows = [(p, r.key, r.value, r.offset, r.time_ms, headers(r)) for p, r in records]
    return in_jvm(spark, rows, COLUMNS).selectExpr("*", HEADERS).drop("named")


@dataclass(frozen=True)
class MemoryReading(LogReading):
    """Reads logs that lie in Spark's memory; `ranges` are those that were asked for."""

    frames: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)

    def records(self, topic, side, readings, cut, isolation="read_committed"):
        self.asked.extend((side, dict(ranges)) for ranges in readings)
        held = self.frames[side, isolation if side is Side.SOURCE else "read_committed"]
        inside = " or ".join(
            f"(partition = {p} and offset >= {log.start} and offset < {log.end})"
            for ranges in readings
            for p, log in ranges.items()
        )
        return fingerprinted(held.where(inside), cut, self.salt)


class Found:
    """Takes every record that is named."""

    def __init__(self):
        self.records = []

    def take(self, topic, records):
        self.records += records
        return (), None


def pinned(worlds, **others):
    ends = {p: w.target[-1].offset + 1 if w.target else 0 for p, w in enumerate(worlds)}
    given = {
        "topic": "t", "target": "t", "ids": ("", ""), "compacted": frozenset(), "only_compacted": False,
        "hides_policy": False, "open_on_source": frozenset(), "open_on_target": frozenset(), "unproven": (),
        "next_to_copy": {p: w.next_to_copy for p, w in enumerate(worlds) if w.next_to_copy is not None},
        "source_logs": {p: LogRange(w.source_start, w.source_end) for p, w in enumerate(worlds)},
        "target_logs": {p: LogRange(w.target_start, ends[p]) for p, w in enumerate(worlds)},
    }  # fmt: skip
    return PinnedTopic(**given | others)


def read(spark, worlds, salt=None, since_ms=None):
    seen = [(p, r) for p, w in enumerate(worlds) for r in w.source if r.offset >= w.source_start]
    return MemoryReading(
        spark,
        defaultdict(lambda: None),
        new_seed() if salt is None else salt,
        lambda topic: topic,
        {
            (Side.SOURCE, "read_committed"): frame(spark, [(p, r) for p, r in seen if not r.is_aborted]),
            (Side.SOURCE, "read_uncommitted"): frame(spark, seen),
            (Side.TARGET, "read_committed"): frame(spark, [(p, r) for p, w in enumerate(worlds) for r in w.copies]),
        },
        since_ms=since_ms,
    )


def sum_up(reading, topic, held):
    """Read what `held` has not of a topic's logs, and keep its sums there."""
    for side in Side:
        if new := held.unread(side, topic.logs(side)):
            held.add(side, new, summed(reading.looked_at(topic, side, [new], held.cut)))


def audited(spark, worlds, cut=CUT, lasts=True, **others):
    """The audit of worlds as the partitions of one topic, with all that is named."""
    return audited_again(spark, worlds, TopicSums("t", "t", "", "", cut), lasts, **others)


def audited_again(spark, worlds, held, lasts=True, salt=None, since_ms=None, **others):
    """The same by a run that reads what `held` has not, and keeps there what it reads and settles."""
    topic, reading, found = pinned(worlds, **others), read(spark, worlds, salt, since_ms), Found()
    sum_up(reading, topic, held)
    audit, settled = judged(reading, topic, held, lasts, found)
    for stretch, counts in settled.items():
        held.settle(stretch, counts)
    return audit, found.records, reading

"""An offsets topic in memory, and what reads ranges of it."""

from collections import Counter

from migrate.model import LogRange
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import CommitValue
from tests.offsetsbytes import commit_key, commit_value
from tests.spark.records import BYTES, EPOCH_MS, OFFSET, TIMESTAMP, in_jvm

PARTITIONS = 3
METADATA = ["", "m", "é" * 60, "m" * 126, "m" * 127, "m" * 128, "ü" * 2048, "n" * 16_383, "n" * 16_384, "\x00\t,\"'\\"]
NUMBERS = [0, 1, 255, 256, 2**31, 2**47, 2**63 - 1]
TOPIC_ID = "_-ECAwQFBgcICQoLDA0ODw"
COLUMNS = (*BYTES, "cast(? as int) as partition", OFFSET, TIMESTAMP)


def commit(group="g", offset=1, topic="t", partition=0, record_type=1, **said):
    """A commit in its group's own partition of the topic; its tombstone, where the offset is None."""
    of_default = {"version": 3, "leader_epoch": None, "metadata": "", "committed_ms": EPOCH_MS}
    value = None if offset is None else commit_value(CommitValue(offset=offset, **of_default | said))
    return partition_of(group, PARTITIONS), commit_key(group, topic, partition, record_type), value


def some_commit(rnd):
    version = rnd.randrange(5)
    return CommitValue(
        version, rnd.choice([*NUMBERS, -1, -2]), rnd.choice([None, 0, 5, 2**31 - 1]) if version >= 3 else None,
        rnd.choice(METADATA), rnd.choice([-1, 0, 1_700_000_000_000]), rnd.choice(NUMBERS) if version == 1 else None,
        rnd.choice([None, TOPIC_ID]) if version == 4 else None, version == 4 and rnd.random() < 0.1,
    )  # fmt: skip


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

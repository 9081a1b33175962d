"""Reading topics for the lab: whole partitions, last records, end offsets, and MM2's own topics."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.lab.waiting import LabError, NotAnswered, wait_until

READ_DEADLINE_SECONDS = 60.0
METADATA_SECONDS = 10.0
# What is said of a partition between its creation and its leader's first answer. `retriable()` says no to all of them.
YOUNG = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
)


@dataclass(frozen=True)
class Record:
    """A record as far as the lab looks at it."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Pair:
    """A source offset and the target offset that goes with it: an offset sync or a checkpoint."""

    upstream: int
    downstream: int


class TopicReader:
    """Reads partitions of one cluster without belonging to a group; close it, or use it with `with`."""

    def __init__(self, bootstrap: str, committed_only: bool = True) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "lab-reader-never-commits",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
                "allow.auto.create.topics": False,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )

    def close(self) -> None:
        self._consumer.close()

    def partitions(self, topic: str) -> list[int]:
        """The partition numbers of a topic; empty when there is no such topic (yet)."""
        found = self._consumer.list_topics(timeout=METADATA_SECONDS).topics.get(topic)
        return [] if found is None or found.error is not None else sorted(found.partitions)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Log start and log end offset."""
        return bounds(self._consumer, TopicPartition(topic, partition))

    def records(self, topic: str, partition: int, start: int = OFFSET_BEGINNING) -> Iterator[Message]:
        """Every record from `start` to the present end, without markers and, normally, aborted records."""
        self._consumer.assign([TopicPartition(topic, partition, start)])
        try:
            while True:
                (message,) = wait_until(self._polled, READ_DEADLINE_SECONDS, f"records of {topic}-{partition}")
                problem = message.error()
                if problem is None:
                    yield message
                elif problem.code() == KafkaError._PARTITION_EOF:
                    return
                elif not problem.retriable() and problem.code() != KafkaError._TRANSPORT:
                    raise LabError(f"reading {topic}-{partition}: {problem.str()}")
        finally:
            self._consumer.unassign()

    def _polled(self) -> tuple[Message] | None:
        """The next message or event; in a tuple, because a message without a value is false."""
        message = self._consumer.poll(0.2)
        return None if message is None else (message,)

    def last_record(self, topic: str, partition: int) -> Record | None:
        """The last record that readers see, however many markers, aborted or compacted ones follow it."""
        low, high = self.bounds(topic, partition)
        window = 20
        while True:
            start = max(low, high - window)
            last: Message | None = None
            for message in self.records(topic, partition, start) if high > low else ():
                last = message
            if last is not None:
                return Record(last.offset() or 0, as_bytes(last.key()), as_bytes(last.value()))
            if start <= low:
                return None
            window *= 20


def bounds(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Log start and log end offset, asked again while a young partition has no leader that answers for it."""
    refused: list[KafkaException] = []

    def asked() -> tuple[int, int] | None:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=METADATA_SECONDS, cached=False)
        except KafkaException as error:
            if error.args[0].code() not in YOUNG:
                raise
            refused[:] = [error]
            return None
        return low, high

    what = f"the bounds of {place.topic}-{place.partition}"
    return wait_until(asked, READ_DEADLINE_SECONDS, what, lambda: str(refused[-1]))


@contextmanager
def topic_reader(bootstrap: str, committed_only: bool = True) -> Iterator[TopicReader]:
    """A TopicReader for the time of a `with` block; client errors come out as NotAnswered."""
    reader = TopicReader(bootstrap, committed_only)
    try:
        yield reader
    except KafkaException as error:
        raise NotAnswered(f"{bootstrap}: {error}") from error
    finally:
        reader.close()


def as_bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def fields(message: Message) -> tuple[bytes, bytes] | None:
    """Key and value when both are there."""
    key, value = as_bytes(message.key()), as_bytes(message.value())
    return None if key is None or value is None else (key, value)


def split_string(data: bytes) -> tuple[str, bytes]:
    """A Kafka STRING (length in two bytes, then UTF-8) from the front of `data`, and the rest."""
    (length,) = struct.unpack_from(">h", data)
    return data[2 : 2 + length].decode(), data[2 + length :]


def replicated_offsets(reader: TopicReader, offsets_topic: str, alias: str) -> dict[tuple[str, int], int]:
    """Source (topic, partition) -> last source offset that MM2 has recorded as copied."""
    found: dict[tuple[str, int], int] = {}
    for partition in reader.partitions(offsets_topic):
        for message in reader.records(offsets_topic, partition):
            key = json.loads(as_bytes(message.key()) or b"null")
            origin = key[1] if isinstance(key, list) and len(key) == 2 else {}
            if origin.get("cluster") != alias:
                continue
            value = json.loads(as_bytes(message.value()) or b"null")
            place = (origin["topic"], origin["partition"])
            if value is None:
                found.pop(place, None)
            else:
                found[place] = value["offset"]
    return found


def latest_syncs(reader: TopicReader, syncs_topic: str) -> dict[tuple[str, int], Pair]:
    """Source (topic, partition) -> its newest offset sync."""
    found: dict[tuple[str, int], Pair] = {}
    for partition in reader.partitions(syncs_topic):
        for message in reader.records(syncs_topic, partition):
            both = fields(message)
            if both is not None:
                topic, rest = split_string(both[0])
                found[topic, struct.unpack(">i", rest)[0]] = Pair(*struct.unpack(">qq", both[1]))
    return found


def latest_checkpoints(
    reader: TopicReader, checkpoints_topic: str, only: Callable[[Message], bool] = lambda message: True
) -> dict[tuple[str, str, int], Pair]:
    """(group, target topic, partition) -> its newest checkpoint, of records that are MM2's."""
    found: dict[tuple[str, str, int], Pair] = {}
    for partition in reader.partitions(checkpoints_topic):
        for message in reader.records(checkpoints_topic, partition):
            both = fields(message) if only(message) else None
            if both is not None:
                group, rest = split_string(both[0])
                topic, rest = split_string(rest)
                found[group, topic, struct.unpack(">i", rest)[0]] = Pair(*struct.unpack_from(">qq", both[1], 2))
    return found

"""The next records at many places of one cluster's logs, read by a consumer that belongs to no group's business.

Invariants:
- It assigns and never subscribes, commits nothing, and no request of it creates a topic.
- Read_committed unless told otherwise: what it finds is what the group's own consumers will find.
- Records are reduced to digests as they are taken from the client; no payload is kept.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.errors import ClusterError
from migrate.kafka.errors import code_of, error_of, failure_of, timed_out
from migrate.kafka.read_pass import PASSING, READS_ONLY
from migrate.match.next_record import NextRecord, Position, next_record
from migrate.mm2.flow import Cluster
from migrate.model import Failure, TopicPartition

PARTITIONS_AT_ONCE = 500
_POLL_SECONDS = 0.05
_POLL_RECORDS = 500
_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    # Where retention is faster than this reader, the next record is the log's first.
    "auto.offset.reset": "earliest",
    "check.crcs": True,
    # Few records are wanted of each place: what is fetched beyond them is thrown away.
    "fetch.message.max.bytes": 65536,
    "queued.max.messages.kbytes": 1024,
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 10,
}

_Found = dict[Position, tuple[NextRecord, ...] | Failure]


class ConsumerOfNextRecords:
    """Behind `migrate.ports.NextRecordReader`; `config` is a ready librdkafka configuration.

    `deadline_seconds` is how long the cluster may stay silent before the rest is given up. `isolation_level` is
    read_committed but where copies of aborted records are to be found beside their originals.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: Mapping[str, str],
        deadline_seconds: float,
        isolation_level: str = "read_committed",
    ) -> None:
        self._cluster = cluster
        self._config = {**config, **_SETTINGS, "isolation.level": isolation_level}
        self._deadline_seconds = deadline_seconds

    def next_records(self, positions: Collection[Position]) -> Mapping[Position, tuple[NextRecord, ...] | Failure]:
        """Return what was found at each position, or the `Failure` that kept it from being read."""
        found: _Found = dict.fromkeys(positions, ())
        if not found:
            return found
        try:
            consumer = Consumer(self._config)
        except (KafkaException, ValueError, TypeError) as error:
            raise ClusterError(
                f"{self._cluster.side} {self._cluster.alias} cannot be read with these settings: "
                f"{error_of(error).code()}.",
                "Correct the client properties of this cluster.",
            ) from None
        try:
            for turn in _turns(found):
                _read(consumer, turn, found, self._deadline_seconds)
        finally:
            consumer.close()
        return found


def _turns(positions: Iterable[Position]) -> Iterable[list[Position]]:
    """Yield the positions in turns of many partitions: in one assignment a partition stands at one place only."""
    places: dict[TopicPartition, list[Position]] = defaultdict(list)
    for position in positions:
        places[position.partition].append(position)
    deepest = max(map(len, places.values()))
    for depth in range(deepest):
        turn = [listed[depth] for _, listed in sorted(places.items()) if depth < len(listed)]
        yield from (turn[i : i + PARTITIONS_AT_ONCE] for i in range(0, len(turn), PARTITIONS_AT_ONCE))


def _read(consumer: Consumer, turn: list[Position], found: _Found, deadline_seconds: float) -> None:
    waiting = {position.partition: position for position in turn}
    taken: dict[TopicPartition, list[NextRecord]] = {partition: [] for partition in waiting}
    consumer.assign([KafkaPartition(p.partition.topic, p.partition.partition, p.offset) for p in turn])
    end = time.monotonic() + deadline_seconds
    while waiting and time.monotonic() < end:
        for message in consumer.consume(_POLL_RECORDS, _POLL_SECONDS):
            problem = message.error()
            if problem is not None:
                left = len(waiting)
                _note(problem, message, waiting, found)
                if len(waiting) < left:
                    end = time.monotonic() + deadline_seconds
                continue
            end = time.monotonic() + deadline_seconds
            position = waiting.get(_place(message))
            if position is None:
                continue
            records = taken[position.partition]
            if position.offset <= _offset(message) < position.end:
                records.append(_reduced(message))
            # An offset below the one asked for is the client's way of telling that the log was cut.
            if len(records) == position.most or not position.offset <= _offset(message) < position.end - 1:
                del waiting[position.partition]
    for position in waiting.values():
        found[position] = timed_out(deadline_seconds)
    for position in turn:
        if not isinstance(found[position], Failure):
            found[position] = tuple(taken[position.partition])


def _note(problem: KafkaError, message: Message, waiting: dict[TopicPartition, Position], found: _Found) -> None:
    """Take an event that is no record: the end of a log, or an error of a partition, a topic or the client."""
    code, place = code_of(problem), _place(message)
    if problem.code() == KafkaError._PARTITION_EOF:
        waiting.pop(place, None)
        return
    if code in PASSING or problem.retriable():
        return
    for partition in list(waiting):
        if partition == place or (place.partition < 0 and place.topic in ("", partition.topic)):
            found[waiting.pop(partition)] = failure_of(problem, fetching=True)


def _place(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "", -1 if partition is None else partition)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None, "a record without an error has an offset"
    return offset


def _reduced(message: Message) -> NextRecord:
    key, value, headers = message.key(), message.value(), message.headers()
    named = headers.items() if isinstance(headers, dict) else headers or []
    content = [(name, text.encode() if isinstance(text, str) else text) for name, text in named]
    return next_record(_offset(message), message.timestamp()[1], _bytes(key), _bytes(value), content)


def _bytes(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part

"""The next records at many places of one cluster's logs, reduced to digests as they are taken from the client.

No payload is kept. Read_committed by default: what is read here is what the group's own consumers will read.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message

from migrate.kafka.errors import failure_of, refused_settings, timed_out
from migrate.kafka.read_pass import READS_ONLY, ReadPass, close_consumers, in_turns, offset_of
from migrate.kafka.settings import ClientSettings, ready
from migrate.match.next_record import NextRecord, Position, next_record
from migrate.model import Failure, TopicPartition

PARTITIONS_AT_ONCE = 500
_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    # Where retention is faster than this reader, the next record is the log's first.
    "auto.offset.reset": "earliest",
    "check.crcs": True,
    # Few records are needed of each place: what is fetched beyond them is thrown away.
    "fetch.message.max.bytes": 65536,
    "queued.max.messages.kbytes": 1024,
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 10,
}


def next_records(
    settings: ClientSettings, deadline_seconds: float, isolation_level: str, positions: Collection[Position]
) -> Mapping[Position, tuple[NextRecord, ...] | Failure]:
    """Return what is at each position, by a consumer: `migrate.match.next_record.ReadNext`.

    `deadline_seconds` is how long the cluster may stay silent before the rest is given up. `isolation_level` is
    read_committed but where copies of aborted records are to be found beside their originals. Raises `ClusterError` if
    librdkafka refuses the settings.
    """
    answers: dict[Position, tuple[NextRecord, ...] | Failure] = dict.fromkeys(positions, ())
    if not answers:
        return answers
    try:
        consumer = Consumer({**ready(settings.config), **_SETTINGS, "isolation.level": isolation_level})
    except (KafkaException, ValueError, TypeError) as error:
        raise refused_settings(settings.name, "read", error, settings.secrets) from None
    places: dict[TopicPartition, list[Position]] = {}
    for position in answers:
        places.setdefault(position.partition, []).append(position)
    try:
        for turn in in_turns(sorted(places.items()), PARTITIONS_AT_ONCE):
            sinks = {position.partition: _FirstRecords(position) for _, position in turn}
            reading = ReadPass(consumer, dict(sinks), settings.name, silence_seconds=deadline_seconds, poll=(500, 0.05))
            reading.run()
            failures = {p: failure_of(error, fetching=True) for p, error in reading.problems.items()}
            failures |= dict.fromkeys(reading.waiting, timed_out(deadline_seconds))
            answers |= {s.position: failures.get(place) or tuple(s.records) for place, s in sinks.items()}
    finally:
        close_consumers([consumer])
    return answers


class _FirstRecords:
    """The first records at or after a position, reduced."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.start = position.offset
        self.records: list[NextRecord] = []

    def take(self, messages: Sequence[Message]) -> bool:
        asked = self.position
        for message in messages:
            offset = offset_of(message)
            if asked.offset <= offset < asked.end:
                self.records.append(_reduced(message))
            # An offset below the one asked for is the client's way of telling that the log was cut.
            if len(self.records) == asked.most or not asked.offset <= offset < asked.end - 1:
                return True
        return False


def _reduced(message: Message) -> NextRecord:
    # A consumer without deserializers gives bytes, which the client's types cannot tell.
    bare: Any = message
    return next_record(offset_of(message), message.timestamp()[1], bare.key(), bare.value(), bare.headers() or ())

"""The offsets topic of one cluster, each partition from its start to the end that was seen first.

Read_committed, because transactional commits are in transactions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from migrate.kafka.closing import close_consumers
from migrate.kafka.errors import failure_of, timed_out
from migrate.kafka.read_pass import READS_ONLY, ReadPass
from migrate.model import Failure, TopicPartition
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupLog

# A consumer without deserializers gives bytes, which the client's types cannot tell.
_key: Any = Message.key
_value: Any = Message.value
_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "fetch.wait.max.ms": 10,
    # librdkafka's own default is to wait a second whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 0,
}


def read_offsets_topic(
    config: Mapping[str, str], logs: Mapping[int, GroupLog], deadline_seconds: float
) -> Failure | None:
    """Hand every record of each partition to its log; return why that could not be done in full, None where it was.

    `deadline_seconds` bounds the whole reading: the topic of a busy cluster may be large.
    """
    try:
        consumer = Consumer({**config, **_SETTINGS})
    except (KafkaException, ValueError, TypeError) as error:
        return failure_of(error)
    sinks = {TopicPartition(OFFSETS_TOPIC, partition): _Records(logs[partition]) for partition in sorted(logs)}
    reading = _WholePass(consumer, sinks, deadline_seconds, poll=(5000, 0.1))
    try:
        reading.run()
    finally:
        close_consumers([consumer])
    if reading.error is not None:
        return failure_of(reading.error, fetching=True)
    return timed_out(deadline_seconds) if reading.waiting else None


class _Records:
    """The records of one partition, on their way to `log`."""

    def __init__(self, log: GroupLog) -> None:
        # By number, and not as the beginning: that is looked up, which is tried again only after half a second while no
        # leader is known. A log that begins later is begun where it does, as `auto.offset.reset` says.
        self.start = 0
        self._log = log

    def take(self, messages: Sequence[Message]) -> bool:
        self._log.take(map(_key, messages), map(_value, messages))
        return False


class _WholePass(ReadPass[_Records]):
    """A pass that one error ends."""

    error: KafkaError | None = None

    def give_up(self, places: Sequence[TopicPartition], error: KafkaError) -> None:
        self.error = self.error or error
        super().give_up([*self.waiting], error)

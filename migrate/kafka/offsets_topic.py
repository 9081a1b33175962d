"""The offsets topic of one cluster, read by a consumer that belongs to no group's business.

Invariants: it assigns and never subscribes, commits nothing, and creates no topic. read_committed, because
transactional commits stand in transactions. Each partition is read from its start to the end that was seen first.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.errors import code_of, failure_of, timed_out
from migrate.kafka.read_pass import PASSING, READS_ONLY
from migrate.model import Failure
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupLog

_POLL_SECONDS = 0.1
_POLL_RECORDS = 5000
# A consumer without deserializers gives bytes, which the client's types can not tell.
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
    config: Mapping[str, str], partitions: Collection[int], log: GroupLog, deadline_seconds: float
) -> Failure | None:
    """Hand every record of these partitions to `log`; return why that could not be done in full, None where it was.

    `deadline_seconds` bounds the whole reading: the topic of a busy cluster may be large.
    """
    try:
        consumer = Consumer({**config, **_SETTINGS})
    except (KafkaException, ValueError, TypeError) as error:
        return failure_of(error)
    waiting = set(partitions)
    try:
        consumer.assign([KafkaPartition(OFFSETS_TOPIC, p, OFFSET_BEGINNING) for p in sorted(waiting)])
        end = time.monotonic() + deadline_seconds
        while waiting:
            if time.monotonic() > end:
                return timed_out(deadline_seconds)
            messages = consumer.consume(_POLL_RECORDS, _POLL_SECONDS)
            told = [(message, message.error()) for message in messages]
            records = [message for message, problem in told if problem is None]
            log.take(map(_key, records), map(_value, records))
            for message, problem in told:
                if problem is None:
                    continue
                if problem.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(message.partition() or 0)
                elif code_of(problem) not in PASSING and not problem.retriable():
                    return failure_of(problem, fetching=True)
    finally:
        consumer.close()
    return None

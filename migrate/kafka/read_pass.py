"""One pass over many partitions: all in one assignment, each read until its sink has enough or its log ends.

Every consumer here is a standalone one: it assigns partitions and joins no group, commits nothing, and creates no topic
that it names (librdkafka still looks up a coordinator, see `docs/limits.md`). Offsets without a record (compaction,
markers, aborted records) are no reason to wait.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.errors import code_of
from migrate.model import TopicPartition

BATCH = 2000
POLL_SECONDS = 0.02
READS_ONLY: Mapping[str, Any] = {
    # librdkafka demands a group's name even of a consumer that only assigns.
    "group.id": "mm2-migrate-reads-only",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
# A connection that breaks, or that the client gives up for another: it makes new ones by itself.
BROKEN_LINE = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_DESTROY_BROKER"})
# What the client retries by itself, and the group that is only named.
PASSING = BROKEN_LINE | {"_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED"}


class Sink(Protocol):
    """Takes the records of one partition; `start` is the offset where its reading begins."""

    start: int

    def take(self, messages: Sequence[Message]) -> bool:
        """Take records in the order of their log; True if no more are needed."""


S = TypeVar("S", bound=Sink)


class ReadPass(Generic[S]):
    """Reads the partitions of `waiting` into their sinks.

    When done, `problems` holds the error of each partition that could not be read. What is still in `waiting` took
    longer than `patience_seconds` in all, or the cluster was silent for `silence_seconds`. `value_bytes` is about what
    the values of all records delivered take. `poll` is how many records one poll takes at most, and its seconds.
    """

    def __init__(
        self,
        consumer: Consumer,
        waiting: dict[TopicPartition, S],
        patience_seconds: float = math.inf,
        silence_seconds: float = math.inf,
        poll: tuple[int, float] = (BATCH, POLL_SECONDS),
    ) -> None:
        self.consumer = consumer
        self.waiting = waiting
        self.problems: dict[TopicPartition, KafkaError] = {}
        self.value_bytes = 0
        self.silence_seconds = silence_seconds
        self._patience_seconds = patience_seconds
        self._poll = poll
        self._finished: list[KafkaPartition] = []

    def run(self) -> None:
        """Read until no partition is waiting, or patience ends."""
        self.consumer.assign([KafkaPartition(p.topic, p.partition, sink.start) for p, sink in self.waiting.items()])
        one_topic = len({place.topic for place in self.waiting}) == 1
        begun = heard = time.monotonic()
        while self.waiting and time.monotonic() - begun <= self._patience_seconds:
            messages = self.consumer.consume(*self._poll)
            if messages and self._take(messages, one_topic):
                heard = time.monotonic()
            elif not self.waits(time.monotonic() - heard):
                break
        self.consumer.unassign()

    def waits(self, silent_seconds: float) -> bool:
        """Return whether to poll again after nothing was heard for so long."""
        return silent_seconds < self.silence_seconds

    def note(self, place: TopicPartition, message: Message, error: KafkaError) -> bool:
        """Take an event that is no record: the end of a log, or an error of a partition, a topic or the client.

        Returns whether it is a sign of life.
        """
        is_end = error.code() == KafkaError._PARTITION_EOF
        if not is_end and (code_of(error) in PASSING or error.retriable()):
            return False
        affected = self.affected(place)
        if is_end:
            self.finish(affected)
        else:
            self.give_up(affected, error)
        return bool(affected)

    def affected(self, place: TopicPartition) -> list[TopicPartition]:
        """Return the waiting partitions that an event is about: one, all of a topic, or all."""
        whole = place.partition < 0
        return [p for p in self.waiting if p == place or (whole and place.topic in ("", p.topic))]

    def give_up(self, places: Sequence[TopicPartition], error: KafkaError) -> None:
        """Wait no more for partitions that cannot be read."""
        self.problems |= dict.fromkeys(places, error)
        self.finish(places)

    def finish(self, places: Sequence[TopicPartition]) -> None:
        """Wait no more for partitions."""
        for place in places:
            del self.waiting[place]
            self._finished.append(KafkaPartition(place.topic, place.partition))

    def _take(self, messages: Sequence[Message], one_topic: bool) -> bool:
        """Hand over what a poll brought; return whether it is a sign of life."""
        errors = list(map(Message.error, messages))
        records: Sequence[Message] = messages
        # Not errors.count(None): comparing a KafkaError with None leaves a Python exception pending.
        if any(errors):
            records = [message for message, error in zip(messages, errors, strict=True) if error is None]
        for place, chunk in _by_partition(records, one_topic):
            # About: a chunk's first record stands for all.
            self.value_bytes += len(chunk) * len(chunk[0])
            sink = self.waiting.get(place)
            if sink is not None and sink.take(chunk):
                self.finish([place])
        lively = len(records) > 0
        if records is not messages:
            for message, error in zip(messages, errors, strict=True):
                if error is not None:
                    lively |= self.note(_place(message), message, error)
        if self._finished and self.waiting:
            # What is fetched ahead of a finished partition would be thrown away.
            self.consumer.incremental_unassign(self._finished)
        self._finished = []
        return lively


def offset_of(message: Message) -> int:
    """Return a message's offset; -1 if an event has none."""
    offset = message.offset()
    return -1 if offset is None else offset


def _by_partition(messages: Sequence[Message], one_topic: bool) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
    """Cut messages into slices of one partition each, as the client delivers them."""
    at = 0
    partitions = map(Message.partition, messages)
    keys: Any = partitions if one_topic else zip(map(Message.topic, messages), partitions, strict=True)
    for _, same in groupby(keys):
        count = len(list(same))
        yield _place(messages[at]), messages[at : at + count]
        at += count


def _place(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "", -1 if partition is None else partition)

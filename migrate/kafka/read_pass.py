"""One pass over many partitions: one straight run of each, in one assignment, each to its end.

A run ends with its last offset, with a record beyond it, or with the log's end: offsets without a record (compaction,
markers, aborted records) are no reason to wait.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.errors import code_of
from migrate.kafka.intake import RunIntake
from migrate.match.protocol import Unreadable
from migrate.model import TopicPartition

BATCH = 2000
POLL_SECONDS = 0.02
# After this silence the cluster is asked which partitions it has: librdkafka waits for one that is missing.
UNEASY_SECONDS = 3.0
METADATA_SECONDS = 10.0
# A new leader may not know of the last records yet; one that still lacks them after this time has lost them.
LAGGING_SECONDS = 5.0

OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
# Of every consumer here: it belongs to no group's business, and no question of it creates a topic.
READS_ONLY: Mapping[str, Any] = {
    # librdkafka demands a group's name even of a consumer that only assigns.
    "group.id": "mm2-migrate-reads-only",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
}
# What the client mends by itself, and the group that is only named.
PASSING = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED"})
# No waiting helps: credentials and certificates do not change by themselves.
HOPELESS = frozenset({"_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM"})


class Silence(Exception):  # noqa: N818  (becomes a ClusterError where the cluster's name is known)
    """Raised where a cluster did not answer for `seconds`, or answered that it never will."""

    def __init__(self, seconds: float, problem: KafkaError | None = None) -> None:
        super().__init__(seconds, problem)
        self.seconds = seconds
        self.problem = problem


@dataclass
class ReadPass:
    """Reads the runs of `waiting`; `deadline_seconds` is how long the cluster may stay silent, `causes` what the
    client has said of trouble so far, by code.

    When done, `problems` names what could not be read, and `moved` the partitions whose log begins beyond the place
    where their run stood: they are to be read again from where it begins now. What is still in `waiting` took longer
    than `patience_seconds`. `value_bytes` is about what the values of all records delivered take.
    """

    consumer: Consumer
    waiting: dict[TopicPartition, RunIntake]
    deadline_seconds: float
    causes: Mapping[str, str]
    patience_seconds: float
    problems: dict[TopicPartition, Unreadable] = field(default_factory=dict)
    moved: list[TopicPartition] = field(default_factory=list)
    value_bytes: int = 0
    _lagging: set[TopicPartition] = field(default_factory=set)
    _done: list[KafkaPartition] = field(default_factory=list)

    def run(self) -> None:
        """Read until no run is waiting, or patience ends; raises `Silence`."""
        places = [KafkaPartition(p.topic, p.partition, i.start) for p, i in self.waiting.items()]
        one_topic = len({place.topic for place in self.waiting}) == 1
        self.consumer.assign(places)
        begun = heard = time.monotonic()
        uneasy = UNEASY_SECONDS
        while self.waiting and time.monotonic() - begun <= self.patience_seconds:
            messages = self.consumer.consume(BATCH, POLL_SECONDS)
            if messages:
                heard, uneasy = time.monotonic(), UNEASY_SECONDS
                self._take(messages, one_topic)
                continue
            silent = time.monotonic() - heard
            if self._lagging and silent > LAGGING_SECONDS:
                self._give_up(sorted(self._lagging), OUT_OF_RANGE)
            elif silent > self.deadline_seconds or self.causes.keys() & HOPELESS:
                raise Silence(self.deadline_seconds)
            elif silent > uneasy:
                self._ask_what_is_there()
                uneasy *= 4
        self.consumer.unassign()

    def _take(self, messages: Sequence[Message], one_topic: bool) -> None:
        errors = list(map(Message.error, messages))
        records: Sequence[Message] = messages
        # Not errors.count(None): comparing a KafkaError with None leaves a Python exception pending.
        if any(errors):
            records = [message for message, error in zip(messages, errors, strict=True) if error is None]
        for place, chunk in _by_partition(records, one_topic):
            # About: a chunk's first record stands for all.
            self.value_bytes += len(chunk) * len(chunk[0])
            intake = self.waiting.get(place)
            if intake is not None and intake.take(chunk):
                self._finish(place)
        if records is not messages:
            for message, error in zip(messages, errors, strict=True):
                if error is not None:
                    self._note(message, error)
        if self._done and self.waiting:
            # What is fetched ahead of a finished run would be thrown away.
            self.consumer.incremental_unassign(self._done)
        self._done = []

    def _finish(self, place: TopicPartition) -> None:
        del self.waiting[place]
        self._lagging.discard(place)
        self._done.append(KafkaPartition(place.topic, place.partition))

    def _note(self, message: Message, error: KafkaError) -> None:
        """Take an event that is no record: the end of a log, or an error of a partition, a topic or the client."""
        place, code = _place(message), code_of(error)
        intake = self.waiting.get(place)
        if error.code() == KafkaError._PARTITION_EOF:
            if intake is not None and _offset(message) >= intake.run.end:
                self._finish(place)
            elif intake is not None:
                self._lagging.add(place)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            if intake is not None:
                self._finish(place)
                self.moved.append(place)
        elif code in HOPELESS:
            raise Silence(self.deadline_seconds, error)
        elif code not in PASSING and not error.retriable():
            whole = place.partition < 0
            affected = [p for p in self.waiting if p == place or (whole and place.topic in ("", p.topic))]
            self._give_up(affected, code)

    def _give_up(self, places: Sequence[TopicPartition], code: str) -> None:
        for place in places:
            self.problems[place] = Unreadable(code)
            self._finish(place)

    def _ask_what_is_there(self) -> None:
        """Give up partitions that the cluster does not have, or does not show us; it may take long to answer."""
        try:
            shown = self.consumer.list_topics(timeout=METADATA_SECONDS).topics
            for name in {place.topic for place in self.waiting} - shown.keys():
                # Left out of the listing: only who asks for it by name is told why.
                shown |= self.consumer.list_topics(name, timeout=METADATA_SECONDS).topics
        except KafkaException:
            return
        for place in list(self.waiting):
            topic = shown.get(place.topic)
            if topic is None or (topic.error is None and place.partition not in topic.partitions):
                self._give_up([place], "UNKNOWN_TOPIC_OR_PARTITION")
            elif topic.error is not None and not topic.partitions and code_of(topic.error) not in PASSING:
                self._give_up([place], code_of(topic.error))


def log_bounds(consumer: Consumer, place: TopicPartition, timeout_seconds: float) -> tuple[int, int]:
    """Return where a partition's log begins and ends now, asking its leader."""
    bounds: Any = consumer.get_watermark_offsets(
        KafkaPartition(place.topic, place.partition), timeout=timeout_seconds, cached=False
    )
    if bounds is None:
        raise Silence(timeout_seconds)
    return int(bounds[0]), int(bounds[1])


def _by_partition(messages: Sequence[Message], one_topic: bool) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
    """Cut messages into stretches of one partition each, as the client delivers them."""
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


def _offset(message: Message) -> int:
    offset = message.offset()
    return -1 if offset is None else offset

"""One pass over many partitions: all in one assignment, each read until its sink has enough or its log ends.

Every consumer here is a standalone one: it assigns partitions and joins no group, commits nothing, and creates no topic
that it names (librdkafka still looks up a coordinator, see `docs/limits.md`). Offsets without a record (compaction,
markers, aborted records) are no reason to wait.
"""

import math
import time
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import wait
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.errors import HOPELESS, code_of
from migrate.match.equality import Content, Equality, fingerprints
from migrate.match.log_reader import Run
from migrate.match.protocol import LogSlice, OffsetRange, key_mark
from migrate.model import TopicPartition
from migrate.progress import batches, in_background
from migrate.silence import asking, heard

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
# After this silence the cluster is asked which partitions it has: librdkafka waits for one that is missing.
UNEASY_SECONDS = 3.0
METADATA_SECONDS = 10.0
# A new leader may not know of the last records yet; one that still lacks them after this time has lost them.
LAGGING_SECONDS = 5.0
# A token not renewed, or one broker of many with a bad certificate, ends no reading that goes on: librdkafka
# asks for a token again after 10 s, with the old one still good.
HOPELESS_SECONDS = 15.0
CLOSING_SECONDS = 3.0
K = TypeVar("K")
V = TypeVar("V")


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
    the values of all records delivered take. `poll` is how many records one poll takes at most, and its seconds;
    `name` is the cluster's in messages.
    """

    def __init__(
        self,
        consumer: Consumer,
        waiting: dict[TopicPartition, S],
        name: str,
        patience_seconds: float = math.inf,
        silence_seconds: float = math.inf,
        poll: tuple[int, float] = (BATCH, POLL_SECONDS),
    ) -> None:
        self._name = name
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
        begun = heard_at = time.monotonic()
        with asking(self._name, min(self._patience_seconds, self.silence_seconds)):
            while self.waiting and time.monotonic() - begun <= self._patience_seconds:
                messages = self.consumer.consume(*self._poll)
                if messages and self._take(messages):
                    heard_at = time.monotonic()
                    heard(self._name)
                elif not self.waits(time.monotonic() - heard_at):
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

    def _take(self, messages: Sequence[Message]) -> bool:
        """Hand over what a poll brought; return whether it is a sign of life."""
        errors = list(map(Message.error, messages))
        records: Sequence[Message] = messages
        # Not errors.count(None): comparing a KafkaError with None leaves a Python exception pending.
        if any(errors):
            records = [message for message, error in zip(messages, errors, strict=True) if error is None]
        for place, chunk in _by_partition(records):
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


def _by_partition(messages: Sequence[Message]) -> Iterator[tuple[TopicPartition, Sequence[Message]]]:
    """Cut messages into slices of one partition each, as the client delivers them."""
    at = 0
    for _, same in groupby(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)):
        count = len(list(same))
        yield _place(messages[at]), messages[at : at + count]
        at += count


def _place(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "", -1 if partition is None else partition)


class Silence(Exception):  # becomes a ClusterError where the cluster's name is known
    """Raised where a cluster did not answer for too long."""


# A record without an error has all of these: the client's types cannot tell.
_offset: Any = Message.offset
_headers: Any = Message.headers
_second = itemgetter(1)
_WITH_HEADERS = (Equality.ALL, Equality.WITHOUT_TIMESTAMP)


class Shelf(Protocol):
    """Keeps what is needed of the records of one range; below `readable_from` retention has deleted them."""

    readable_from: int

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Take records that follow those taken before."""


class Prints:
    """Fingerprints of the records of one range."""

    def __init__(self, equality: Equality, with_keys: bool = False) -> None:
        self.readable_from = 0
        self._with_keys = with_keys
        self._keys = array("q")
        self._equality = equality
        self._offsets = array("q")
        self._times = array("q")
        self._prints = array("q")

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Fingerprint records; their payloads end here."""
        times = array("q", _times(messages))
        keys: Any = map(Message.key, messages)
        values: Any = map(Message.value, messages)
        if self._with_keys:
            keys, values = list(keys), list(values)
            self._keys.extend(map(key_mark, keys, values))
        self._offsets.extend(offsets)
        self._times.extend(times)
        headers = map(_headers, messages) if self._equality in _WITH_HEADERS else repeat(())
        self._prints.extend(fingerprints(self._equality, times, keys, values, headers))

    def stretch(self, piece: OffsetRange) -> LogSlice:
        """Return what was taken in."""
        readable_from = min(max(piece.start, self.readable_from), piece.end)
        at = bisect_left(self._offsets, readable_from)
        offsets, times, prints, keys = (
            column[at:] if at else column for column in (self._offsets, self._times, self._prints, self._keys)
        )
        return LogSlice(piece.start, piece.end, readable_from, offsets, times, prints, keys)


class Contents:
    """The contents of single records, by offset."""

    def __init__(self) -> None:
        self.readable_from = 0
        self.records: dict[int, Content] = {}

    def add(self, offsets: "array[int]", messages: Sequence[Message]) -> None:
        """Keep the records as they are."""
        parts = (_times(messages), map(Message.key, messages), map(Message.value, messages), map(_headers, messages))
        for offset, time_ms, key, value, headers in zip(offsets, *parts, strict=True):
            self.records[offset] = Content(time_ms, key, value, tuple(headers or ()))


class RunIntake:
    """Takes the records of one run and puts those within its ranges on their shelves; `start` is what comes next."""

    def __init__(self, run: Run, ranges: Sequence[OffsetRange], shelves: Sequence[Shelf]) -> None:
        self.run = run
        self.start = run.start
        self._ranges = ranges
        self._shelves = shelves
        self._at = run.first

    def take(self, messages: Sequence[Message]) -> bool:
        """Take records of this partition in the order of their log; True if the run's end is reached.

        A record beyond the end ends it too: compaction, markers and aborted records leave offsets without one.
        """
        offsets: array[int] = array("q", map(_offset, messages))
        last = offsets[-1]
        self.start = last + 1
        while self._at <= self.run.last:
            piece = self._ranges[self._at]
            if piece.start > last:
                break
            low, high = bisect_left(offsets, piece.start), bisect_left(offsets, piece.end)
            if low < high:
                self._shelves[self._at].add(offsets[low:high], messages[low:high])
            if last < piece.end - 1:
                break
            self._at += 1
        return last >= self.run.end - 1

    def begin_at(self, log_start: int) -> None:
        """Go on from where the log begins now: retention was faster."""
        self.start = log_start
        for shelf in self._shelves[self.run.first : self.run.last + 1]:
            shelf.readable_from = log_start


def _times(messages: Iterable[Message]) -> Iterator[int]:
    return map(_second, map(Message.timestamp, messages))


class RunPass(ReadPass[RunIntake]):
    """Reads runs; after `silence_seconds` it raises `Silence`.

    `causes` is what the client has said of trouble, by code. When done, `moved` names the partitions whose log begins
    beyond the offset that their run had reached: they are to be read again from where it begins now.
    """

    def __init__(
        self,
        consumer: Consumer,
        waiting: dict[TopicPartition, RunIntake],
        name: str,
        patience_seconds: float,
        silence_seconds: float,
        causes: MutableMapping[str, str],
    ) -> None:
        super().__init__(consumer, waiting, name, patience_seconds, silence_seconds)
        self.moved: list[TopicPartition] = []
        self._causes = causes
        # Where the log ended before its run did, by what comes next.
        self._lagging: dict[TopicPartition, int] = {}
        self._uneasy_seconds = UNEASY_SECONDS

    def waits(self, silent_seconds: float) -> bool:
        """Wait until the deadline; give up before what the cluster does not have, or has lost."""
        if silent_seconds < UNEASY_SECONDS:
            self._uneasy_seconds = UNEASY_SECONDS
        lagging = sorted(p for p, end in self._lagging.items() if p in self.waiting and self.waiting[p].start <= end)
        if lagging and silent_seconds > LAGGING_SECONDS:
            self.give_up(lagging, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE))
        elif silent_seconds > self.silence_seconds or (
            silent_seconds > HOPELESS_SECONDS and self._causes.keys() & HOPELESS
        ):
            raise Silence
        elif silent_seconds > self._uneasy_seconds:
            self._ask_what_is_there()
            self._uneasy_seconds *= 4
        return True

    def _take(self, messages: Sequence[Message]) -> bool:
        is_lively = super()._take(messages)
        if is_lively:
            # What was said before is over: it ends no later silence before its deadline.
            for code in HOPELESS & self._causes.keys():
                del self._causes[code]
        return is_lively

    def note(self, place: TopicPartition, message: Message, error: KafkaError) -> bool:
        """Take an event that is no record, and return whether it is a sign of life."""
        intake = self.waiting.get(place)
        if code_of(error) in HOPELESS:
            # Said also of the coordinator of the group that is only named, where a token has ended, while leaders go
            # on: it ends a silence, and no reading.
            self._causes[code_of(error)] = error.str()
            return False
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            if intake is not None:
                self.finish([place])
                self.moved.append(place)
            return True
        if error.code() == KafkaError._PARTITION_EOF and intake is not None and offset_of(message) < intake.run.end:
            self._lagging[place] = offset_of(message)
            return True
        return super().note(place, message, error)

    def _ask_what_is_there(self) -> None:
        """Give up partitions that the cluster does not have, or does not show us; it may take long to answer."""
        try:
            absent = absent_from(self.consumer, self.waiting)
        except KafkaException:
            return
        for place, error in absent.items():
            self.give_up([place], error)


def absent_from(consumer: Consumer, places: Collection[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    """Return which partitions the cluster does not have, or does not show us, each with its error.

    Raises `KafkaException` where it does not answer.
    """
    shown = consumer.list_topics(timeout=METADATA_SECONDS).topics
    for name in {place.topic for place in places} - shown.keys():
        # Left out of the listing: only who asks for it by name is told why.
        shown |= consumer.list_topics(name, timeout=METADATA_SECONDS).topics
    absent: dict[TopicPartition, KafkaError] = {}
    for place in places:
        topic = shown.get(place.topic)
        if topic is None or (topic.error is None and place.partition not in topic.partitions):
            absent[place] = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        elif topic.error is not None and not topic.partitions and code_of(topic.error) not in PASSING:
            absent[place] = topic.error
    return absent


def close_consumers(consumers: Iterable[Consumer], seconds: float = CLOSING_SECONDS) -> None:
    """Begin to close consumers, which nobody may use any more, and wait for it, for so many seconds at most.

    Each by a thread of its own: closing joins a client's threads, and where brokers die one of them may never end
    (librdkafka #4519). Whoever closed it would wait for ever, and with it a process that no signal ends any more.
    """
    wait([in_background(consumer.close, "closing a consumer") for consumer in consumers], timeout=seconds)


def in_turns(asked: Iterable[tuple[K, Iterable[V]]], size: int) -> Iterator[Sequence[tuple[K, V]]]:
    """Yield all values with their keys in turns of at most `size`, each of which names a key once."""
    turns: dict[int, list[tuple[K, V]]] = defaultdict(list)
    for key, values in asked:
        for depth, value in enumerate(values):
            turns[depth].append((key, value))
    for turn in turns.values():
        yield from batches(turn, size)

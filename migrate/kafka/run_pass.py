"""A pass over one straight run of each of many partitions, for the comparing of records.

A run ends with its last offset, with a record beyond it, or with the log's end.
"""

from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.kafka.errors import HOPELESS, code_of
from migrate.kafka.intake import RunIntake
from migrate.kafka.read_pass import PASSING, ReadPass, offset_of
from migrate.model import TopicPartition

# After this silence the cluster is asked which partitions it has: librdkafka waits for one that is missing.
UNEASY_SECONDS = 3.0
METADATA_SECONDS = 10.0
# A new leader may not know of the last records yet; one that still lacks them after this time has lost them.
LAGGING_SECONDS = 5.0
# A token not renewed, or one broker of many with a bad certificate, ends no reading that goes on: librdkafka
# asks for a token again after 10 s, with the old one still good.
HOPELESS_SECONDS = 15.0


class Silence(Exception):  # becomes a ClusterError where the cluster's name is known
    """Raised where a cluster did not answer for too long, or answered with `problem` that it never will."""

    def __init__(self, problem: KafkaError | None = None) -> None:
        super().__init__(problem)
        self.problem = problem


class RunPass(ReadPass[RunIntake]):
    """Reads runs; after `silence_seconds` it raises `Silence`.

    `causes` is what the client has said of trouble, by code. When done, `moved` names the partitions whose log begins
    beyond the offset that their run had reached: they are to be read again from where it begins now.
    """

    def __init__(
        self,
        consumer: Consumer,
        waiting: dict[TopicPartition, RunIntake],
        patience_seconds: float,
        silence_seconds: float,
        causes: MutableMapping[str, str],
    ) -> None:
        super().__init__(consumer, waiting, patience_seconds, silence_seconds)
        self.moved: list[TopicPartition] = []
        self._causes = causes
        # Where the log ended before its run did, by what comes next.
        self._lagging: dict[TopicPartition, int] = {}
        self._uneasy_seconds = UNEASY_SECONDS
        # What was said of trouble before the last sign of life.
        self._past_causes: dict[str, str] = {}

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
            # At the deadline it may be why nothing came, all the same.
            for code, text in self._past_causes.items():
                self._causes.setdefault(code, text)
            raise Silence
        elif silent_seconds > self._uneasy_seconds:
            self._ask_what_is_there()
            self._uneasy_seconds *= 4
        return True

    def _take(self, messages: Sequence[Message], one_topic: bool) -> bool:
        is_lively = super()._take(messages, one_topic)
        if is_lively:
            self._past_causes |= {code: self._causes.pop(code) for code in HOPELESS & self._causes.keys()}
        return is_lively

    def note(self, place: TopicPartition, message: Message, error: KafkaError) -> bool:
        """Take an event that is no record; any is a sign of life."""
        intake = self.waiting.get(place)
        if code_of(error) in HOPELESS:
            raise Silence(error)
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            if intake is not None:
                self.finish([place])
                self.moved.append(place)
        elif error.code() == KafkaError._PARTITION_EOF and intake is not None and offset_of(message) < intake.run.end:
            self._lagging[place] = offset_of(message)
        else:
            super().note(place, message, error)
        return True

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


def log_start(consumer: Consumer, place: TopicPartition, timeout_seconds: float) -> int:
    """Return where a partition's log begins now, asking its leader; raises `KafkaException`."""
    bounds: Any = consumer.get_watermark_offsets(
        KafkaPartition(place.topic, place.partition), timeout=timeout_seconds, cached=False
    )
    if bounds is None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    return int(bounds[0])

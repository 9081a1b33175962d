"""Offsets by timestamp through librdkafka. Reads only, and read_uncommitted.

ListOffsets for a timestamp gives the first record of that time or later. It knows only the records that are still
there, and says -1 where no record is so late, where a leader is silent, and where a broker does not look far enough:
it looks into one segment only, the first whose largest timestamp is late enough (`UnifiedLog`), and if the record that
made it so late is gone, by DeleteRecords or a cleaner, nothing in later segments counts. So where nothing was found the
newest timestamp of the log is asked for too.

Only partitions that the cluster has shown may be asked about: a request that names an absent topic might create it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from migrate.kafka.connection import LONGEST, Connection, asked_until_answered
from migrate.kafka.errors import FORGOTTEN, is_passing
from migrate.kafka.read_pass import in_turns
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, TopicPartition
from migrate.ports import Progress

PlaceTime = tuple[TopicPartition, int]
"""A partition, and a time in ms since 1970."""
# What is in flight at once: each question has the broker look into the log's time index, and into a segment.
AT_ONCE = 2000
# How often a record is asked for that a log should have and that was not found.
TIMES_ASKED = 3
# While a partition gets another leader: mostly for less than a second.
_NO_LEADER_YET = frozenset(
    {
        "REPLICA_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
    }
)  # fmt: skip
# Beside times: what else is asked of a log.
_NEWEST, _START = -1, -2
NOT_FOUND = Failure("LEADER_NOT_AVAILABLE", "the partition's leader did not answer", retriable=True)
# Older formats of records have none.
_NO_TIMESTAMP = Failure("NO_TIMESTAMP", "no record of the log has a timestamp")
_NO_TIMESTAMP_OR_ANSWER = Failure(
    "NO_TIMESTAMP", "no record of the log has a timestamp, or its leader did not answer", retriable=True
)


class LogTimes:
    """Asks one cluster; `deadline_seconds` is how long any request may stay without an answer."""

    def __init__(self, settings: ClientSettings, deadline_seconds: float, progress: Progress) -> None:
        self._deadline_seconds = deadline_seconds
        self._connection = Connection(settings, deadline_seconds)
        self._progress = progress

    def first_offsets(
        self, pairs: Collection[PlaceTime]
    ) -> tuple[Mapping[PlaceTime, int | None | Failure], Mapping[TopicPartition, int | Failure]]:
        """Return the first offset of that time (ms since 1970) or later, None where none was found.

        And the newest timestamp of each log where one was not found, as `newest_times` does: what a log should have by
        it was asked for again, because its leader may just have been silent.
        """
        # A negative timestamp is a sign of the protocol's own; no record is older than the first.
        asked = {(place, time_ms): max(0, time_ms) for place, time_ms in pairs}
        found: dict[PlaceTime, int | None | Failure] = {}
        newest: Mapping[TopicPartition, int | Failure] = {}
        doubted = {(place, time_ms) for (place, _), time_ms in asked.items()}
        for _ in range(TIMES_ASKED):
            found |= self._persistently(doubted)
            absent = {pair for pair in doubted if found[pair] is None}
            newest = {**newest, **self.newest_times({place for place, _ in absent})}
            doubted = {(place, time_ms) for place, time_ms in absent if may_have(newest[place], time_ms)}
        return {pair: found[pair[0], time_ms] for pair, time_ms in asked.items()}, newest

    def newest_times(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the newest timestamp of each log; brokers before Kafka 3.0 cannot tell.

        A log that may just be empty is not waited for: its `Failure` is retriable.
        """
        found = self._persistently({(place, _NEWEST) for place in partitions})
        return {place: _NO_TIMESTAMP if answer is None else answer for (place, _), answer in found.items()}

    def starts(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return where each log begins now."""
        found = self._persistently({(place, _START) for place in partitions})
        return {place: answer for (place, _), answer in found.items() if answer is not None}

    def _persistently(self, pairs: Collection[PlaceTime]) -> dict[PlaceTime, int | None | Failure]:
        return asked_until_answered(self._asked, sorted(pairs), _is_passing, [self._connection], self._deadline_seconds)

    def _asked(self, pairs: Collection[PlaceTime]) -> dict[PlaceTime, int | None | Failure]:
        times: dict[TopicPartition, list[int]] = defaultdict(list)
        for place, time_ms in sorted(pairs):
            times[place].append(time_ms)
        answers: dict[PlaceTime, int | None | Failure] = {}
        # One call takes one timestamp per partition.
        for turn in in_turns(times.items(), AT_ONCE):
            found = self._connection.collect(lambda client, turn=turn: _submitted(client, turn))  # type: ignore[misc]
            answers |= {pair: _told(answer, pair[1]) for pair, answer in found.items()}
            self._progress.advance(len(answers), len(pairs))
        forgotten = {pair for pair, a in answers.items() if isinstance(a, Failure) and a.code in FORGOTTEN}
        return answers | self._gone(forgotten) if forgotten else answers

    def _gone(self, forgotten: Collection[PlaceTime]) -> dict[PlaceTime, int | None | Failure]:
        """Answer for what librdkafka does not know, and the cluster does not have either."""
        topics = self._connection.metadata().topics
        absent = Failure("UNKNOWN_TOPIC_OR_PARTITION", "not there, or the principal lacks DESCRIBE on the topic")
        gone = (p for p in forgotten if p[0].topic not in topics or p[0].partition not in topics[p[0].topic].partitions)
        return dict.fromkeys(gone, absent)


def _submitted(client: Any, turn: Sequence[PlaceTime]) -> dict[PlaceTime, Any]:
    asked = {KafkaPartition(*place): (place, time_ms) for place, time_ms in turn}
    specs = {partition: _spec(time_ms) for partition, (_, time_ms) in asked.items()}
    futures = client.list_offsets(specs, isolation_level=IsolationLevel.READ_UNCOMMITTED, **LONGEST)
    times = dict(turn)
    places = {partition: TopicPartition(partition.topic, partition.partition) for partition in futures}
    return {(places[partition], times[places[partition]]): future for partition, future in futures.items()}


def _spec(time_ms: int) -> OffsetSpec:
    if time_ms == _NEWEST:
        return OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call,no-any-return]
    return OffsetSpec.earliest() if time_ms == _START else OffsetSpec.for_timestamp(time_ms)  # type: ignore[no-untyped-call,no-any-return]


def _told(answer: Any, asked: int) -> int | None | Failure:
    if isinstance(answer, Failure):
        return answer
    if asked == _START and answer.offset < 0:
        return NOT_FOUND  # every log has a start: its leader was silent
    if asked != _NEWEST:
        return int(answer.offset) if answer.offset >= 0 else None
    if answer.offset < 0:
        return _NO_TIMESTAMP_OR_ANSWER
    return int(answer.timestamp) if answer.timestamp >= 0 else _NO_TIMESTAMP


def _is_passing(answer: int | None | Failure) -> bool:
    if not isinstance(answer, Failure) or answer is _NO_TIMESTAMP_OR_ANSWER:
        return False
    return answer.code in _NO_LEADER_YET or (is_passing(answer) and answer.code != "_TIMED_OUT")


def may_have(newest: int | Failure, time_ms: int) -> bool:
    """True if a log may well have a record of that time or later, by its newest timestamp.

    Also where that is not known for a reason that passes. Brokers before Kafka 3.0 never say it, and are believed that
    there is none.
    """
    return is_passing(newest) if isinstance(newest, Failure) else time_ms <= newest

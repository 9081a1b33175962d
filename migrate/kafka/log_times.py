"""Offsets by timestamp through librdkafka, behind `migrate.survey.log_ends.LogTimes`. Reads only.

Only partitions that the cluster has shown may be asked about: a request that names an absent topic might create it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from migrate.clock import Backoff, SystemClock
from migrate.kafka.admin import told_offset
from migrate.kafka.connection import LONGEST, Connection
from migrate.kafka.errors import is_passing
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, TopicPartition
from migrate.ports import Progress
from migrate.progress import batches
from migrate.survey.log_ends import PlaceTime

# What is in flight at once: each question has the broker look into the log's time index, and into a segment.
AT_ONCE = 2000
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 3.0
_NEWEST = -1
# Older formats of records have none.
_NO_TIMESTAMP = Failure("NO_TIMESTAMP", "no record of the log has a timestamp")
_NO_TIMESTAMP_OR_ANSWER = Failure(
    "NO_TIMESTAMP", "no record of the log has a timestamp, or its leader did not answer", retriable=True
)


class ConfluentLogTimes:
    """Asks one cluster; `deadline_seconds` is how long any request may stay without an answer."""

    def __init__(self, settings: ClientSettings, deadline_seconds: float, progress: Progress) -> None:
        self._deadline_seconds = deadline_seconds
        self._connection = Connection(settings, deadline_seconds)
        self._progress = progress

    def newest_times(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the newest timestamp of each log."""
        answers = self._persistently([(place, _NEWEST) for place in sorted(partitions)], _told_time)
        return {place: answer for (place, _), answer in answers.items()}

    def newest_soon(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the same, without waiting for a log that may just be empty: its `Failure` is retriable."""
        pairs = [(place, _NEWEST) for place in sorted(partitions)]
        answers = self._asked(pairs, _told_time)
        broken = [pair for pair, told in answers.items() if _is_passing(told) and told is not _NO_TIMESTAMP_OR_ANSWER]
        if broken:
            self._connection.drop()
            answers |= self._persistently(broken, _told_time)
        return {place: answer for (place, _), answer in answers.items()}

    def offsets_at(self, times: Mapping[int, Collection[TopicPartition]]) -> Mapping[PlaceTime, int | Failure]:
        """Return the first offset of that time or later; every partition has records as late."""
        pairs = [(place, time_ms) for time_ms in sorted(times) for place in sorted(times[time_ms])]
        return self._persistently(pairs, told_offset)

    def _persistently(self, pairs: Sequence[PlaceTime], read: Any) -> dict[PlaceTime, int | Failure]:
        """Ask again, with a fresh client, for what failed in passing, until the deadline: leaders move."""
        answers = self._asked(pairs, read)
        backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, self._deadline_seconds)
        while (passing := [pair for pair, answer in answers.items() if _is_passing(answer)]) and not backoff.is_over:
            self._connection.drop()
            backoff.pause()
            answers |= self._asked(passing, read)
        return answers

    def _asked(self, pairs: Sequence[PlaceTime], read: Any) -> dict[PlaceTime, int | Failure]:
        answers: dict[PlaceTime, int | Failure] = {}
        for batch in batches(pairs, AT_ONCE):
            told = self._connection.collect(lambda client, batch=batch: _submitted(client, batch))  # type: ignore[misc]
            answers |= {pair: read(answer) for pair, answer in told.items()}
            self._progress.advance(len(answers), len(pairs))
        return answers


def _submitted(client: AdminClient, pairs: Iterable[PlaceTime]) -> "dict[PlaceTime, Future[Any]]":
    """A call for each time: a call has one question for each partition."""
    by_time: dict[int, list[TopicPartition]] = {}
    for place, time_ms in pairs:
        by_time.setdefault(time_ms, []).append(place)
    found: dict[PlaceTime, Future[Any]] = {}
    for time_ms, places in by_time.items():
        spec = OffsetSpec.max_timestamp() if time_ms == _NEWEST else OffsetSpec.for_timestamp(time_ms)  # type: ignore[no-untyped-call]
        specs = {KafkaPartition(place.topic, place.partition): spec for place in places}
        futures = client.list_offsets(specs, isolation_level=IsolationLevel.READ_UNCOMMITTED, **LONGEST)
        found |= {(TopicPartition(p.topic, p.partition), time_ms): future for p, future in futures.items()}
    return found


def _told_time(answer: Any) -> int | Failure:
    if isinstance(answer, Failure):
        return answer
    if answer.offset < 0:
        return _NO_TIMESTAMP_OR_ANSWER
    return int(answer.timestamp) if answer.timestamp >= 0 else _NO_TIMESTAMP


def _is_passing(answer: int | Failure) -> bool:
    return isinstance(answer, Failure) and is_passing(answer) and answer.code != "_TIMED_OUT"

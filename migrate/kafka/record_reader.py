"""Records of many partitions of one cluster, reduced to fingerprints as they are taken from the client.

- Read from and to offsets that were pinned before.
- Every error is looked at: what a partition does not let read is a value, a cluster that is silent for longer than
  the deadline a `ClusterError`.

Many partitions in one assignment are what librdkafka is good at; seeks are not (5 ms each). So the ranges of a
round become few straight runs per partition, and the first runs of all partitions are read in one pass.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial, wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.clock import Backoff, SystemClock
from migrate.errors import ClusterError
from migrate.kafka.errors import (
    FORGOTTEN,
    HOPELESS,
    code_of,
    error_of,
    is_passing,
    note_cause,
    on_one_line,
    refused_settings,
)
from migrate.kafka.intake import Contents, Prints, RunIntake, Shelf
from migrate.kafka.log_times import ConfluentLogTimes
from migrate.kafka.read_pass import (
    BROKEN_LINE,
    PASSING,
    READS_ONLY,
    RunPass,
    Silence,
    absent_from,
    close_consumers,
    in_turns,
    log_start,
)
from migrate.kafka.settings import ClientSettings
from migrate.match.equality import Content
from migrate.match.log_reader import GAP, SHORT_FETCH, Run, Wanted, runs_of
from migrate.match.protocol import LogSlice, OffsetRange, Unreadable
from migrate.model import Failure, TopicPartition
from migrate.progress import QuietProgress, batches

# A broker sends the batch of one partition only, if all batches are larger than a fetch: then large ones are better.
PATIENCE_SECONDS = 2.0
PARTITIONS_AT_ONCE = 1000
TIMES_AT_ONCE = 500
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
REFUSED = "TOPIC_AUTHORIZATION_FAILED"
# While a partition gets another leader: mostly for less than a second.
NO_LEADER_YET = frozenset(
    {
        "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER", "REPLICA_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE",
    }
)  # fmt: skip
REFUSED_SECONDS = 60.0
# Up to how many offsets a run is short or long. A fetch brings more than is asked for, and the rest is thrown away.
SHORT_RUN = 500
LONG_RUN = 10_000
STATISTICS_MS = 500
# By then the client has asked for the leaders by itself.
LEADERS_SECONDS = 1.0

_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    # Nothing resets a position in silence.
    "auto.offset.reset": "error",
    "max.poll.interval.ms": 86_400_000,
    "fetch.wait.max.ms": 5,
    # librdkafka's own default is to wait a second whenever its queue is full.
    "fetch.queue.backoff.ms": 5,
    "fetch.max.bytes": 16 << 20,
    "queued.max.messages.kbytes": 32 << 10,
    "log_level": 0,
}
_RECEIVED = '"rx_bytes":'
T = TypeVar("T")
P = ParamSpec("P")


class Reach(Enum):
    """How far a run goes, and how much is fetched at once for it; librdkafka's names."""

    # With more records waiting, the client fetches beyond a short run's end before it is told to stop.
    SHORT = (SHORT_FETCH, 1)
    LONG = (512 << 10, 20_000)
    WHOLE = (2 << 20, 20_000)

    @classmethod
    def of(cls, offsets: int) -> "Reach":
        """Return the reach of a run of so many offsets."""
        return cls.SHORT if offsets <= SHORT_RUN else cls.LONG if offsets <= LONG_RUN else cls.WHOLE

    def settings(self) -> dict[str, Any]:
        """Return how a consumer reads such runs."""
        at_once, waiting = self.value
        return _SETTINGS | {"fetch.message.max.bytes": at_once, "queued.min.messages": waiting}


class ReaderClients:
    """One consumer per reach, each made when it is first needed; parameters are those of `RecordReader`.

    `causes` is what the consumers have said of trouble so far, by code. A cluster that did not answer is asked by new
    consumers after that, which have said nothing yet: who reads for days outlives a token that ended on the way.
    """

    def __init__(self, settings: ClientSettings, deadline_seconds: float, isolation_level: str) -> None:
        self.causes: dict[str, str] = {}
        self._deadline_seconds = deadline_seconds
        self._name = settings.name
        self._config = {**settings.config, "isolation.level": isolation_level}
        self._secrets = settings.secrets
        self._consumers: dict[Reach, Consumer] = {}
        self._received: dict[Reach, int] = {}
        self._received_before = 0
        self._is_silent = False
        # By reach, the topics whose leaders its consumer knows.
        self._known: dict[Reach, set[str]] = {}

    def close(self) -> None:
        """Close the clients."""
        close_consumers(self._consumers.values())

    @property
    def received_bytes(self) -> int:
        """Bytes received, by librdkafka's own count, which it reports twice a second."""
        return self._received_before + sum(self._received.values())

    def of(self, reach: Reach) -> Consumer:
        """Return the consumer for runs of this reach; raises `ClusterError` if librdkafka refuses its settings."""
        if self._is_silent:
            self._begin_anew()
        if reach not in self._consumers:
            settings = {
                **self._config,
                **reach.settings(),
                "statistics.interval.ms": STATISTICS_MS,
                "error_cb": partial(note_cause, self.causes),
                "stats_cb": partial(self._count, reach),
            }
            try:
                self._consumers[reach] = Consumer(settings)
            except (KafkaException, ValueError, TypeError) as error:
                raise refused_settings(self._name, "read", error, self._secrets) from None
        return self._consumers[reach]

    def introduce(self, reach: Reach, topics: Collection[str]) -> None:
        """Have a consumer find the leaders of topics that are new to it, before it is assigned any of them.

        As it connects it asks by itself, and after that once a second, in which nothing would be read.
        """
        known = self._known.get(reach)
        new = set() if known is None else set(topics) - known
        self._known.setdefault(reach, set()).update(topics)
        end = time.monotonic() + LEADERS_SECONDS
        with suppress(KafkaException):  # what is wrong, the reading tells
            for topic in sorted(new):
                # One by one, and a cluster may be far away.
                if (left := end - time.monotonic()) <= 0:
                    break
                self.of(reach).list_topics(topic, timeout=left)

    def _begin_anew(self) -> None:
        close_consumers(self._consumers.values(), seconds=0)
        self._received_before = self.received_bytes
        for forgotten in (self._consumers, self._received, self.causes, self._known):
            forgotten.clear()
        self._is_silent = False

    def silent(self, problem: KafkaError | None) -> ClusterError:
        """Return the error of a cluster that does not answer, with the best cause that the clients have reported."""
        code, text = (code_of(problem), problem.str()) if problem else ("", "")
        for known in (*sorted(HOPELESS), "_RESOLVE", "_TRANSPORT"):
            if known in self.causes and code not in HOPELESS:
                code, text = known, self.causes[known]
                break
        cause = f": {on_one_line(text, self._secrets)}" if text else ""
        self._is_silent = True
        what = "refused" if code in HOPELESS else f"did not answer within {self._deadline_seconds:g} s"
        return ClusterError(
            f"{self._name} {what} while its records were read{cause}.",
            "Check that all its brokers run and can be reached from where Spark's tasks run, then run again. Where "
            "quotas throttle clients, raise --request-timeout.",
        )

    def _count(self, reach: Reach, statistics: str) -> None:
        """Take the client's own count of bytes: the last of that name in its JSON, which may be a megabyte long."""
        at = statistics.rfind(_RECEIVED)
        if at >= 0:
            digits = statistics[at + len(_RECEIVED) : at + len(_RECEIVED) + 20]
            self._received[reach] = int(digits.split(",")[0].rstrip("} \n"))


class _Refusals:
    """Topics that a cluster does not let us read: each attempt waits some seconds for the client to tell."""

    def __init__(self) -> None:
        # By topic, until when it is not asked for again.
        self._until: dict[str, float] = {}

    def note(self, problems: Mapping[TopicPartition, Unreadable]) -> None:
        """Keep those among what could not be read."""
        until = SystemClock().monotonic() + REFUSED_SECONDS
        for place, problem in problems.items():
            if problem.reason == REFUSED:
                self._until.setdefault(place.topic, until)

    def of(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Unreadable]:
        """Return those of these partitions that are not to be asked for now."""
        # Somebody may have granted it since: who reads for days asks again.
        now = SystemClock().monotonic()
        self._until = {topic: until for topic, until in self._until.items() if now < until}
        return {place: Unreadable(REFUSED) for place in places if place.topic in self._until}


def _one_at_a_time(method: Callable[Concatenate["RecordReader", P], T]) -> Callable[Concatenate["RecordReader", P], T]:
    """Have a thread wait until no other one reads."""

    @wraps(method)
    def in_turn(reader: "RecordReader", /, *arguments: P.args, **options: P.kwargs) -> T:
        with reader._turn:
            return method(reader, *arguments, **options)

    return in_turn


class RecordReader:
    """Behind `migrate.match.log_reader.LogReader`; `deadline_seconds` is how long the cluster may stay silent.

    `isolation_level` is read_committed but where aborted records have copies to be found. Of several threads one reads
    at a time: they share consumers, and each would be handed the other's records, and throw them away.
    """

    def __init__(
        self, settings: ClientSettings, deadline_seconds: float, isolation_level: str = "read_committed"
    ) -> None:
        self._clients = ReaderClients(settings, deadline_seconds, isolation_level)
        self._log_times = ConfluentLogTimes(settings, deadline_seconds, QuietProgress())
        self._deadline_seconds = deadline_seconds
        self._value_bytes = 0
        self._has_large_batches = False
        self._refusals = _Refusals()
        self._turn = Lock()

    def close(self) -> None:
        """Close the clients; the reader cannot be used any more.

        Where a thread still reads, nobody waits: a client that is closed meanwhile can take the process with it.
        """
        if self._turn.acquire(blocking=False):
            self._clients.close()
            self._turn.release()

    @property
    def fetched_bytes(self) -> int:
        """Bytes received, by librdkafka's own count, which comes late: at least the values delivered."""
        return max(self._clients.received_bytes, self._value_bytes)

    @_one_at_a_time
    def read(
        self, requests: Mapping[TopicPartition, Wanted]
    ) -> dict[TopicPartition, tuple[LogSlice, ...] | Unreadable]:
        """Return one stretch per range."""
        shelves = {place: [Prints(r.equality, r.keys) for _ in r.ranges] for place, r in requests.items()}
        ranges = {place: request.ranges for place, request in requests.items()}
        problems = self._fill(ranges, shelves)
        return {p: problems.get(p) or tuple(map(Prints.stretch, shelves[p], ranges[p])) for p in requests}

    def contents(
        self, offsets: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return the records at single offsets."""
        return self._contents({p: [OffsetRange(o, o + 1) for o in sorted(set(offsets[p]))] for p in offsets})

    def scan(
        self, ranges: Mapping[TopicPartition, OffsetRange]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return every record of one range of each partition, by offset in log order: whole, so a few at a time."""
        return self._contents({place: [piece] for place, piece in ranges.items()})

    @_one_at_a_time
    def _contents(
        self, ranges: Mapping[TopicPartition, Sequence[OffsetRange]]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        shelves = {place: Contents() for place in ranges}
        problems = self._fill(ranges, {place: [shelf] * len(ranges[place]) for place, shelf in shelves.items()})
        return {place: problems.get(place) or shelf.records for place, shelf in shelves.items()}

    @_one_at_a_time
    def first_offsets(
        self, times: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, int | None] | Unreadable]:
        """Return first offsets by timestamp, asking for many partitions at once; a log's start where brokers err."""
        offsets: dict[TopicPartition, dict[int, int | None]] = {place: {} for place in times}
        problems = self._refusals.of(times)
        # One call takes one timestamp per partition.
        backoff = self._backoff()
        for turn in in_turns(((place, sorted(set(times[place]))) for place in times), TIMES_AT_ONCE):
            while turn := self._look_up(turn, offsets, problems, backoff):
                backoff.pause()
        absent = {p: late for p in offsets.keys() - problems.keys() if (late := _absent(offsets[p]))}
        for place, newest in self._log_times.newest_soon(absent).items() if absent else ():
            if there := _doubted(absent[place], newest):
                start = self._log_start(self._clients.of(Reach.SHORT), place)
                if isinstance(start, Unreadable):
                    problems[place] = start
                else:
                    offsets[place] |= dict.fromkeys(there, start)
        return {place: problems.get(place) or answers for place, answers in offsets.items()}

    def _look_up(
        self,
        asked: Sequence[tuple[TopicPartition, int]],
        offsets: Mapping[TopicPartition, dict[int, int | None]],
        problems: dict[TopicPartition, Unreadable],
        backoff: Backoff,
    ) -> list[tuple[TopicPartition, int]]:
        """Ask for one timestamp per partition; return what is to be asked again: the line to its broker broke."""
        # librdkafka takes a negative timestamp for a sign of its own; no record is older than the first.
        places = [KafkaPartition(p.topic, p.partition, max(0, t)) for p, t in asked if p not in problems]
        if not places:
            return []
        try:
            answers = self._clients.of(Reach.SHORT).offsets_for_times(places, timeout=self._deadline_seconds)
        except KafkaException as error:
            problem = error_of(error)
            if self._passes(problem, [place for place, _ in asked], backoff):
                return list(asked)
            if _is_of_cluster(problem, backoff):
                raise self._clients.silent(problem) from None
            if len(asked) == 1:
                problems[asked[0][0]] = _unreadable(problem)
                return []
            # One partition that cannot be asked fails all: each is asked by itself.
            return [again for one in asked for again in self._look_up([one], offsets, problems, backoff)]
        times, again = dict(asked), list[tuple[TopicPartition, int]]()
        for answer in answers:
            place = TopicPartition(answer.topic, answer.partition)
            if answer.error is None:
                offsets[place][times[place]] = answer.offset if answer.offset >= 0 else None
            elif self._passes(answer.error, [place], backoff):
                again.append((place, times[place]))
            elif _is_of_cluster(answer.error, backoff):
                raise self._clients.silent(answer.error)
            else:
                problems[place] = _unreadable(answer.error)
        return again

    def _backoff(self) -> Backoff:
        return Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, self._deadline_seconds)

    def _passes(self, problem: KafkaError, places: Collection[TopicPartition], backoff: Backoff) -> bool:
        """True for what is over soon: librdkafka makes a new connection, but does not ask again by itself."""
        if code_of(problem) in HOPELESS or backoff.is_over:
            return False
        if code_of(problem) in FORGOTTEN:
            try:
                return not absent_from(self._clients.of(Reach.SHORT), places)
            except KafkaException:
                return True
        return code_of(problem) in BROKEN_LINE | NO_LEADER_YET

    def _fill(
        self, ranges: Mapping[TopicPartition, Sequence[OffsetRange]], shelves: Mapping[TopicPartition, Sequence[Shelf]]
    ) -> dict[TopicPartition, Unreadable]:
        """Read all ranges onto their shelves; return what could not be read."""
        problems = self._refusals.of(ranges)
        for reach, turn in _turns(ranges):
            waiting = {p: RunIntake(run, ranges[p], shelves[p]) for p, run in turn if p not in problems}
            while waiting:
                if self._has_large_batches and reach is Reach.SHORT:
                    reach = Reach.LONG
                waiting = self._pass(reach, waiting, problems)
        self._refusals.note(problems)
        return problems

    def _pass(
        self, reach: Reach, intakes: Mapping[TopicPartition, RunIntake], problems: dict[TopicPartition, Unreadable]
    ) -> dict[TopicPartition, RunIntake]:
        """Read one run of each partition; return the runs that are to go on in another pass."""
        patience = PATIENCE_SECONDS if reach is Reach.SHORT else math.inf
        consumer = self._clients.of(reach)
        self._clients.introduce(reach, {place.topic for place in intakes})
        now = RunPass(consumer, dict(intakes), patience, self._deadline_seconds, self._clients.causes)
        try:
            now.run()
            problems |= {place: Unreadable(code_of(error)) for place, error in now.problems.items()}
            again = {p: intakes[p] for p in now.moved if self._goes_on(consumer, p, intakes[p], problems)}
        except Silence as silence:
            raise self._clients.silent(silence.problem) from None
        except KafkaException as error:
            raise self._clients.silent(error_of(error)) from None
        self._value_bytes += now.value_bytes
        if now.waiting:
            self._has_large_batches = True
        return again | now.waiting

    def _goes_on(
        self, consumer: Consumer, place: TopicPartition, intake: RunIntake, problems: dict[TopicPartition, Unreadable]
    ) -> bool:
        """Move a run to where its log begins now; False if nothing of it is left to read."""
        start = self._log_start(consumer, place)
        if isinstance(start, Unreadable):
            problems[place] = start
            return False
        if start <= intake.start:
            # Not its beginning was deleted: its end is gone.
            problems[place] = Unreadable(OUT_OF_RANGE)
            return False
        intake.begin_at(start)
        return start < intake.run.end

    def _log_start(self, consumer: Consumer, place: TopicPartition) -> int | Unreadable:
        """Return where a log begins now; raises `ClusterError` if the cluster does not say so by the deadline."""
        backoff = self._backoff()
        while True:
            try:
                return log_start(consumer, place, self._deadline_seconds)
            except KafkaException as error:
                problem = error_of(error)
                if self._passes(problem, [place], backoff):
                    backoff.pause()
                elif _is_of_cluster(problem, backoff):
                    raise self._clients.silent(problem) from None
                else:
                    return _unreadable(problem)


def _absent(offsets: Mapping[int, int | None]) -> list[int]:
    """Return the timestamps of which no offset was told, each to be doubted where the log's newest record is as late.

    A broker looks into one segment only, the first whose largest timestamp is late enough (`UnifiedLog`): if the record
    that made it so late is gone, by DeleteRecords or a cleaner, it answers -1, whatever later segments hold.
    """
    return [time for time, offset in offsets.items() if offset is None]


def _doubted(times: Sequence[int], newest: int | Failure) -> list[int]:
    """Return those of these timestamps that a log may well have, by its newest one.

    Where that is not told for a reason that passes, all: from the log's start a group reads twice, from its end it may
    lose records. Brokers before Kafka 3.0 never tell it, and are believed.
    """
    if isinstance(newest, Failure):
        return list(times) if is_passing(newest) else []
    return [time for time in times if time <= newest]


def _unreadable(problem: KafkaError) -> Unreadable:
    code = code_of(problem)
    return Unreadable("UNKNOWN_TOPIC_OR_PARTITION" if code in FORGOTTEN else code)


def _is_of_cluster(problem: KafkaError, backoff: Backoff) -> bool:
    """True if an error says nothing about a partition: the cluster did not answer, or does not let us in.

    If the client still does not know a partition at the deadline, the cluster has not said that there is none.
    """
    code = code_of(problem)
    if code in FORGOTTEN:
        return backoff.is_over
    return code in HOPELESS or (code in PASSING and code != "GROUP_AUTHORIZATION_FAILED") or code == "_DESTROY"


def _turns(
    ranges: Mapping[TopicPartition, Sequence[OffsetRange]],
) -> Iterator[tuple[Reach, Sequence[tuple[TopicPartition, Run]]]]:
    """Yield what is read in one pass: one run of each of many partitions, all of one reach."""
    turns: dict[tuple[int, Reach], list[tuple[TopicPartition, Run]]] = defaultdict(list)
    for place, asked in ranges.items():
        for depth, run in enumerate(runs_of(asked, GAP)):
            turns[depth, Reach.of(run.end - run.start)].append((place, run))
    for (_, reach), turn in turns.items():
        for part in batches(turn, PARTITIONS_AT_ONCE):
            yield reach, part

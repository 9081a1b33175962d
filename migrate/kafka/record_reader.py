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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial, wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from confluent_kafka import Consumer, KafkaException

from migrate.errors import ClusterError
from migrate.kafka.errors import (
    FORGOTTEN,
    HOPELESS,
    code_of,
    error_of,
    note_cause,
    on_one_line,
    refused_settings,
)
from migrate.kafka.log_times import LogTimes, may_have
from migrate.kafka.read_pass import (
    BROKEN_LINE,
    READS_ONLY,
    Contents,
    Prints,
    RunIntake,
    RunPass,
    Shelf,
    Silence,
    close_consumers,
)
from migrate.kafka.settings import ClientSettings, ready
from migrate.match.equality import Content
from migrate.match.log_reader import GAP, SHORT_FETCH, Run, Wanted, runs_of
from migrate.match.protocol import LogSlice, OffsetRange, Unreadable
from migrate.model import Failure, TopicPartition
from migrate.progress import QuietProgress, batches

# A broker sends the batch of one partition only, if all batches are larger than a fetch: then large ones are better.
PATIENCE_SECONDS = 2.0
PARTITIONS_AT_ONCE = 1000
OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
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
        self.name = settings.name
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
                **ready(self._config),
                **reach.settings(),
                "statistics.interval.ms": STATISTICS_MS,
                "error_cb": partial(note_cause, self.causes),
                "stats_cb": partial(self._count, reach),
            }
            try:
                self._consumers[reach] = Consumer(settings)
            except (KafkaException, ValueError, TypeError) as error:
                raise refused_settings(self.name, "read", error, self._secrets) from None
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

    def silent(self, code: str = "", text: str = "") -> ClusterError:
        """Return the error of a cluster that does not answer, with the best cause that the clients have reported."""
        for known in (*sorted(HOPELESS), "_RESOLVE", "_TRANSPORT"):
            if known in self.causes and code not in HOPELESS:
                code, text = known, self.causes[known]
                break
        cause = f": {on_one_line(text, self._secrets)}" if text else ""
        self._is_silent = True
        what = "refused" if code in HOPELESS else f"did not answer within {self._deadline_seconds:g} s"
        return ClusterError(
            f"{self.name} {what} while its records were read{cause}.",
            "Check that all its brokers run and can be reached from where Spark's tasks run, then run again. Where "
            "quotas throttle clients, raise --request-timeout.",
        )

    def _count(self, reach: Reach, statistics: str) -> None:
        """Take the client's own count of bytes: the last of that name in its JSON, which may be a megabyte long."""
        at = statistics.rfind(_RECEIVED)
        if at >= 0:
            digits = statistics[at + len(_RECEIVED) : at + len(_RECEIVED) + 20]
            self._received[reach] = int(digits.split(",")[0].rstrip("} \n"))


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
        self._log_times = LogTimes(settings, deadline_seconds, QuietProgress())
        self._deadline_seconds = deadline_seconds
        self._value_bytes = 0
        self._has_large_batches = False
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
        problems: dict[TopicPartition, Unreadable] = {}
        asked = [(place, time_ms) for place in times for time_ms in set(times[place])]
        found, newest = self._log_times.first_offsets(asked)
        doubted = defaultdict[TopicPartition, list[int]](list)
        for (place, time_ms), answer in found.items():
            if isinstance(answer, Failure):
                problems[place] = self._unreadable(answer)
                continue
            offsets[place][time_ms] = answer
            # From the log's start a group reads records twice, from its end it may lose some.
            if answer is None and may_have(newest[place], time_ms):
                doubted[place].append(time_ms)
        for place, start in self._log_times.starts(doubted.keys() - problems.keys()).items():
            if isinstance(start, Failure):
                problems[place] = self._unreadable(start)
            else:
                offsets[place] |= dict.fromkeys(doubted[place], start)
        return {place: problems.get(place) or answers for place, answers in offsets.items()}

    def _unreadable(self, failure: Failure) -> Unreadable:
        """Return why a partition cannot be read; raises `ClusterError` for what says nothing about a partition.

        If the client still does not know a partition at the deadline, the cluster has not said that there is none.
        """
        if failure.code in FORGOTTEN | HOPELESS | BROKEN_LINE | {"_TIMED_OUT", "_DESTROY"}:
            raise self._clients.silent(failure.code, failure.message)
        return Unreadable(failure.code)

    def _fill(
        self, ranges: Mapping[TopicPartition, Sequence[OffsetRange]], shelves: Mapping[TopicPartition, Sequence[Shelf]]
    ) -> dict[TopicPartition, Unreadable]:
        """Read all ranges onto their shelves; return what could not be read."""
        problems: dict[TopicPartition, Unreadable] = {}
        for reach, turn in _turns(ranges):
            waiting = {p: RunIntake(run, ranges[p], shelves[p]) for p, run in turn if p not in problems}
            while waiting:
                if self._has_large_batches and reach is Reach.SHORT:
                    reach = Reach.LONG
                waiting = self._pass(reach, waiting, problems)
        return problems

    def _pass(
        self, reach: Reach, intakes: Mapping[TopicPartition, RunIntake], problems: dict[TopicPartition, Unreadable]
    ) -> dict[TopicPartition, RunIntake]:
        """Read one run of each partition; return the runs that are to go on in another pass."""
        patience = PATIENCE_SECONDS if reach is Reach.SHORT else math.inf
        consumer = self._clients.of(reach)
        self._clients.introduce(reach, {place.topic for place in intakes})
        clients = self._clients
        now = RunPass(consumer, dict(intakes), clients.name, patience, self._deadline_seconds, clients.causes)
        try:
            now.run()
            problems |= {place: Unreadable(code_of(error)) for place, error in now.problems.items()}
            again = {p: intakes[p] for p in now.moved if self._goes_on(p, intakes[p], problems)}
        except Silence:
            raise self._clients.silent() from None
        except KafkaException as error:
            raise self._clients.silent(code_of(error), error_of(error).str()) from None
        self._value_bytes += now.value_bytes
        if now.waiting:
            self._has_large_batches = True
        return again | now.waiting

    def _goes_on(self, place: TopicPartition, intake: RunIntake, problems: dict[TopicPartition, Unreadable]) -> bool:
        """Move a run to where its log begins now; False if nothing of it is left to read."""
        start = self._log_times.starts([place])[place]
        if isinstance(start, Failure):
            problems[place] = self._unreadable(start)
            return False
        if start <= intake.start:
            # Not its beginning was deleted: its end is gone.
            problems[place] = Unreadable(OUT_OF_RANGE)
            return False
        intake.begin_at(start)
        return start < intake.run.end


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

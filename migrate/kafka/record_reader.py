"""Records of many partitions of one cluster, read by a consumer that belongs to no group's business.

Invariants:
- It assigns and never subscribes, commits nothing, and no request of it creates a topic.
- read_committed, from and to offsets that were pinned before; nothing resets a position in silence.
- Every error is looked at: what a partition does not let read is a value, a cluster that is silent for longer than
  the deadline a `ClusterError`.
- Records are reduced to fingerprints as they are taken from the client.

Many partitions in one assignment are what librdkafka is good at; seeks are not (5 ms each). So the ranges of a
round become few straight runs per partition, and the first runs of all partitions are read in one pass.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from migrate.errors import ClusterError
from migrate.kafka.errors import code_of, error_of, note_cause
from migrate.kafka.intake import Contents, Prints, RunIntake, Shelf
from migrate.kafka.read_pass import HOPELESS, OUT_OF_RANGE, PASSING, READS_ONLY, ReadPass, Silence, log_bounds
from migrate.match.equality import Content
from migrate.match.log_reader import GAP, SHORT_FETCH, Run, Wanted, runs_of
from migrate.match.protocol import LogSlice, OffsetRange, Unreadable
from migrate.mm2.secrets import redact
from migrate.model import TopicPartition

# Up to how many offsets a run is short or long. A fetch brings more than is asked for, and the rest is thrown away.
SHORT_RUN = 500
LONG_RUN = 10_000
# A broker sends the batch of one partition only, if all batches are larger than a fetch: then large ones are better.
PATIENCE_SECONDS = 2.0
PARTITIONS_AT_ONCE = 1000
TIMES_AT_ONCE = 500
STATISTICS_MS = 500
REFUSED = "TOPIC_AUTHORIZATION_FAILED"

_SETTINGS: dict[str, Any] = {
    **READS_ONLY,
    "isolation.level": "read_committed",
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

Lookup = tuple[TopicPartition, int]


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


class RecordReader:
    """Behind `migrate.match.log_reader.LogReader`; `name` is the cluster's in messages, "source A (broker:9092)".

    `config` is a ready librdkafka configuration, `deadline_seconds` how long the cluster may stay silent, `secrets`
    what no message may show. `isolation_level` is read_committed but where aborted records have copies to be found.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, str],
        deadline_seconds: float,
        secrets: Collection[str] = (),
        isolation_level: str = "read_committed",
    ) -> None:
        self._isolation_level = isolation_level
        self._name = name
        self._config = dict(config)
        self._deadline_seconds = deadline_seconds
        self._secrets = tuple(secrets)
        self._consumers: dict[Reach, Consumer] = {}
        self._received: dict[Reach, int] = {}
        self._value_bytes = 0
        self._causes: dict[str, str] = {}
        self._has_large_batches = False
        # Each new attempt at a topic that we may not read would wait some seconds for the client to tell.
        self._refused: set[str] = set()

    def close(self) -> None:
        """Close the clients; the reader can not be used any more."""
        for consumer in self._consumers.values():
            consumer.close()

    @property
    def fetched_bytes(self) -> int:
        """Bytes received, by librdkafka's own count; it counts twice a second, so at least the values delivered."""
        return max(sum(self._received.values()), self._value_bytes)

    def read(self, wanted: Mapping[TopicPartition, Wanted]) -> dict[TopicPartition, tuple[LogSlice, ...] | Unreadable]:
        """Return one stretch per range."""
        shelves = {place: [Prints(asked.equality, asked.keys) for _ in asked.ranges] for place, asked in wanted.items()}
        problems = self._fill({place: asked.ranges for place, asked in wanted.items()}, shelves)
        return {
            place: problems.get(place)
            or tuple(shelf.stretch(piece) for piece, shelf in zip(asked.ranges, shelves[place], strict=True))
            for place, asked in wanted.items()
        }

    def contents(
        self, wanted: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return the records at single offsets."""
        ranges = {place: [OffsetRange(o, o + 1) for o in sorted(set(offsets))] for place, offsets in wanted.items()}
        shelves = {place: [Contents() for _ in asked] for place, asked in ranges.items()}
        problems = self._fill(ranges, shelves)
        return {
            place: problems.get(place) or {o: c for shelf in shelves[place] for o, c in shelf.found.items()}
            for place in wanted
        }

    def scan(
        self, wanted: Mapping[TopicPartition, OffsetRange]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return every record of one range of each partition, by offset in log order: whole, so a few at a time."""
        shelves = {place: Contents() for place in wanted}
        problems = self._fill({p: [piece] for p, piece in wanted.items()}, {p: [shelf] for p, shelf in shelves.items()})
        return {place: problems.get(place) or shelf.found for place, shelf in shelves.items()}

    def first_offsets(
        self, wanted: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, int | None] | Unreadable]:
        """Return first offsets by timestamp, asking for many partitions at once."""
        found: dict[TopicPartition, dict[int, int | None]] = {place: {} for place in wanted}
        problems = self._known_refusals(wanted)
        # One call takes one timestamp per partition.
        turns: dict[int, list[Lookup]] = defaultdict(list)
        for place, times in wanted.items():
            for depth, timestamp in enumerate(sorted(set(times))):
                turns[depth].append((place, timestamp))
        for turn in turns.values():
            for start in range(0, len(turn), TIMES_AT_ONCE):
                self._look_up(turn[start : start + TIMES_AT_ONCE], found, problems)
        return {place: problems.get(place) or answers for place, answers in found.items()}

    def _look_up(
        self,
        asked: Sequence[Lookup],
        found: Mapping[TopicPartition, dict[int, int | None]],
        problems: dict[TopicPartition, Unreadable],
    ) -> None:
        # librdkafka takes a negative timestamp for a sign of its own; no record is older than the first.
        places = [KafkaPartition(p.topic, p.partition, max(0, t)) for p, t in asked if p not in problems]
        if not places:
            return
        try:
            answers = self._consumer(Reach.SHORT).offsets_for_times(places, timeout=self._deadline_seconds)
        except KafkaException as error:
            problem = error_of(error)
            if _is_of_cluster(problem):
                raise self._silent(problem) from None
            if len(asked) == 1:
                problems[asked[0][0]] = _unreadable(problem)
            else:
                # One partition that can not be asked fails all: each is asked by itself.
                for one in asked:
                    self._look_up([one], found, problems)
            return
        times = dict(asked)
        for answer in answers:
            place = TopicPartition(answer.topic, answer.partition)
            if answer.error is None:
                found[place][times[place]] = answer.offset if answer.offset >= 0 else None
            elif _is_of_cluster(answer.error):
                raise self._silent(answer.error)
            else:
                problems[place] = _unreadable(answer.error)

    def _fill(
        self, ranges: Mapping[TopicPartition, Sequence[OffsetRange]], shelves: Mapping[TopicPartition, Sequence[Shelf]]
    ) -> dict[TopicPartition, Unreadable]:
        """Read all ranges onto their shelves; return what could not be read."""
        problems = self._known_refusals(ranges)
        for reach, turn in _turns(ranges):
            waiting = {p: RunIntake(run, ranges[p], shelves[p]) for p, run in turn if p not in problems}
            while waiting:
                if self._has_large_batches and reach is Reach.SHORT:
                    reach = Reach.LONG
                waiting = self._pass(reach, waiting, problems)
        self._refused |= {place.topic for place, problem in problems.items() if problem.reason == REFUSED}
        return problems

    def _known_refusals(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Unreadable]:
        return {place: Unreadable(REFUSED) for place in places if place.topic in self._refused}

    def _pass(
        self,
        reach: Reach,
        intakes: Mapping[TopicPartition, RunIntake],
        problems: dict[TopicPartition, Unreadable],
    ) -> dict[TopicPartition, RunIntake]:
        """Read one run of each partition; return the runs that are to go on in another pass."""
        patience = PATIENCE_SECONDS if reach is Reach.SHORT else math.inf
        consumer = self._consumer(reach)
        now = ReadPass(consumer, dict(intakes), self._deadline_seconds, self._causes, patience, problems)
        try:
            now.run()
            again = {p: intakes[p] for p in now.moved if self._goes_on(consumer, p, intakes[p], problems)}
        except Silence as silence:
            raise self._silent(silence.problem) from None
        except KafkaException as error:
            raise self._silent(error_of(error)) from None
        self._value_bytes += now.value_bytes
        if now.waiting:
            self._has_large_batches = True
        return again | now.waiting

    def _goes_on(
        self, consumer: Consumer, place: TopicPartition, intake: RunIntake, problems: dict[TopicPartition, Unreadable]
    ) -> bool:
        """Move a run to where its log begins now; False if nothing of it is left to read."""
        start, _ = log_bounds(consumer, place, self._deadline_seconds)
        if start <= intake.start:
            # Not its beginning was deleted: its end is gone.
            problems[place] = Unreadable(OUT_OF_RANGE)
            return False
        intake.begin_at(start)
        return start < intake.run.end

    def _consumer(self, reach: Reach) -> Consumer:
        if reach not in self._consumers:
            settings = {
                **self._config,
                **reach.settings(),
                "isolation.level": self._isolation_level,
                "statistics.interval.ms": STATISTICS_MS,
                "error_cb": partial(note_cause, self._causes),
                "stats_cb": lambda text: self._count(reach, text),
            }
            try:
                self._consumers[reach] = Consumer(settings)
            except (KafkaException, ValueError, TypeError) as error:
                raise ClusterError(
                    f"{self._name} cannot be read with these settings: {self._readable(error_of(error).str())}.",
                    "Correct the client properties of this cluster.",
                ) from None
        return self._consumers[reach]

    def _count(self, reach: Reach, statistics: str) -> None:
        """Take the client's own count of bytes: the last of that name in its JSON, which may be a megabyte long."""
        at = statistics.rfind(_RECEIVED)
        if at >= 0:
            digits = statistics[at + len(_RECEIVED) : at + len(_RECEIVED) + 20]
            self._received[reach] = int(digits.split(",")[0].rstrip("} \n"))

    def _silent(self, problem: KafkaError | None) -> ClusterError:
        """Return the error of a cluster that does not answer, with the best cause that the client has told."""
        code, text = (code_of(problem), problem.str()) if problem else ("", "")
        for telling in (*sorted(HOPELESS), "_RESOLVE", "_TRANSPORT"):
            if telling in self._causes and code not in HOPELESS:
                code, text = telling, self._causes[telling]
                break
        cause = f": {self._readable(text)}" if text else ""
        what = "refused" if code in HOPELESS else f"did not answer within {self._deadline_seconds:g} s"
        return ClusterError(
            f"{self._name} {what} while its records were read{cause}.",
            "Check that all its brokers run and can be reached from where Spark's tasks run, then run again. Where "
            "quotas throttle clients, raise --request-timeout.",
        )

    def _readable(self, text: str) -> str:
        return " ".join(redact(text, self._secrets).split()).rstrip(".")


def _unreadable(problem: KafkaError) -> Unreadable:
    code = code_of(problem)
    return Unreadable("UNKNOWN_TOPIC_OR_PARTITION" if code in ("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION") else code)


def _is_of_cluster(problem: KafkaError) -> bool:
    """True if an error says nothing about a partition: the cluster did not answer, or does not let us in."""
    code = code_of(problem)
    return code in HOPELESS or (code in PASSING and code != "GROUP_AUTHORIZATION_FAILED") or code == "_DESTROY"


def _turns(
    ranges: Mapping[TopicPartition, Sequence[OffsetRange]],
) -> Iterator[tuple[Reach, list[tuple[TopicPartition, Run]]]]:
    """Yield what is read in one pass: one run of each of many partitions, all of one reach."""
    turns: dict[tuple[int, Reach], list[tuple[TopicPartition, Run]]] = defaultdict(list)
    for place, asked in ranges.items():
        for depth, run in enumerate(runs_of(asked, GAP)):
            turns[depth, Reach.of(run.end - run.start)].append((place, run))
    for (_, reach), turn in turns.items():
        for start in range(0, len(turn), PARTITIONS_AT_ONCE):
            yield reach, turn[start : start + PARTITIONS_AT_ONCE]

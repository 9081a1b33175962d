"""What one task does: drive the matching of many partitions at once, and read for all of them in rounds. Pure.

Each round gathers what a hundred partitions need into one reading of each cluster. Tasks end with values, also where a
cluster fails them: what they would raise, Spark would run again and wrap in pages of stack trace.
"""

import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.match.log_reader import LogReader, Wanted
from migrate.match.matcher import matching
from migrate.match.protocol import LogSlice, Needs, PartitionAnswer, PartitionQuestion, Supply, Unreadable
from migrate.model import LogRange, TopicPartition

PARTITIONS_AT_ONCE = 100
# Offsets of both logs that are held in memory at once, about 100 bytes each; a single partition may be wider.
OFFSETS_AT_ONCE = 500_000

Matching = Callable[[PartitionQuestion], Generator[Needs, Supply | Unreadable, PartitionAnswer]]
OpenReaders = Callable[[], AbstractContextManager[tuple[LogReader, LogReader]]]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a task could not go on: the parts of a `MigrateError`."""

    problem: str
    todo: str
    lacks: bool

    @staticmethod
    def of(error: MigrateError) -> "Failed":
        """Return the value of an error."""
        return Failed(error.problem, error.todo, isinstance(error, EnvironmentLacks))

    def error(self) -> MigrateError:
        """Return the error again."""
        return (EnvironmentLacks if self.lacks else ClusterError)(self.problem, self.todo)


@dataclass(frozen=True, slots=True)
class Fetched:
    """How many bytes a task received from either cluster."""

    source_bytes: int
    target_bytes: int


class MatchTask:
    """Answers partition questions; call it with those of one Spark partition."""

    def __init__(self, open_readers: OpenReaders, match: Matching = matching) -> None:
        self._open_readers = open_readers
        self._match = match

    def __call__(
        self, questions: Iterable[PartitionQuestion]
    ) -> Iterator[tuple[TopicPartition, PartitionAnswer] | Fetched | Failed]:
        """Yield each question's source partition with its answer, in any order, and what was fetched at the end."""
        try:
            with _fewer_collections(), self._open_readers() as readers, ThreadPoolExecutor(2) as pool:
                yield from _Drive(readers, pool, self._match).answers(questions)
                yield Fetched(readers[0].fetched_bytes, readers[1].fetched_bytes)
        except MigrateError as error:
            yield Failed.of(error)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let Python look for cyclic garbage a hundred times less often: records by the thousand are none."""
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Partition:
    """One matching under way."""

    def __init__(self, question: PartitionQuestion, match: Matching) -> None:
        self.question = question
        self.needs = Needs()
        self.answer: PartitionAnswer | None = None
        self.width = 0
        self._conversation = match(question)
        self.supply(None)

    def supply(self, supply: Supply | Unreadable | None) -> None:
        """Say what was read; None begins the conversation."""
        try:
            self.needs = next(self._conversation) if supply is None else self._conversation.send(supply)
            self.width += sum(piece.end - piece.start for piece in (*self.needs.source, *self.needs.target))
        except StopIteration as done:
            self.answer = done.value


class _Drive:
    """Partitions under way in one task, and the readers that they share."""

    def __init__(self, readers: tuple[LogReader, LogReader], pool: ThreadPoolExecutor, match: Matching) -> None:
        self._readers = readers
        self._pool = pool
        self._match = match

    def answers(self, questions: Iterable[PartitionQuestion]) -> Iterator[tuple[TopicPartition, PartitionAnswer]]:
        coming = (_Partition(question, self._match) for question in questions)
        next_up = next(coming, None)
        active: list[_Partition] = []
        while True:
            while next_up is not None and len(active) < PARTITIONS_AT_ONCE:
                held = sum(partition.width for partition in active)
                if active and held + next_up.width > OFFSETS_AT_ONCE:
                    break
                active.append(next_up)
                next_up = next(coming, None)
            if not active:
                return
            self._round([partition for partition in active if partition.answer is None])
            for partition in active:
                if partition.answer is not None:
                    yield partition.question.source, partition.answer
            active = [partition for partition in active if partition.answer is None]

    def _round(self, partitions: Sequence[_Partition]) -> None:
        """Read what all of them need, from both clusters at the same time."""
        source, target = [], []
        for question, needs in ((p.question, p.needs) for p in partitions):
            of_source = Wanted(needs.source, question.equality, question.compacted)
            source.append(_Asked(question.source, question.source_log, of_source, needs.source_times))
            of_target = Wanted(needs.target, question.equality)
            target.append(_Asked(question.target, question.target_log, of_target, needs.target_times))
        reading = [self._pool.submit(_read, *each) for each in zip(self._readers, (source, target), strict=True)]
        for partition, mine, copies in zip(partitions, *(each.result() for each in reading), strict=True):
            if isinstance(mine, Unreadable):
                partition.supply(mine)
            elif isinstance(copies, Unreadable):
                partition.supply(copies)
            else:
                partition.supply(Supply(mine.slices, copies.slices, mine.first_offsets, copies.first_offsets))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one partition needs of one log."""

    place: TopicPartition
    log: LogRange
    wanted: Wanted
    times: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Got:
    """What was read of one log; the first offset for a timestamp is the pinned end where there is none below it."""

    slices: tuple[LogSlice, ...]
    first_offsets: dict[int, int]


def _read(reader: LogReader, asked: Sequence[_Asked]) -> list[_Got | Unreadable]:
    read = reader.read({a.place: a.wanted for a in asked if a.wanted.ranges})
    first = reader.first_offsets(
        {a.place: a.times for a in asked if a.times and not isinstance(read.get(a.place), Unreadable)}
    )
    got: list[_Got | Unreadable] = []
    for each in asked:
        slices, offsets, end = read.get(each.place, ()), first.get(each.place, {}), each.log.end
        if isinstance(slices, Unreadable):
            got.append(slices)
        elif isinstance(offsets, Unreadable):
            got.append(offsets)
        else:
            got.append(_Got(slices, {t: end if at is None else min(at, end) for t, at in offsets.items()}))
    return got

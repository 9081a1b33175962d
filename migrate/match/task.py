"""What one task does: drive the matching of many partitions at once, and read for all of them in rounds. Pure.

Each round gathers what a hundred partitions need into one reading of each cluster.
"""

import gc
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from migrate.errors import MigrateError
from migrate.match.least_timestamp import by_timestamp
from migrate.match.log_reader import LogReader, Wanted
from migrate.match.matcher import matching
from migrate.match.place_table import PlaceTable
from migrate.match.protocol import (
    LogSlice,
    Needs,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Unreadable,
    WhyUnmatched,
)
from migrate.match.sync_only import guarding
from migrate.model import LogRange, TopicPartition
from migrate.progress import side_by_side

PARTITIONS_AT_ONCE = 100
# Offsets of both logs that are held in memory at once, about 100 bytes each; a single partition may be wider.
OFFSETS_AT_ONCE = 500_000

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Conversation = Generator[Needs, Supply | Unreadable, PartitionAnswer]
OpenReaders = Callable[[], AbstractContextManager[tuple[LogReader, LogReader]]]
Task = Callable[[LogReader, LogReader, Iterable[Asked]], Iterator[Answer]]
"""Answers questions in any order, with readers of the source and of the target."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """How many bytes a task received from either cluster."""

    source_bytes: int = 0
    target_bytes: int = 0

    def and_(self, other: "Fetched") -> "Fetched":
        """Return the sum of two."""
        return Fetched(self.source_bytes + other.source_bytes, self.target_bytes + other.target_bytes)


def answers_of(
    open_readers: OpenReaders, task: Task[Asked, Answer], questions: Iterable[Asked]
) -> Iterator[Answer | Fetched]:
    """Yield the answers of a task, with readers that are its own, and what it fetched at the end."""
    with _fewer_collections(), open_readers() as (source, target):
        # Readers that stay open have fetched for others before.
        before = source.fetched_bytes, target.fetched_bytes
        yield from task(source, target, questions)
        yield Fetched(source.fetched_bytes - before[0], target.fetched_bytes - before[1])


def answers_or_error(
    open_readers: OpenReaders, task: Task[Asked, Answer], questions: Iterable[Asked]
) -> Iterator[Answer | Fetched | MigrateError]:
    """Yield the answers of a task, and what it fetched; the error that ends it is its last value.

    For Spark: what a task raises is run again there, and comes wrapped in pages of stack trace.
    """
    try:
        yield from answers_of(open_readers, task, questions)
    except MigrateError as error:
        yield error


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let Python look for cyclic garbage a hundred times less often: records by the thousand are none."""
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def law_of(question: PartitionQuestion) -> Conversation:
    """Begin the conversation about a partition, by the law that it asks for."""
    if question.unread is not None:
        # Of windows that are only too many the syncs are proven; else records cannot tell a proven sync from another.
        return guarding(question, question.unread, is_bounded=question.unread is WhyUnmatched.MATCH_LIMIT)
    return by_timestamp(question) if question.by_timestamp else matching(question)


def match_partitions(
    source: LogReader,
    target: LogReader,
    questions: Iterable[PartitionQuestion],
    law: Callable[[PartitionQuestion], Conversation] = law_of,
) -> Iterator[tuple[TopicPartition, PartitionAnswer]]:
    """Yield each question's source partition with its answer in any order: a task."""
    readers = source, target
    coming = (_Partition(question, law) for question in questions)
    next_up = next(coming, None)
    active: list[_Partition] = []
    while next_up is not None or active:
        while next_up is not None and len(active) < PARTITIONS_AT_ONCE:
            held = sum(partition.width for partition in active)
            if active and held + next_up.width > OFFSETS_AT_ONCE:
                break
            active.append(next_up)
            next_up = next(coming, None)
        _round([partition for partition in active if partition.answer is None], readers)
        for partition in active:
            if partition.answer is not None:
                places = PlaceTable.of(partition.answer.places)
                yield partition.question.source, replace(partition.answer, places=places)
        active = [partition for partition in active if partition.answer is None]


class _Partition:
    """One matching under way."""

    def __init__(self, question: PartitionQuestion, law: Callable[[PartitionQuestion], Conversation]) -> None:
        self.question = question
        self.needs = Needs()
        self.answer: PartitionAnswer | None = None
        self.width = 0
        self._conversation = law(question)
        self.supply(None)

    def supply(self, supply: Supply | Unreadable | None) -> None:
        """Say what was read; None begins the conversation."""
        try:
            self.needs = next(self._conversation) if supply is None else self._conversation.send(supply)
            self.width += sum(piece.end - piece.start for piece in (*self.needs.source, *self.needs.target))
        except StopIteration as done:
            self.answer = done.value


def _round(partitions: Sequence[_Partition], readers: tuple[LogReader, LogReader]) -> None:
    """Read what all of them need, from both clusters at the same time."""
    asked = [(p.question, p.needs) for p in partitions]
    by_side = (
        [_Asked(q.source, q.source_log, Wanted(n.source, q.equality, q.compacted), n.source_times) for q, n in asked],
        [_Asked(q.target, q.target_log, Wanted(n.target, q.equality), n.target_times) for q, n in asked],
    )
    of_source, of_target = (partial(_read, *each) for each in zip(readers, by_side, strict=True))
    for partition, originals, copies in zip(partitions, *side_by_side(of_source, of_target), strict=True):
        if isinstance(originals, Unreadable):
            partition.supply(originals)
        elif isinstance(copies, Unreadable):
            partition.supply(copies)
        else:
            partition.supply(Supply(originals[0], copies[0], originals[1], copies[1]))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one partition needs of one log."""

    place: TopicPartition
    log: LogRange
    wanted: Wanted
    times: tuple[int, ...]


def _read(reader: LogReader, asked: Sequence[_Asked]) -> list[tuple[tuple[LogSlice, ...], dict[int, int]] | Unreadable]:
    """Return what was read of each log, and first offsets by timestamp: the pinned end where there is none below it."""
    read = reader.read({a.place: a.wanted for a in asked if a.wanted.ranges})
    first = reader.first_offsets(
        {a.place: a.times for a in asked if a.times and not isinstance(read.get(a.place), Unreadable)}
    )
    answers: list[tuple[tuple[LogSlice, ...], dict[int, int]] | Unreadable] = []
    for each in asked:
        slices, offsets, end = read.get(each.place, ()), first.get(each.place, {}), each.log.end
        if isinstance(slices, Unreadable):
            answers.append(slices)
        elif isinstance(offsets, Unreadable):
            answers.append(offsets)
        else:
            answers.append((slices, {t: end if at is None else min(at, end) for t, at in offsets.items()}))
    return answers

"""Logs in memory behind the port `LogReader`: hand-written, and a value that travels to Spark's tasks."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from migrate.errors import ClusterError
from migrate.match.equality import Content
from migrate.match.log_reader import Wanted
from migrate.match.protocol import LogSlice, Unreadable, key_mark
from migrate.model import LogRange, TopicPartition
from tests.prints import fingerprint

Log = Mapping[int, Content]


def record(number: int, time: int | None = None, headers: tuple[tuple[str, bytes | None], ...] = ()) -> Content:
    """A record that is equal to another only if their numbers are."""
    return Content(1_000 + number if time is None else time, f"k{number % 7}".encode(), f"v{number}".encode(), headers)


def log_range(log: Log, start: int = 0) -> LogRange:
    return LogRange(start, max(log, default=start - 1) + 1)


@dataclass(frozen=True)
class MemoryReader:
    """One cluster's logs by partition and offset. `unreadable` have a code; reading a `forbidden` topic is an error.

    `fetched_bytes` counts ten for each record that it has given.
    """

    logs: Mapping[TopicPartition, Log]
    unreadable: Mapping[TopicPartition, str] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()
    fetched_bytes: int = 0

    def read(self, wanted: Mapping[TopicPartition, Wanted]) -> dict[TopicPartition, tuple[LogSlice, ...] | Unreadable]:
        return {place: self._unreadable(place) or self._slices(place, asked) for place, asked in wanted.items()}

    def contents(
        self, wanted: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, Content] | Unreadable]:
        return {place: self._unreadable(place) or self._contents(place, asked) for place, asked in wanted.items()}

    def _unreadable(self, place: TopicPartition) -> Unreadable | None:
        return Unreadable(self.unreadable[place]) if place in self.unreadable else None

    def _slices(self, place: TopicPartition, asked: Wanted) -> tuple[LogSlice, ...]:
        if place.topic in self.forbidden:
            raise ClusterError(f"{place.topic} was read.", "Do not.")
        slices = []
        for piece in asked.ranges:
            inside = sorted((o, c) for o, c in self.logs[place].items() if piece.start <= o < piece.end)
            columns = (
                [offset for offset, _ in inside],
                [content.timestamp for _, content in inside],
                [fingerprint(content, asked.equality) for _, content in inside],
                [key_mark(content.key, content.value) for _, content in inside] if asked.keys else [],
            )
            slices.append(LogSlice(piece.start, piece.end, piece.start, *columns))
            self._count(len(inside))
        return tuple(slices)

    def _contents(self, place: TopicPartition, offsets: Collection[int]) -> Mapping[int, Content]:
        there = {offset: self.logs[place][offset] for offset in offsets if offset in self.logs[place]}
        self._count(len(there))
        return there

    def _count(self, records: int) -> None:
        object.__setattr__(self, "fetched_bytes", self.fetched_bytes + 10 * records)

    def first_offsets(
        self, wanted: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, Mapping[int, int | None] | Unreadable]:
        return {
            place: {t: min((o for o, c in self.logs[place].items() if c.timestamp >= t), default=None) for t in times}
            for place, times in wanted.items()
        }

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class MemoryReaders:
    """What opens both readers in a task; `error` is raised instead."""

    source: MemoryReader
    target: MemoryReader
    error: Exception | None = None

    @contextmanager
    def __call__(self) -> Iterator[tuple[MemoryReader, MemoryReader]]:
        if self.error is not None:
            raise self.error
        yield self.source, self.target

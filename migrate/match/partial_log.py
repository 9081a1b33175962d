"""What is known of one log so far: the records read, the ranges they cover, and first offsets by timestamp. Pure.

Asking for what is not known raises `MissingRanges`, which says what to read: the laws are written as if all were known.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from migrate.match.protocol import LogSlice, Needs, OffsetRange, PartitionQuestion, Supply
from migrate.model import LogRange, Side


class MissingRanges(Exception):  # a question to the reader, not an error
    """Raised where the laws need what was not read yet: ranges of either log, first offsets by timestamp."""

    def __init__(
        self, ranges: Mapping[Side, Sequence[OffsetRange]] | None = None, times: Mapping[Side, int] | None = None
    ) -> None:
        super().__init__(ranges, times)
        self.ranges = ranges or {}
        self.times = times or {}


@contextmanager
def collected(missing: list[MissingRanges]) -> Iterator[None]:
    """Run a step; what it misses is added to `missing`."""
    try:
        yield
    except MissingRanges as more:
        missing.append(more)


class PartialLog:
    """The known part of one log.

    `offsets`, `times` and `prints` run in parallel over all records that were read, in log order; `keys` too, where
    they were asked for. An *index* is a position in these arrays.
    `start` rises above the pinned start where retention deleted records before they could be read. `width` is how
    many offsets were read, and `limit` how many may be. `first` are first offsets by timestamp, as they were read.
    """

    def __init__(self, side: Side, log: LogRange, limit: int) -> None:
        self.side = side
        self._limit = limit
        self.start = log.start
        self.end = log.end
        self.offsets = array("q")
        self.times = array("q")
        self.prints = array("q")
        self.keys = array("q")
        self.width = 0
        # What was read, as ranges in order that do not touch: thousands, where commits are many and far apart.
        self._read_starts: list[int] = []
        self._read_ends: list[int] = []
        self.first: dict[int, int] = {}

    def add(self, stretch: LogSlice) -> None:
        """Take in a stretch; it must not overlap what is known."""
        at = self.index(stretch.start)
        for column in ("offsets", "times", "prints", "keys"):
            getattr(self, column)[at:at] = array("q", getattr(stretch, column))
        self.width += stretch.end - stretch.start
        if stretch.readable_from > stretch.start:
            self.start = max(self.start, min(stretch.readable_from, self.end))
        self._cover(stretch.start, stretch.end)

    def _cover(self, start: int, end: int) -> None:
        starts, ends = self._read_starts, self._read_ends
        low, top = bisect_left(ends, start), bisect_right(starts, end)
        if low < top:
            start, end = min(start, starts[low]), max(end, ends[top - 1])
        starts[low:top], ends[low:top] = [start], [end]

    @property
    def has_unseen(self) -> bool:
        """True if there are, or were, offsets without a record that is seen: aborted, removed, or markers."""
        return self.start > 0 or self.width > len(self.offsets)

    def require(self, start: int, end: int) -> None:
        """Raise `MissingRanges` unless every record in [start, end) that is on the log is known."""
        if missing := self.uncovered(start, end):
            raise MissingRanges({self.side: missing})

    def uncovered(self, start: int, end: int) -> tuple[OffsetRange, ...]:
        """Return the parts of [start, end), as far as they lie on the log, that were not read."""
        start, end = max(start, self.start), min(end, self.end)
        starts, ends = self._read_starts, self._read_ends
        first = bisect_right(ends, start)
        if start >= end or (first < len(ends) and starts[first] <= start and end <= ends[first]):
            return ()
        gaps = []
        for at in range(first, len(starts)):
            if start >= end or starts[at] >= end:
                break
            if start < starts[at]:
                gaps.append(OffsetRange(start, starts[at]))
            start = ends[at]
        if start < end:
            gaps.append(OffsetRange(start, end))
        return tuple(gaps)

    def affords(self, start: int, end: int) -> bool:
        """True if [start, end) may be read within the limit."""
        return self.width + sum(gap.end - gap.start for gap in self.uncovered(start, end)) <= self._limit

    def first_at(self, time: int) -> int:
        """Return the first offset at which a record has this timestamp (ms) or a later one; else the log's end."""
        if time not in self.first:
            raise MissingRanges(times={self.side: time})
        return min(max(self.first[time], self.start), self.end)

    def index(self, offset: int) -> int:
        """Return the index of the first known record at or after an offset."""
        return bisect_left(self.offsets, offset)

    def at(self, offset: int) -> int | None:
        """Return the index of the record at exactly this offset; None if the log has none there."""
        self.require(offset, offset + 1)
        return self.known_at(offset)

    def known_at(self, offset: int) -> int | None:
        """Return the index of the record at an offset that was read; None if the log has none there."""
        index = bisect_left(self.offsets, offset)
        return index if index < len(self.offsets) and self.offsets[index] == offset else None

    def section(self, start: int, end: int) -> "Section":
        """Return the records in [start, end); raises `MissingRanges` unless all are known."""
        self.require(start, end)
        return self.known_section(start, end)

    def known_section(self, start: int, end: int) -> "Section":
        """Return the records in [start, end), all of which were read."""
        return Section(self, start, end, self.index(start), self.index(end))


class Section(NamedTuple):
    """The records of a log in the offsets [start, end), all of them known; [low, top) are their indexes."""

    log: PartialLog
    start: int
    end: int
    low: int
    top: int

    @property
    def prints(self) -> "array[int]":
        """The fingerprints."""
        return self.log.prints[self.low : self.top]

    @property
    def times(self) -> "array[int]":
        """The timestamps in ms."""
        return self.log.times[self.low : self.top]

    @property
    def has_gaps(self) -> bool:
        """True if there are fewer records than offsets."""
        return self.end - self.start > self.top - self.low


class LogPair:
    """What is known of a partition's log and of its copy's.

    `keeps_time` is True where equal records have equal timestamps, so that copies can be looked up by these.
    """

    def __init__(self, question: PartitionQuestion) -> None:
        self.question = question
        self.source = PartialLog(Side.SOURCE, question.source_log, question.match_limit)
        self.target = PartialLog(Side.TARGET, question.target_log, question.match_limit)
        self.keeps_time = question.equality.keeps_time

    def sections(self, source: OffsetRange, target: OffsetRange) -> tuple[Section, Section]:
        """Return a section of each; `MissingRanges` names what both lack, so that one round reads it."""
        on_source, on_target = self.source.uncovered(*source), self.target.uncovered(*target)
        if on_source or on_target:
            raise MissingRanges({Side.SOURCE: on_source, Side.TARGET: on_target})
        return self.source.known_section(*source), self.target.known_section(*target)

    def needs(self, missing: Sequence[MissingRanges]) -> Needs:
        """Return all that is missing as one request: sorted, merged, and without what is known."""

        def ranges(log: PartialLog) -> tuple[OffsetRange, ...]:
            pieces = merged(piece for each in missing for piece in each.ranges.get(log.side, ()))
            return tuple(gap for piece in pieces for gap in log.uncovered(piece.start, piece.end))

        def times(side: Side) -> tuple[int, ...]:
            return tuple(sorted({each.times[side] for each in missing if side in each.times}))

        return Needs(ranges(self.source), ranges(self.target), times(Side.SOURCE), times(Side.TARGET))

    def take_in(self, supply: Supply) -> None:
        """Add what was read to both logs."""
        for log, stretches, first in (
            (self.source, supply.source, supply.source_first),
            (self.target, supply.target, supply.target_first),
        ):
            for stretch in stretches:
                log.add(stretch)
            log.first.update(first or {})


def merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Return the same offsets as ranges in order, which do not touch."""
    found: list[OffsetRange] = []
    for piece in sorted(ranges, key=lambda r: r.start):
        if found and piece.start <= found[-1].end:
            found[-1] = OffsetRange(found[-1].start, max(found[-1].end, piece.end))
        else:
            found.append(piece)
    return found

"""What is known of one log so far: the records read, the ranges they cover, and first offsets by timestamp. Pure.

Asking for what is not known raises `Missing`, which says what to read: so the laws are written as if all were there.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrate.match.protocol import Needs, Range, Stretch, Supply
from migrate.model import LogRange, Side


class Missing(Exception):  # noqa: N818  (a question to the reader, not an error)
    """Raised where the laws need what was not read yet: ranges of either log, first offsets by timestamp."""

    def __init__(
        self, ranges: Mapping[Side, tuple[Range, ...]] | None = None, times: Mapping[Side, int] | None = None
    ) -> None:
        super().__init__(ranges, times)
        self.ranges = ranges or {}
        self.times = times or {}


class KnownLog:
    """The known part of one log.

    `offsets`, `times` and `prints` run in parallel over all records that were read, in log order; `keys` too, where
    they were asked for.
    `start` rises above the pinned start where retention deleted records before they could be read. `width` is how
    many offsets were read, and `limit` how many may be.
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
        self._covered: list[Range] = []
        self._first: dict[int, int] = {}

    def add(self, stretch: Stretch) -> None:
        """Take in a stretch; it must not overlap what is known."""
        at = bisect_left(self.offsets, stretch.start)
        for mine, theirs in (
            (self.offsets, stretch.offsets),
            (self.times, stretch.times),
            (self.prints, stretch.prints),
            (self.keys, stretch.keys),
        ):
            mine[at:at] = array("q", theirs)
        self.width += stretch.end - stretch.start
        if stretch.readable_from > stretch.start:
            self.start = max(self.start, min(stretch.readable_from, self.end))
        self._covered = _merged([*self._covered, Range(stretch.start, stretch.end)])

    def add_first(self, first: Mapping[int, int]) -> None:
        """Take in first offsets by timestamp."""
        self._first.update(first)

    @property
    def has_unseen(self) -> bool:
        """True if there are, or were, offsets without a record that is seen: aborted, removed, or markers."""
        return self.start > 0 or self.width > len(self.offsets)

    def require(self, start: int, end: int) -> None:
        """Raise `Missing` unless every record in [start, end) that is on the log is known."""
        missing = self.uncovered(start, end)
        if missing:
            raise Missing({self.side: missing})

    def uncovered(self, start: int, end: int) -> tuple[Range, ...]:
        """Return the parts of [start, end), as far as they lie on the log, that were not read."""
        start, end = max(start, self.start), min(end, self.end)
        gaps = []
        for known in self._covered:
            if known.end <= start:
                continue
            if known.start >= end:
                break
            if start < known.start:
                gaps.append(Range(start, known.start))
            start = known.end
        if start < end:
            gaps.append(Range(start, end))
        return tuple(gaps)

    def affords(self, start: int, end: int) -> bool:
        """True if [start, end) may be read within the limit."""
        return self.width + sum(gap.end - gap.start for gap in self.uncovered(start, end)) <= self._limit

    def first_at(self, time: int) -> int:
        """Return the first offset at which a record has this timestamp (ms) or a later one; else the log's end."""
        if time not in self._first:
            raise Missing(times={self.side: time})
        return min(max(self._first[time], self.start), self.end)

    def index(self, offset: int) -> int:
        """Return the place of the first known record at or after an offset."""
        return bisect_left(self.offsets, offset)

    def section(self, start: int, end: int) -> "Section":
        """Return the records in [start, end); raises `Missing` unless all are known."""
        self.require(start, end)
        return Section(self, start, end, self.index(start), self.index(end))

    def at(self, offset: int) -> int | None:
        """Return the place of the record at exactly this offset; None if the log has none there."""
        self.require(offset, offset + 1)
        place = self.index(offset)
        return place if place < len(self.offsets) and self.offsets[place] == offset else None


@dataclass(frozen=True, slots=True)
class Section:
    """The records of a log in the offsets [start, end), all of them known; their indexes in its arrays: [low, top)."""

    log: KnownLog
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


def require_both(source: KnownLog, source_range: Range, target: KnownLog, target_range: Range) -> None:
    """Raise `Missing` unless both ranges are known; it names what both lack, so that one round reads it."""
    missing = {
        log.side: log.uncovered(wanted.start, wanted.end)
        for log, wanted in ((source, source_range), (target, target_range))
    }
    if any(missing.values()):
        raise Missing(missing)


def needs_of(wants: Sequence[Missing], source: KnownLog, target: KnownLog) -> Needs:
    """Return all that is missing as one request: sorted, merged, and without what is known."""
    return Needs(
        source=_unknown(source, wants),
        target=_unknown(target, wants),
        source_times=_times(Side.SOURCE, wants),
        target_times=_times(Side.TARGET, wants),
    )


def take_in(supply: Supply, source: KnownLog, target: KnownLog) -> None:
    """Add what was read to both logs."""
    for stretch in supply.source:
        source.add(stretch)
    for stretch in supply.target:
        target.add(stretch)
    source.add_first(supply.source_first or {})
    target.add_first(supply.target_first or {})


def _unknown(log: KnownLog, wants: Iterable[Missing]) -> tuple[Range, ...]:
    wanted = (piece for want in wants for piece in want.ranges.get(log.side, ()))
    return tuple(gap for piece in _merged(wanted) for gap in log.uncovered(piece.start, piece.end))


def _times(side: Side, wants: Iterable[Missing]) -> tuple[int, ...]:
    return tuple(sorted({want.times[side] for want in wants if side in want.times}))


def _merged(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for piece in sorted(ranges, key=lambda r: r.start):
        if merged and piece.start <= merged[-1].end:
            merged[-1] = Range(merged[-1].start, max(merged[-1].end, piece.end))
        else:
            merged.append(piece)
    return merged

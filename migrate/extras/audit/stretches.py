"""How two logs are cut into stretches without looking for pairs of records, and what is kept of each stretch. Pure.

A record's stretch follows from what survives replication, so that an original and its copies lie in the same one,
wherever they stand in their logs: its timestamp, divided by a width, modulo a number; where timestamps do not survive,
its fingerprint, modulo that number. Of each stretch a side keeps a count and sums of fingerprints. They add up in any
order, so that they can be read in parts, in parallel, and long after one another.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from migrate.extras.audit.verdict import Category
from migrate.match.equality import Equality
from migrate.model import LogRange, Side

# So many records on average: fewer make more sums to hold, more make more records to compare where a sum differs.
STRETCH_RECORDS = 20_000
MOST_STRETCHES = 1_000
DEFAULT_WIDTH_MS = 60_000
Ranges = Mapping[int, LogRange]
"""Offsets of one topic, by partition."""


class Stretch(NamedTuple):
    """A stretch of a partition and its copy."""

    partition: int
    number: int


class Sums(NamedTuple):
    """What is kept of one side of a stretch: how many records, four sums of 32-bit words, and where they stand."""

    records: int
    words: tuple[int, ...]
    first_offset: int
    last_offset: int

    def plus(self, other: "Sums") -> "Sums":
        """Return the sums of both."""
        return Sums(
            self.records + other.records,
            tuple(map(sum, zip(self.words, other.words, strict=True))),
            min(self.first_offset, other.first_offset),
            max(self.last_offset, other.last_offset),
        )


@dataclass(frozen=True)
class Cut:
    """How a topic is cut: what two records must agree in to be the same, and how many stretches a partition has."""

    equality: Equality
    width_ms: int = DEFAULT_WIDTH_MS
    stretches: int = MOST_STRETCHES

    @classmethod
    def of(cls, equality: Equality, longest: int, times: Iterable[int]) -> "Cut":
        """Return how to cut a topic whose longest partition has so many records, with some of its timestamps (ms)."""
        some, stretches = list(times), max(1, min(MOST_STRETCHES, longest // STRETCH_RECORDS))
        span = max(some) - min(some) if some else 0
        # One fewer: a log that begins amid a stretch would end in the same one, which would be as long as the log.
        width_ms = span // max(1, stretches - 1) + 1
        return cls(equality, width_ms if span else DEFAULT_WIDTH_MS, stretches)


class Extras(NamedTuple):
    """What a stretch's target has beyond the records of its source, each of which has a copy: counted by category."""

    records: int
    words: tuple[int, ...]
    counts: Mapping[Category, int]


@dataclass
class TopicSums:
    """All that is kept of a topic: how it is cut, sums by side and stretch, and up to which offset each log was read.

    `extras` are those of stretches that were compared and lack nothing. Sums add up: while the target's are the
    source's and these, every later record has its copy too, and the stretch need not be read again.
    `source_id` and `target_id` are the topics' ids, "" where a cluster has none: a topic that was created anew has
    another.
    """

    topic: str
    target: str
    source_id: str
    target_id: str
    cut: Cut
    sums: dict[Side, dict[Stretch, Sums]] = field(default_factory=lambda: {side: {} for side in Side})
    read_to: dict[Side, dict[int, int]] = field(default_factory=lambda: {side: {} for side in Side})
    extras: dict[Stretch, Extras] = field(default_factory=dict)

    def add(self, side: Side, ranges: Ranges, found: Mapping[Stretch, Sums]) -> None:
        """Take the sums of some more offsets."""
        held = self.sums[side]
        for stretch, sums in found.items():
            held[stretch] = held[stretch].plus(sums) if stretch in held else sums
        self.read_to[side] |= {partition: log.end for partition, log in ranges.items()}

    def unread(self, side: Side, pinned: Ranges) -> dict[int, LogRange]:
        """Return what has not been read of the logs as they were pinned."""
        starts = {p: max(log.start, self.read_to[side].get(p, log.start)) for p, log in pinned.items()}
        return {p: LogRange(start, pinned[p].end) for p, start in starts.items() if start < pinned[p].end}

    def contradicts(self, side: Side, pinned: Ranges) -> bool:
        """True if a log ends below what was read of it: it was truncated, or is another one."""
        return any(pinned[p].end < end for p, end in self.read_to[side].items() if p in pinned)

    def settle(self, stretch: Stretch, counts: Mapping[Category, int]) -> None:
        """Take it that all that the target has of a stretch beyond the source is what was counted."""
        self.extras[stretch] = Extras(*self._beyond(stretch), counts)

    def differing(self) -> set[Stretch]:
        """Return the stretches whose two sides have not the same records, known extras of the target apart."""
        every = self.sums[Side.SOURCE].keys() | self.sums[Side.TARGET].keys()
        return {each for each in every if self._beyond(each) != self.extras.get(each, NO_EXTRAS)[:2]}

    def is_on_both_sides(self, stretch: Stretch) -> bool:
        """True if both sides have records of a stretch."""
        return all(stretch in self.sums[side] for side in Side)

    def _beyond(self, stretch: Stretch) -> tuple[int, tuple[int, ...]]:
        """Return what the target's sums have that the source's have not: a count, and words."""
        source, target = (self.sums[side].get(stretch, NO_SUMS) for side in Side)
        words = zip(target.words, source.words, strict=True)
        return target.records - source.records, tuple(there - here for there, here in words)

    def counts(self, stretch: Stretch) -> tuple[int, int]:
        """Return how many records of a stretch were read on the source, and on the target."""
        source, target = (self.sums[side].get(stretch, NO_SUMS).records for side in Side)
        return source, target

    def first_offsets(self, side: Side) -> dict[int, int]:
        """Return the least offset of what was read of one side, by partition."""
        first: dict[int, int] = {}
        for each, sums in self.sums[side].items():
            first[each.partition] = min(sums.first_offset, first.get(each.partition, sums.first_offset))
        return first

    def records(self, side: Side, stretches: Iterable[Stretch]) -> dict[int, int]:
        """Return how many records were read of these stretches, by partition."""
        counts: dict[int, int] = {}
        for each in stretches:
            if each in self.sums[side]:
                counts[each.partition] = counts.get(each.partition, 0) + self.sums[side][each].records
        return counts


NO_SUMS = Sums(0, (0, 0, 0, 0), 0, 0)
NO_EXTRAS = Extras(0, NO_SUMS.words, {})


def offsets_of(ranges: Ranges) -> int:
    """Return how many offsets these are."""
    return sum(log.end - log.start for log in ranges.values())


def steps(ranges: Ranges, most: int) -> Iterator[dict[int, LogRange]]:
    """Yield what to read at once: of all partitions together at most so many offsets."""
    step: dict[int, LogRange] = {}
    room = most
    for partition, log in sorted(ranges.items()):
        start = log.start
        while start < log.end:
            end = min(log.end, start + room)
            step[partition] = LogRange(start, end)
            room -= end - start
            start = end
            if not room:
                yield step
                step, room = {}, most
    if step:
        yield step


def pieces(ranges: Iterable[tuple[int, LogRange]], most: int) -> list[dict[int, LogRange]]:
    """Return what covers these ranges of partitions: at most so many readings, each with one range a partition.

    Ranges that overlap are read once; where a partition has too many, those with the least between them are joined.
    """
    by_partition: dict[int, list[LogRange]] = {}
    for partition, log in sorted(ranges, key=lambda each: (each[0], each[1].start)):
        joined = by_partition.setdefault(partition, [])
        if joined and log.start <= joined[-1].end:
            joined[-1] = LogRange(joined[-1].start, max(joined[-1].end, log.end))
        else:
            joined.append(log)
    readings: list[dict[int, LogRange]] = [{} for _ in range(most)]
    for partition, logs in by_partition.items():
        while len(logs) > most:
            at = min(range(1, len(logs)), key=lambda i: logs[i].start - logs[i - 1].end)
            logs[at - 1 : at + 1] = [LogRange(logs[at - 1].start, logs[at].end)]
        for reading, log in zip(readings, logs, strict=False):
            reading[partition] = log
    return [reading for reading in readings if reading]

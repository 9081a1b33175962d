"""Counts the records between a target commit and its translation: offsets may be markers, or hold nothing any more.

Reads through a port, up to ends that were pinned before. What would take too much is left uncounted: then a difference
counts offsets, which is never too few.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from migrate.inventory.compared import Stretch
from migrate.match.equality import Equality
from migrate.match.log_reader import LogReader, Wanted
from migrate.match.protocol import Limits, LogSlice, OffsetRange
from migrate.model import TopicPartition

# Offsets that are read in all: this process holds some 30 bytes of each.
MOST_OFFSETS = 2_000_000
# Bytes of a record, where none was read that would tell.
UNKNOWN_SIZE = 1000.0


@dataclass(frozen=True)
class CountPlan:
    """What is to be read to count stretches: disjoint ranges by partition, and about how many bytes they are."""

    ranges: Mapping[TopicPartition, tuple[OffsetRange, ...]]
    bytes: int

    @property
    def offsets(self) -> int:
        """How many offsets are read."""
        return sum(piece.end - piece.start for pieces in self.ranges.values() for piece in pieces)


def count_plan(stretches: Collection[Stretch], limits: Limits, bytes_read: int, records_read: int) -> CountPlan:
    """Return what to read: partitions with little to read come first, and what the limits do not afford is left out.

    What comparing has read of the target counts towards the limit, and says how large a record is.
    """
    budget, spent = MOST_OFFSETS, 0.0
    bytes_per_record = bytes_read / records_read if records_read else UNKNOWN_SIZE
    ranges: dict[TopicPartition, tuple[OffsetRange, ...]] = {}
    joined = {p: _joined(pieces) for p, pieces in _by_partition(stretches).items()}
    for partition, pieces in sorted(joined.items(), key=lambda item: (_width(item[1]), item[0])):
        width = _width(pieces)
        cost = width * bytes_per_record
        affordable = limits.fetch_bytes is None or bytes_read + spent + cost <= limits.fetch_bytes
        if width <= min(budget, limits.match_records) and affordable:
            ranges[partition], budget, spent = pieces, budget - width, spent + cost
    return CountPlan(ranges, round(spent))


def count_records(reader: LogReader, plan: CountPlan, stretches: Collection[Stretch]) -> dict[Stretch, int]:
    """Return how many records each stretch holds that was read in full; raises `ClusterError` as the reader does.

    A stretch that cannot be read, or whose beginning retention has removed, is not in the answer.
    """
    wanted = {partition: Wanted(ranges, Equality.KEY_AND_VALUE) for partition, ranges in plan.ranges.items()}
    read = {p: slices for p, slices in reader.read(wanted).items() if isinstance(slices, tuple)} if wanted else {}
    counts = {}
    for stretch in set(stretches):
        for piece in read.get(stretch.partition, ()):
            if _holds(piece, stretch):
                counts[stretch] = bisect_left(piece.offsets, stretch.end) - bisect_left(piece.offsets, stretch.start)
    return counts


def _holds(piece: LogSlice, stretch: Stretch) -> bool:
    # What retention has removed meanwhile was there when the commit was looked at, and would be counted as nothing.
    return max(piece.start, piece.readable_from) <= stretch.start and stretch.end <= piece.end


def _by_partition(stretches: Collection[Stretch]) -> dict[TopicPartition, list[OffsetRange]]:
    by_partition: dict[TopicPartition, list[OffsetRange]] = {}
    for partition, start, end in sorted(set(stretches)):
        by_partition.setdefault(partition, []).append(OffsetRange(start, end))
    return by_partition


def _joined(pieces: Collection[OffsetRange]) -> tuple[OffsetRange, ...]:
    joined: list[OffsetRange] = []
    for piece in pieces:
        if joined and piece.start <= joined[-1].end:
            joined[-1] = OffsetRange(joined[-1].start, max(joined[-1].end, piece.end))
        else:
            joined.append(piece)
    return tuple(joined)


def _width(pieces: Collection[OffsetRange]) -> int:
    return sum(piece.end - piece.start for piece in pieces)

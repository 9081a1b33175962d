"""What comparing needs of one cluster's logs: a port, and the straight runs into which a reader cuts its way. Pure.

`migrate.kafka.record_reader` is the adapter.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from migrate.match.equality import Content, Equality
from migrate.match.protocol import LogSlice, OffsetRange, Unreadable
from migrate.model import TopicPartition

# How much is fetched at once of a short run, in bytes; a broker sends as much, also beyond the run's end.
SHORT_FETCH = 64 << 10
# Offsets between two ranges that are read through instead of sought over: a run of its own brings a fetch at least.
GAP = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read of one partition: ranges, disjoint and sorted, fingerprinted by `equality`; `keys` too if asked."""

    ranges: tuple[OffsetRange, ...]
    equality: Equality
    keys: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch that is read without seeking, and the places in `Wanted.ranges` of those that it covers."""

    start: int
    end: int
    first: int
    last: int


class LogReader(Protocol):
    """Reads one cluster's logs, read_committed, up to ends that were pinned before.

    What one partition does not let read is an `Unreadable` in its place, with Kafka's name of the error; a cluster
    that does not answer raises `ClusterError`.
    """

    def read(
        self, requests: Mapping[TopicPartition, Wanted]
    ) -> Mapping[TopicPartition, tuple[LogSlice, ...] | Unreadable]:
        """Return one stretch per range, in the order of the ranges."""

    def contents(
        self, offsets: Mapping[TopicPartition, Collection[int]]
    ) -> Mapping[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return the records at single offsets; offsets without a record are left out."""

    def first_offsets(
        self, times: Mapping[TopicPartition, Collection[int]]
    ) -> Mapping[TopicPartition, Mapping[int, int | None] | Unreadable]:
        """Return for each timestamp (ms) the first offset with that timestamp or a later one, None where none has.

        Where a cluster does not find what is there, it is an offset below, such as the log's start.
        """

    @property
    def fetched_bytes(self) -> int:
        """How many bytes came from the cluster so far, as far as the client tells."""

    def close(self) -> None:
        """Leave the cluster."""


def runs_of(ranges: Sequence[OffsetRange], gap: int) -> list[Run]:
    """Join ranges between which at most `gap` offsets lie: reading them costs less than seeking over them."""
    runs: list[Run] = []
    for place, piece in enumerate(ranges):
        if piece.start >= piece.end:
            continue
        if runs and piece.start - runs[-1].end <= gap:
            runs[-1] = Run(runs[-1].start, piece.end, runs[-1].first, place)
        else:
            runs.append(Run(piece.start, piece.end, place, place))
    return runs

"""The newest checkpoints of a topic as columns: a million of them take little memory. Pure.

One table for each group and topic; a checkpoint is made when it is asked for.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import attrgetter
from typing import NamedTuple

from migrate.match.protocol import OffsetPair
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import TopicPartition


class WrittenCheckpoints(NamedTuple):
    """What was written about one group and topic: parallel columns, in any order.

    A partition may come more than once: what is at the greatest position counts. `is_tombstone` takes those before it
    away. `metadata` is empty where no checkpoint has any.
    """

    group: str
    target_topic: str
    partitions: Sequence[int]
    positions: Sequence[int]
    is_tombstone: Sequence[int]
    source_offsets: Sequence[int]
    target_offsets: Sequence[int]
    timestamps: Sequence[int]
    metadata: Sequence[str] = ()


class _Columns(NamedTuple):
    at: Mapping[int, int]
    source_offsets: "array[int]"
    target_offsets: "array[int]"
    positions: "array[int]"
    timestamps: "array[int]"
    metadata: tuple[str, ...]


class CheckpointTable(Mapping[CheckpointKey, CheckpointRecord]):
    """The newest checkpoint of each key."""

    def __init__(self, written: Iterable[WrittenCheckpoints]) -> None:
        self._topics = {(each.group, each.target_topic): _columns(each) for each in written}
        self._count = sum(len(columns.at) for columns in self._topics.values())

    def topics(self) -> set[tuple[str, str]]:
        """Return each group with each topic (the target's name) that it has a checkpoint on."""
        return {place for place, columns in self._topics.items() if columns.at}

    def timestamps(self) -> Iterator[int]:
        """Yield the timestamp of each checkpoint, in ms."""
        return chain.from_iterable(columns.timestamps for columns in self._topics.values())

    def __getitem__(self, key: CheckpointKey) -> CheckpointRecord:
        columns = self._topics[key[:2]]
        at = columns.at[key[2]]
        metadata = columns.metadata[at] if columns.metadata else ""
        return CheckpointRecord(
            columns.source_offsets[at],
            columns.target_offsets[at],
            metadata,
            columns.positions[at],
            columns.timestamps[at],
        )

    def offsets_at(self, group: str, copies: Iterable[TopicPartition]) -> list[OffsetPair | None]:
        """Return the source and the target offset of a group's checkpoint on each partition; None where it has none."""
        return [pair for topic, run in groupby(copies, attrgetter("topic")) for pair in self._pairs(group, topic, run)]

    def _pairs(self, group: str, topic: str, copies: Iterable[TopicPartition]) -> Iterable[OffsetPair | None]:
        columns = self._topics.get((group, topic))
        if columns is None:
            return (None for _ in copies)
        found = (columns.at.get(copy.partition) for copy in copies)
        return (None if at is None else (columns.source_offsets[at], columns.target_offsets[at]) for at in found)

    def __iter__(self) -> Iterator[CheckpointKey]:
        return (CheckpointKey(*place, partition) for place, columns in self._topics.items() for partition in columns.at)

    def __len__(self) -> int:
        return self._count


def topics_with_checkpoints(latest: Mapping[CheckpointKey, CheckpointRecord]) -> set[tuple[str, str]]:
    """Return each group with each topic (the target's name) that it has a checkpoint on."""
    if isinstance(latest, CheckpointTable):
        return latest.topics()
    return {(key.group, key.target_topic) for key in latest}


def checkpoints_at(
    latest: Mapping[CheckpointKey, CheckpointRecord], group: str, copies: Sequence[TopicPartition]
) -> list[OffsetPair | None]:
    """Return the source and the target offset of a group's checkpoint on each partition; None where it has none."""
    if isinstance(latest, CheckpointTable):
        return latest.offsets_at(group, copies)
    found = [latest.get(CheckpointKey(group, *copy)) for copy in copies]
    return [each and (each.source_offset, each.target_offset) for each in found]


def newest_ms(latest: Mapping[CheckpointKey, CheckpointRecord]) -> int | None:
    """Return the greatest timestamp of a checkpoint, in ms; None where there is no checkpoint."""
    records = (record.timestamp for record in latest.values())
    return max(latest.timestamps() if isinstance(latest, CheckpointTable) else records, default=None)


@lru_cache(maxsize=4096)
def _places(partitions: tuple[int, ...]) -> Mapping[int, int]:
    """Return the place of each partition; the groups of one application share it."""
    return {partition: place for place, partition in enumerate(partitions)}


def _columns(written: WrittenCheckpoints) -> _Columns:
    newest: dict[int, int] = {}
    for place in sorted(range(len(written.positions)), key=written.positions.__getitem__):
        newest[written.partitions[place]] = place
    kept = {partition: place for partition, place in sorted(newest.items()) if not written.is_tombstone[place]}
    numbers = (written.source_offsets, written.target_offsets, written.positions, written.timestamps)
    sources, targets, positions, times = (array("q", [each[place] for place in kept.values()]) for each in numbers)
    metadata = tuple(written.metadata[place] for place in kept.values()) if any(written.metadata) else ()
    return _Columns(_places(tuple(kept)), sources, targets, positions, times, metadata)

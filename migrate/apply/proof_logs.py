"""The logs that a proof by records looks at: what is at a place, up to the ends that the plan pinned."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate.match.next_record import NextRecord, NextRecordReader, Position
from migrate.model import Failure, LogRange, TopicPartition
from migrate.ports import Progress
from migrate.survey.cluster import ClusterAdmin
from migrate.text import many

Place = tuple[TopicPartition, int]
_NO_RANGE = Failure("NO_ANSWER", "the cluster did not tell this log's range")


@dataclass(frozen=True, slots=True)
class Next:
    """One side of a row: the offset looked from, the log's range now, and the record there; None at the end."""

    offset: int
    log_start: int
    log_end: int
    record: NextRecord | None


@dataclass(frozen=True, slots=True)
class LogSide:
    """One cluster to look at: its admin, for log ranges, and the reader of its records."""

    admin: ClusterAdmin
    reader: NextRecordReader


class PinnedLogs:
    """One side's logs, up to the ends that the plan pinned (`pinned`; None for no end)."""

    def __init__(self, side: LogSide, pinned: Mapping[TopicPartition, int | None], progress: Progress) -> None:
        self._side = side
        self._pinned = pinned
        self._progress = progress
        self._ranges = side.admin.log_ranges(list(pinned)) if pinned else {}

    def next(self, places: Collection[Place], pinned: bool = True) -> Mapping[Place, Next | Failure]:
        """Return what is at each place; beyond the ends that the plan pinned only where `pinned` is False."""
        ranges = {partition: log for partition, log in self._ranges.items() if isinstance(log, LogRange)}
        return {
            (partition, offset): records
            if isinstance(records, Failure)
            else Next(offset, ranges[partition].start, ranges[partition].end, records[0] if records else None)
            for (partition, offset), records in self.read(dict.fromkeys(places, 1), pinned).items()
        }

    def read(self, depths: Mapping[Place, int], pinned: bool = True) -> Mapping[Place, Sequence[NextRecord] | Failure]:
        """Return up to so many records from each place on."""
        records: dict[Place, Sequence[NextRecord] | Failure] = {}
        positions: dict[Place, Position] = {}
        for place, most in depths.items():
            partition, offset = place
            log = self._ranges.get(partition, _NO_RANGE)
            if isinstance(log, Failure):
                records[place] = log
                continue
            planned_end = self._pinned[partition] if pinned else None
            end = log.end if planned_end is None else min(planned_end, log.end)
            if offset < end:
                positions[place] = Position(partition, max(offset, log.start), end, most)
            else:
                records[place] = ()
        if positions:
            side, alias = self._side.admin.side, self._side.admin.alias
            self._progress.step(f"reading the next records at {many(len(positions), 'place')} on {side} {alias}")
            answers = self._side.reader.next_records(set(positions.values()))
            nothing = Failure("NO_ANSWER", "the place is missing from the answer")
            records |= {place: answers.get(position, nothing) for place, position in positions.items()}
        return records

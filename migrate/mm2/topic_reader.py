"""MM2's topics as records that are held and decoded here: small ones of a plan, and all that `status` looks at.

Pure: it reads through a port. Behind `migrate.mm2.topics.MirrorReader`. Each topic is read
once, and from then on only what is new. Of a topic that is longer than `MOST_RECORDS` only its end is read: a chain cut
off at its lower end is a chain still (Law 1 looks at later syncs only), and MM2 writes its news at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import Protocol

from migrate.errors import ClusterError
from migrate.match.equality import Content
from migrate.match.protocol import OffsetPair, OffsetRange, Unreadable
from migrate.mm2.chain import chain, window
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord, SyncReading, WindowQuestion
from migrate.mm2.wire import (
    Reason,
    RecordKind,
    SyncRecord,
    WireCheckpoint,
    decode_checkpoint_key,
    read_as,
)
from migrate.model import LogRange, OffsetSync, Side, TopicPartition

MOST_RECORDS = 500_000
# Whole records are held so many at a time.
CHUNK = 50_000
Decoded = WireCheckpoint | SyncRecord | Reason
Take = Callable[[int, Content, Decoded], None]


class TopicScanner(Protocol):
    """Reads whole records of small topics of one cluster, read_committed."""

    def scan(
        self, ranges: Mapping[TopicPartition, OffsetRange]
    ) -> Mapping[TopicPartition, Mapping[int, Content] | Unreadable]:
        """Return every record of one range of each partition, by offset in log order."""


@dataclass(frozen=True, slots=True)
class News:
    """The newest record of one of MM2's topics: its timestamp in ms, None while none was read.

    `left_out` counts the offsets at the topic's beginning that were not read.
    """

    newest_ms: int | None = None
    left_out: int = 0


@dataclass
class _Progress:
    """How far one partition of a topic was read."""

    end: int
    newest_ms: int | None = None
    left_out: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class ConsumedMm2Topics:
    """MM2's topics, read through scanners; `source` is None while the source is down. Keeps what it has read.

    Threads may read different topics at once. Of one topic they take turns: a look that failed may have left a reading
    of the checkpoints behind, and both would count the same records.
    """

    def __init__(self, flow: Flow, source: TopicScanner | None, target: TopicScanner) -> None:
        self._flow = flow
        self._scanners = {Side.SOURCE: source, Side.TARGET: target}
        self._progress: dict[tuple[Side, TopicPartition], _Progress] = {}
        self._checkpoints: dict[CheckpointKey, CheckpointRecord] = {}
        self._syncs: dict[tuple[str, int], list[OffsetSync]] = defaultdict(list)
        # By topic: those of two workers may have the same keys.
        self._positions: defaultdict[str, dict[bytes | None, bytes | None]] = defaultdict(dict)
        self._turns = {kind: Lock() for kind in RecordKind}

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic."""

        def take(offset: int, content: Content, decoded: Decoded) -> None:
            if isinstance(decoded, WireCheckpoint):
                key = CheckpointKey(decoded.group, decoded.target_topic, decoded.partition)
                self._checkpoints[key] = CheckpointRecord(
                    decoded.source_offset, decoded.target_offset, decoded.metadata, offset, content.timestamp
                )
            elif decoded is Reason.TOMBSTONE and not isinstance(about := decode_checkpoint_key(content.key), Reason):
                self._checkpoints.pop(CheckpointKey(*about), None)

        place = TopicPartition(topic, 0)
        with self._turns[RecordKind.CHECKPOINT]:
            read = self._read(Side.TARGET, place, pinned, RecordKind.CHECKPOINT, take, self._checkpoints.clear)
            return CheckpointReading(dict(self._checkpoints), dict(read.counts))

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic and find each question's window."""

        def take(offset: int, content: Content, decoded: Decoded) -> None:
            if isinstance(decoded, SyncRecord):
                pair = self._flow.turned(decoded.source_offset, decoded.target_offset)
                self._syncs[decoded.source_topic, decoded.partition].append(OffsetSync(offset, *pair))

        place = TopicPartition(topic, 0)
        with self._turns[RecordKind.OFFSET_SYNC]:
            read = self._read(side, place, pinned, RecordKind.OFFSET_SYNC, take, self._syncs.clear)

        @cache
        def chain_of(topic: str, partition: int, source_end: int | None, target_end: int) -> tuple[OffsetSync, ...]:
            syncs = self._syncs.get((topic, partition), [])
            beyond = 1 + max((s.source_offset for s in syncs), default=0)
            return chain(syncs, beyond if source_end is None else source_end, target_end)

        windows = {
            q: window(chain_of(q.source_topic, q.partition, q.source_end, q.target_end), q.source_committed)
            for q in questions
        }
        return SyncReading(windows, dict(read.counts))

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        """Read MM2's own positions from the Connect offsets topic."""

        def take(offset: int, content: Content, decoded: Decoded) -> None:
            self._positions[topic][content.key] = content.value

        with self._turns[RecordKind.CONNECT_OFFSETS]:
            return self._newest_positions(topic, pinned, take)

    def _newest_positions(self, topic: str, pinned: Mapping[int, LogRange], take: Take) -> Mapping[TopicPartition, int]:
        places = {partition: (Side.TARGET, TopicPartition(topic, partition)) for partition in pinned}
        if any(p in self._progress and self._progress[p].end > pinned[k].end for k, p in places.items()):
            # The topic began anew: what was read of its other partitions is of the old one, too.
            self._positions[topic].clear()
            for place in places.values():
                self._progress.pop(place, None)
        logs = {TopicPartition(topic, partition): log for partition, log in pinned.items()}
        self._read_all(Side.TARGET, logs, RecordKind.CONNECT_OFFSETS, take, lambda: None)
        connectors = self._flow.runtime.source_connectors
        return positions_of(self._positions[topic].items(), self._flow.mm2_source_alias, connectors)

    def news(self, side: Side, topic: str) -> News:
        """Return how new the newest record is of a topic that was read."""
        read = self._progress.get((side, TopicPartition(topic, 0)))
        return News() if read is None else News(read.newest_ms, read.left_out)

    def sync_pairs(self, place: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """Return the chain of one partition (Law 1), by its name on MM2's source, as far as its syncs were read."""
        syncs = self._syncs.get((place.topic, place.partition), [])
        return tuple((s.source_offset, s.target_offset) for s in chain(syncs, source_end, target_end))

    def _read(
        self,
        side: Side,
        place: TopicPartition,
        pinned: LogRange,
        expected: RecordKind,
        take: Take,
        forget: Callable[[], None],
    ) -> _Progress:
        self._read_all(side, {place: pinned}, expected, take, forget)
        return self._progress[side, place]

    def _read_all(
        self,
        side: Side,
        logs: Mapping[TopicPartition, LogRange],
        expected: RecordKind,
        take: Take,
        forget: Callable[[], None],
    ) -> None:
        """Read what is new of partitions up to their pinned ends; all anew where a log has been cut or re-created."""
        for place, pinned in logs.items():
            progress = self._progress.get((side, place))
            if progress is None or progress.end > pinned.end:
                first = max(pinned.start, pinned.end - MOST_RECORDS)
                self._progress[side, place] = _Progress(first, left_out=first - pinned.start)
                forget()
        ends = {place: (self._progress[side, place], pinned) for place, pinned in logs.items()}
        while pieces := _pieces(ends):
            for place, records in self._scan(side, pieces).items():
                progress = ends[place][0]
                for offset, content in records.items():
                    decoded, label = read_as(expected, content.key, content.value)
                    progress.counts[label] += 1
                    if content.value is not None:
                        progress.newest_ms = max(progress.newest_ms or 0, content.timestamp)
                    take(offset, content, decoded)
                progress.end = pieces[place].end

    def _scan(
        self, side: Side, pieces: Mapping[TopicPartition, OffsetRange]
    ) -> Mapping[TopicPartition, Mapping[int, Content]]:
        scanner = self._scanners[side]
        assert scanner is not None, "a cluster that is down is not asked"
        found: dict[TopicPartition, Mapping[int, Content]] = {}
        for place, read in scanner.scan(pieces).items():
            if isinstance(read, Unreadable):
                cluster = self._flow.source if side is Side.SOURCE else self._flow.target
                raise ClusterError(
                    f"{cluster.alias} does not let us read MM2's topic {place.topic} ({read.reason}).",
                    "Grant READ on that topic, or try again.",
                )
            found[place] = read
        return found


def _pieces(logs: Mapping[TopicPartition, tuple[_Progress, LogRange]]) -> dict[TopicPartition, OffsetRange]:
    """Return what to read next of each partition that is not read to its end: one chunk for all together."""
    starts = {place: max(progress.end, pinned.start) for place, (progress, pinned) in logs.items()}
    left = {place: (start, end) for place, start in starts.items() if start < (end := logs[place][1].end)}
    share = max(1, CHUNK // max(1, len(left)))
    return {place: OffsetRange(start, min(start + share, end)) for place, (start, end) in left.items()}

"""MM2's topics read by plain consumers, without Spark: enough to say how far MM2 is, and again every few seconds.

Pure: it reads through a port. Behind `migrate.mm2.topics.MirrorReader`. Each topic is read once, and from then on only
what is new. Of a topic that is longer than `MOST_RECORDS` only its end is read: a chain cut off at its lower end is a
chain still (Law 1 looks at later syncs only), and MM2 writes its news at the end.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from migrate.errors import ClusterError
from migrate.match.equality import Content
from migrate.match.protocol import OffsetPair, OffsetRange, Unreadable
from migrate.mm2.chain import chain, window
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.flow import Flow
from migrate.mm2.topics import CheckpointKey, CheckpointReading, CheckpointRecord, SyncReading, WindowQuestion
from migrate.mm2.wire import RecordKind, SyncRecord, WireCheckpoint, decode_checkpoint, decode_sync, label
from migrate.model import LogRange, OffsetSync, Side, TopicPartition

MOST_RECORDS = 500_000
# Whole records are held so many at a time.
CHUNK = 50_000


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
    """MM2's topics, read through scanners; `source` is None while the source is down. Keeps what it has read."""

    def __init__(self, flow: Flow, source: TopicScanner | None, target: TopicScanner) -> None:
        self._flow = flow
        self._scanners = {Side.SOURCE: source, Side.TARGET: target}
        self._progress: dict[tuple[Side, TopicPartition], _Progress] = {}
        self._checkpoints: dict[CheckpointKey, CheckpointRecord] = {}
        self._syncs: dict[tuple[str, int], list[OffsetSync]] = defaultdict(list)
        self._positions: dict[bytes | None, bytes | None] = {}

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic."""

        def take(offset: int, content: Content) -> None:
            decoded = decode_checkpoint(content.key, content.value)
            if isinstance(decoded, WireCheckpoint):
                key = CheckpointKey(decoded.group, decoded.target_topic, decoded.partition)
                self._checkpoints[key] = CheckpointRecord(
                    decoded.source_offset, decoded.target_offset, decoded.metadata, offset, content.timestamp
                )

        place = TopicPartition(topic, 0)
        read = self._read(Side.TARGET, place, pinned, RecordKind.CHECKPOINT, take, self._checkpoints.clear)
        return CheckpointReading(dict(self._checkpoints), dict(read.counts))

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic and find each question's window."""

        def take(offset: int, content: Content) -> None:
            decoded = decode_sync(content.key, content.value)
            if isinstance(decoded, SyncRecord):
                sync = OffsetSync(offset, decoded.source_offset, decoded.target_offset)
                self._syncs[decoded.source_topic, decoded.partition].append(sync)

        read = self._read(side, TopicPartition(topic, 0), pinned, RecordKind.OFFSET_SYNC, take, self._syncs.clear)

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

        def take(offset: int, content: Content) -> None:
            self._positions[content.key] = content.value

        places = {partition: (Side.TARGET, TopicPartition(topic, partition)) for partition in pinned}
        if any(p in self._progress and self._progress[p].end > pinned[k].end for k, p in places.items()):
            # The topic began anew: what was read of its other partitions is of the old one, too.
            self._positions.clear()
            for place in places.values():
                self._progress.pop(place, None)
        for partition, log in pinned.items():
            self._read(Side.TARGET, TopicPartition(topic, partition), log, RecordKind.CHECKPOINT, take, lambda: None)
        return positions_of(self._positions.items(), self._flow.source.alias)

    def news(self, side: Side, topic: str) -> News:
        """Return how new the newest record is of a topic that was read."""
        read = self._progress.get((side, TopicPartition(topic, 0)))
        return News() if read is None else News(read.newest_ms, read.left_out)

    def sync_pairs(self, source: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """Return the chain of one partition (Law 1), as far as its syncs were read."""
        syncs = self._syncs.get((source.topic, source.partition), [])
        return tuple((s.source_offset, s.target_offset) for s in chain(syncs, source_end, target_end))

    def _read(
        self,
        side: Side,
        place: TopicPartition,
        pinned: LogRange,
        expected: RecordKind,
        take: Callable[[int, Content], None],
        forget: Callable[[], None],
    ) -> _Progress:
        """Read what is new of a partition up to its pinned end; all anew where the log has been cut or re-created."""
        progress = self._progress.get((side, place))
        if progress is None or progress.end > pinned.end:
            first = max(pinned.start, pinned.end - MOST_RECORDS)
            self._progress[side, place] = progress = _Progress(first, left_out=first - pinned.start)
            forget()
        for start in range(max(progress.end, pinned.start), pinned.end, CHUNK):
            end = min(start + CHUNK, pinned.end)
            for offset, content in self._scan(side, place, OffsetRange(start, end)).items():
                progress.counts[label(expected, content.key, content.value)] += 1
                if content.value is not None:
                    progress.newest_ms = max(progress.newest_ms or 0, content.timestamp)
                take(offset, content)
            progress.end = end
        return progress

    def _scan(self, side: Side, place: TopicPartition, piece: OffsetRange) -> Mapping[int, Content]:
        scanner = self._scanners[side]
        assert scanner is not None, "a cluster that is down is not asked"
        read = scanner.scan({place: piece})[place]
        if isinstance(read, Unreadable):
            cluster = self._flow.source if side is Side.SOURCE else self._flow.target
            raise ClusterError(
                f"{cluster.alias} does not let us read MM2's topic {place.topic} ({read.reason}).",
                "Grant READ on that topic, or try again.",
            )
        return read

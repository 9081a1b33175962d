"""What is read from MirrorMaker 2's two topics, as values, and the port it is read through.

`migrate.spark.mm2_topics` is the adapter: it reads the topics in full with Spark. Record kinds in `counts`:
"checkpoint", "offset-sync", "heartbeat", "tombstone", ... and "undecodable:<reason>" (see `migrate.mm2.wire`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from migrate.mm2.chain import Window
from migrate.model import LogRange, Side, TopicPartition

# Offsets of a topic whose records a plan holds in this process: to decode them takes about as long as Spark's queries,
# and comparing their chains needs none.
MOST_HELD = 100_000


class CheckpointKey(NamedTuple):
    """What a checkpoint is about; the topic is the target's name, as MM2 renames it. A tuple: there are a million."""

    group: str
    target_topic: str
    partition: int


class CheckpointRecord(NamedTuple):
    """MM2's newest checkpoint of a key: last in log order, never by time. `timestamp` is in ms. A tuple, as its key."""

    source_offset: int
    target_offset: int
    metadata: str
    position: int
    timestamp: int


@dataclass(frozen=True)
class CheckpointReading:
    """All of a checkpoints topic: the newest record per key, and how many records of which kind were read."""

    latest: Mapping[CheckpointKey, CheckpointRecord]
    counts: Mapping[str, int]


class WindowQuestion(NamedTuple):
    """A committed offset whose window is asked for, with the log ends that bound the chain (Law 1). A tuple, too.

    `source_topic` is the name on MM2's source, on a failback too, where committed offset and ends are those of the
    plan's source and target. `source_end` is None while the source is down: syncs are not checked against it then.
    """

    source_topic: str
    partition: int
    source_committed: int
    source_end: int | None
    target_end: int


@dataclass(frozen=True)
class SyncReading:
    """All of an offset-syncs topic: the window around each offset asked about, and the counts by kind.

    Every question has an answer, `Window(None, None)` where the chain is empty.
    """

    windows: Mapping[WindowQuestion, Window]
    counts: Mapping[str, int]


class MirrorReader(Protocol):
    """Reads MM2's topics, each up to an end that was pinned once."""

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic, which is on the target."""

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic on `side`, and find each question's window.

        For a failback the two offsets of every sync swap their roles (`Flow.turned`).
        """

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        """Read the Connect offsets topic on the target: MM2's last copied offset by source partition.

        `pinned` are the ranges to read, by partition; those that hold nothing are left out.
        """

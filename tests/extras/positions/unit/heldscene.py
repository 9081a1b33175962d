"""Positions outside Kafka in memory: what a reader of them would give."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from migrate.errors import ClusterError
from migrate.extras.positions.held import (
    CheckpointAsked,
    HeldPosition,
    HolderKind,
    Meaning,
    PositionsAsked,
    PositionsRead,
)

BATCH = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"t":{"0":55,"1":60}}\n'


def read(
    *positions: HeldPosition | tuple[str, str, int, int], origin: str = "jobs.csv", **values: object
) -> PositionsRead:
    made = tuple(HeldPosition(*p) for p in positions)
    return PositionsRead(origin, HolderKind.FILE, "sha", positions=made, **values)  # type: ignore[arg-type]


def checkpoint(holder: str = "query", offsets: Iterable[tuple[str, int, int]] = (("t", 0, 55), ("t", 1, 60)), **values):
    made = tuple(HeldPosition(holder, *of) for of in offsets)
    given = {"holder": holder, "batch": 7, "content": BATCH} | values
    return PositionsRead(f"file:///{holder}", HolderKind.SPARK_CHECKPOINT, "sha", positions=made, **given)


def last(holder: str, topic: str, partition: int, number: int) -> HeldPosition:
    """The position of a holder that keeps the number of the last record it has done."""
    return HeldPosition(holder, topic, partition, number + 1, Meaning.LAST)


@dataclass
class FakePositions:
    """Gives what it holds; `later` is what it gives from the second look on."""

    reads: tuple[PositionsRead, ...]
    later: tuple[PositionsRead, ...] | None = None
    remembering: frozenset[str] = frozenset()
    looks: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, *reads: PositionsRead, **values) -> "FakePositions":
        return cls(reads, **values)

    def asked(self, **values) -> PositionsAsked:
        files = tuple(r.origin for r in self.reads if not r.holder)
        folders = tuple(CheckpointAsked(r.holder, r.origin) for r in self.reads if r.holder)
        return replace(PositionsAsked(files, folders), **values)

    def file(self, origin: str) -> PositionsRead:
        self.looks[origin] = self.looks.get(origin, 0) + 1
        given = self.reads if self.looks[origin] == 1 or self.later is None else self.later
        found = [r for r in given if r.origin == origin]
        if not found:
            raise ClusterError(f"{origin} is gone.", "Look.")
        return found[0]

    def checkpoint(self, asked: CheckpointAsked) -> PositionsRead:
        return self.file(asked.url)

    def remembers_batches(self, sink: str) -> bool:
        return sink in self.remembering

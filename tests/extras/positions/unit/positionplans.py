"""Positions outside Kafka in memory, and a world in which they are planned: what the tests of positions share."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from migrate.errors import ClusterError
from migrate.extras.positions.held import (
    CheckpointAsked,
    HeldPosition,
    HolderKind,
    Origin,
    PositionsAsked,
    PositionsRead,
)
from migrate.extras.positions.plan import Header, PositionPlan, plan_of, surveyed
from migrate.match.protocol import Limits
from migrate.model import Row
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest
from tests.fakes import FakeClock, NoProgress
from tests.unit.planscene import planned_flow, world

BATCH = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}\n{"t":{"0":55,"1":60}}\n'


def positions(holder: str, offsets: Iterable[tuple[str, int, int]]) -> tuple[HeldPosition, ...]:
    return tuple(HeldPosition(holder, *of) for of in offsets)


def file_of(*given: tuple[Any, ...], origin: str = "jobs.csv") -> PositionsRead:
    """Return what a file gives: holder, topic, partition, next record wanted, and what the holder means by it."""
    return PositionsRead(origin, HolderKind.FILE, "sha", positions=tuple(HeldPosition(*each) for each in given))


def checkpoint(
    holder: str = "query", offsets: Iterable[tuple[str, int, int]] = (("t", 0, 55), ("t", 1, 60)), **values: Any
) -> PositionsRead:
    given = {"holder": holder, "batch": 7, "content": BATCH, "positions": positions(holder, offsets)} | values
    return PositionsRead(f"file:///{holder}", HolderKind.SPARK_CHECKPOINT, "sha", **given)


@dataclass
class FakePositions:
    """Gives what it holds; `later` is what it gives from the second look on."""

    reads: tuple[PositionsRead, ...]
    later: tuple[PositionsRead, ...] | None = None
    remembering: frozenset[str] = frozenset()
    looks: dict[str, int] = field(default_factory=dict)

    def asked(self, **values: Any) -> PositionsAsked:
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


def origin_of(
    holder: str = "query", origin: str = "file:///a", content: str = "v1", is_stateful: bool = False
) -> Origin:
    """Return where a query's positions were read, in batch 17."""
    return Origin(origin, HolderKind.SPARK_CHECKPOINT, "a" * 64, holder, 17, content, is_stateful)


def make_positions(rows: Iterable[Row], last: Iterable[Row] = (), **header: Any) -> PositionPlan:
    """Return a plan of these positions, sorted; of `last` the holder keeps the last record done."""
    defaults: dict[str, Any] = {
        "tool_version": "0.1.0", "created_at_ms": 1_780_000_000_000,
        "source_alias": "A", "target_alias": "B", "source_cluster_id": "source-id", "target_cluster_id": "target-id",
        "flow": {}, "settings": {}, "waivers": (), "source_topic_ids": {}, "target_topic_ids": {},
        "copies": {}, "origins": (), "checks": (),
    }  # fmt: skip
    ordered = sorted(rows, key=lambda row: row.key)
    return PositionPlan(Header(**(defaults | header)), PlanRows.of(ordered), frozenset(row.key for row in last))


def planned(
    *reads: PositionsRead, asked: Any = None, later: Any = None, remembering: Iterable[str] = (),
    policies: Policies | None = None, settle: float = 15.0, clusters: tuple[Any, Any, Any] | None = None,
) -> PositionPlan:  # fmt: skip
    """Plan what a reader gives, in a world of two topics; `asked` is what was asked for beside it."""
    reader = FakePositions(reads, later, frozenset(remembering))
    request = PlanRequest(
        flow=planned_flow(), filters=Filters(), policies=policies or Policies(), settle_seconds=settle, settings={},
        limits=Limits(1_000_000, None),
    )  # fmt: skip
    through = Clusters(*(clusters or world()), None)
    return plan_of(*surveyed(request, reader.asked(**(asked or {})), reader, through, FakeClock(), NoProgress()))

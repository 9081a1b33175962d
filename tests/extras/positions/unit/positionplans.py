"""Files of positions in memory, and a world in which they are planned: what the tests of positions share."""

from collections.abc import Iterable
from typing import Any

from migrate.extras.positions.held import HolderKind, Origin, PositionsAsked
from migrate.extras.positions.plan import Header, PositionPlan, plan_of, surveyed
from migrate.match.protocol import Limits
from migrate.model import Row
from migrate.row_table import PlanRows
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies
from migrate.survey.survey import Clusters, PlanRequest
from tests.builders import make_row
from tests.extras.positions.unit.heldscene import FakePositions
from tests.fakes import FakeClock, NoProgress
from tests.unit.planscene import planned_flow, world


def make_position(holder: str = "billing-job", topic: str = "orders", partition: int = 0, **values: Any) -> Row:
    """Return a position outside Kafka, translated and for its owner to set."""
    return make_row(holder, topic, partition, **({"target_prior": None} | values))


def origin_of(
    holder: str = "query", origin: str = "file:///a", batch: int = 17, content: str = "v1", **values: Any
) -> Origin:
    """Return where a query's positions were read."""
    given = {"is_stateful": False, "sha256": "a" * 64} | values
    return Origin(origin, HolderKind.SPARK_CHECKPOINT, holder=holder, batch=batch, content=content, **given)


def make_positions(rows: Iterable[Row], last: Iterable[Row] = (), **header: Any) -> PositionPlan:
    """Return a plan of these positions, sorted; of `last` the holder keeps the last record done."""
    defaults: dict[str, Any] = {
        "tool_version": "0.1.0",
        "created_at_ms": 1_780_000_000_000,
        "source_alias": "A",
        "target_alias": "B",
        "source_cluster_id": "source-id",
        "target_cluster_id": "target-id",
        "flow": {},
        "settings": {},
        "waivers": (),
        "source_topic_ids": {},
        "target_topic_ids": {},
        "copies": {},
        "origins": (),
        "checks": (),
    }
    ordered = sorted(rows, key=lambda row: row.key)
    return PositionPlan(Header(**(defaults | header)), PlanRows.of(ordered), frozenset(row.key for row in last))


def planned(
    held: FakePositions,
    asked: PositionsAsked | None = None,
    policies: Policies | None = None,
    settle: float = 15.0,
    clusters: tuple[Any, Any, Any] | None = None,
    comparer: Any = None,
) -> PositionPlan:
    """Plan what a reader gives, in a world of two topics."""
    request = PlanRequest(
        flow=planned_flow(),
        filters=Filters(),
        policies=policies or Policies(),
        settle_seconds=settle,
        settings={},
        limits=Limits(1_000_000, None),
    )
    through = Clusters(*(clusters or world()), comparer)
    return plan_of(*surveyed(request, asked or held.asked(), held, through, FakeClock(), NoProgress()))

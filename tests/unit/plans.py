"""Plans that apply can be tried on, and the two clusters that they fit."""

from typing import Any

from migrate.model import LogRange, Row, Side, TopicPartition
from migrate.plan.plan import Plan
from tests.builders import make_plan, make_row
from tests.fakes import EMPTY, FakeCluster


def row(group: str, topic: str = "orders", partition: int = 0, offset: int | None = 60, **changes: Any) -> Row:
    """A `set` row: the group is at 120 of [0, 200) on the source, and moves to `offset` of [0, 100)."""
    values = {
        "source_committed": 120,
        "source_log_start": 0,
        "source_log_end": 200,
        "target_log_start": 0,
        "target_log_end": 100,
        "target_offset": offset,
    }
    return make_row(group, topic, partition, **(values | changes))


def plan(*rows: Row, **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "source_cluster_id": "source-id",
        "target_cluster_id": "target-id",
        "target_topic_ids": {"A.orders": "id-1", "A.bills": "id-2"},
        "source_topic_ids": {"orders": "id-3", "bills": "id-4"},
    }
    return make_plan(rows, **(values | changes))


def clusters(made: Plan) -> tuple[FakeCluster, FakeCluster]:
    """The target and the source just as the plan saw them."""
    target = FakeCluster(ids=dict(made.header.target_topic_ids))
    source = FakeCluster(Side.SOURCE, "A", "source-id", ids=dict(made.header.source_topic_ids))
    for r in made.rows:
        if r.target_log_start is not None and r.target_log_end is not None:
            target.ranges[r.target_partition] = LogRange(r.target_log_start, r.target_log_end)
        if r.target_prior is not None:
            target.commit(r.group, r.target_topic, r.partition, r.target_prior, r.target_prior_metadata)
        if r.source_log_start is not None and r.source_log_end is not None:
            log = LogRange(r.source_log_start, r.source_log_end)
            source.ranges[TopicPartition(r.source_topic, r.partition)] = log
        if r.source_committed is not None:
            source.commit(r.group, r.source_topic, r.partition, r.source_committed, r.source_metadata)
        source.states[r.group] = EMPTY
    return target, source

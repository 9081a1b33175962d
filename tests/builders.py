"""Values with safe defaults, so that a test names only what it is about."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from migrate.model import CheckResult, Decision, Grade, Level, Method, Row, Scope
from migrate.plan.plan import FORMAT_VERSION, Header, Plan
from migrate.row_table import PlanRows

CREATED_AT_MS = 1_785_553_198_000  # 2026-08-01 02:59:58 UTC


def make_row(group: str = "billing", topic: str = "orders", partition: int = 0, **values: Any) -> Row:
    """Return a `set` row, translated by a window: committed 700 of [0, 1000) becomes 650 of [0, 960).

    `target_topic` is "A." + `topic` unless given. Rows without a target offset need `method=None, grade=None`.
    """
    defaults: dict[str, Any] = {
        "group": group,
        "source_topic": topic,
        "target_topic": f"A.{topic}",
        "partition": partition,
        "source_committed": 700,
        "source_metadata": "",
        "source_log_start": 0,
        "source_log_end": 1000,
        "target_log_start": 0,
        "target_log_end": 960,
        "target_prior": None,
        "target_prior_metadata": "",
        "decision": Decision.SET,
        "target_offset": 650,
        "method": Method.WINDOW,
        "grade": Grade.ESTIMATED,
        "rereads_at_most": None,
        "rereads_estimate": 12,
        "reason": "translated",
        "sentence": "The nearest sync below is source 687 at target 649: the offset after it.",
        "lower_kind": "sync",
        "lower_source_offset": 687,
        "lower_target_offset": 649,
        "upper_source_offset": 800,
        "upper_target_offset": 760,
        "checkpoint_source_offset": 600,
        "checkpoint_target_offset": 560,
    }
    return Row(**(defaults | values))


def make_untranslated(
    decision: Decision,
    reason: str,
    group: str = "billing",
    topic: str = "orders",
    partition: int = 0,
    **values: Any,
) -> Row:
    """Return a row without a target offset, as a block or a skip is."""
    nothing: dict[str, Any] = {
        "target_offset": None, "method": None, "grade": None, "rereads_estimate": None, "lower_kind": "",
        "lower_source_offset": None, "lower_target_offset": None, "upper_source_offset": None,
        "upper_target_offset": None, "sentence": f"Not translated: {reason}.",
    }  # fmt: skip
    return make_row(group, topic, partition, decision=decision, reason=reason, **(nothing | values))


def make_header(**values: Any) -> Header:
    """Return the header of a clean plan without rows, A -> B."""
    defaults: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "tool_version": "0.1.0",
        "kind": "plan",
        "created_at_ms": CREATED_AT_MS,
        "source_alias": "A",
        "target_alias": "B",
        "source_cluster_id": "cluster-id-of-A",
        "target_cluster_id": "cluster-id-of-B",
        "source_down": False,
        "flow": {"replication_policy": "default", "separator": ".", "target_bootstrap": "b1:9092"},
        "settings": {"rewind": "block"},
        "waivers": (),
        "target_topic_ids": {},
        "pinned": (),
        "group_states": (),
        "checks": (),
        "counts": {"commits_read": 0, "rows": 0, "uncommitted_added": 0},
        "mm2_counts": {},
        "timings": {"commits": 1.5, "windows": 32.5},
        "undoes": "",
        "failback": False,
        "comparison": {},
        "source_topic_ids": {},
        "undoes_events": 0,
        "undoes_digest": "",
        "activity": (),
    }
    return Header(**(defaults | values))


def make_plan(rows: Iterable[Row] = (), **header: Any) -> Plan:
    """Return a plan of these rows, sorted; counts add up unless `counts` is given."""
    listed = sorted(rows, key=lambda row: row.key)
    counts = {"commits_read": len(listed), "rows": len(listed), "uncommitted_added": 0}
    unknown = set(header) - {f.name for f in fields(Header)}
    assert not unknown, f"a header has no {unknown}"
    return Plan(make_header(**({"counts": counts} | header)), PlanRows.of(listed))


def make_check(check: str = "source-group-stopped", subject: str = "billing", **values: Any) -> CheckResult:
    """Return a group's block; `counts_as` follows `level` unless given."""
    level = values.get("level", Level.BLOCK)
    defaults: dict[str, Any] = {
        "check": check,
        "level": level,
        "scope": Scope.GROUP,
        "subject": subject,
        "expected": "no member on A",
        "seen": "Stable on A with 1 members: billing-1@app7",
        "todo": "Stop these consumers, then plan again.",
        "accepted": False,
        "counts_as": level,
    }
    return CheckResult(**(defaults | values))

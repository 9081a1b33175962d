"""From a plan and its journal to the plan that undoes it. Pure.

Every row that apply wrote, or may have written, becomes one row: `set` to the offset that was there before, or
`remove` where there was none. What apply never reached is not in it. The prior state is the journal's first
backup of the group, so an undo comes out the same however often it is made.
"""

from collections.abc import Mapping
from dataclasses import replace

from migrate.history import JournalState
from migrate.model import Commits, Decision, Row
from migrate.plan import Header, Plan

MOVED_REFUSE = "refuse"
MOVED_RESTORE = "restore"


def undo_plan(plan: Plan, state: JournalState, now_ms: int, tool_version: str, moved: str = MOVED_REFUSE) -> Plan:
    """Return the undo of what `state` says was written of `plan`; without rows if nothing was.

    `moved` is what to do with offsets that consumers have moved since: "refuse" or "restore".
    """
    rows = tuple(
        _undo_row(row, planned, state.prior.get(row.group))
        for row in plan.rows
        if row.decision in (Decision.SET, Decision.REMOVE)
        and (trace := state.applied.get(row.group)) is not None
        and row.target_partition in trace.written()
        for planned in (trace.planned[row.target_partition],)
    )
    return Plan(_undo_header(plan, rows, now_ms, tool_version, {"moved": moved}), rows)


def _undo_header(
    plan: Plan, rows: tuple[Row, ...], now_ms: int, tool_version: str, settings: Mapping[str, str]
) -> Header:
    topics = {row.target_topic for row in rows}
    return replace(
        plan.header,
        tool_version=tool_version,
        kind="undo",
        created_at_ms=now_ms,
        settings=settings,
        waivers=(),
        target_topic_ids={t: i for t, i in plan.header.target_topic_ids.items() if t in topics},
        pinned=(),
        group_states=(),
        checks=(),
        counts={"commits_read": len(rows), "rows": len(rows), "uncommitted_added": 0},
        mm2_counts={},
        timings={},
        undoes=plan.fingerprint,
        comparison={},
        sums={},
    )


def _undo_row(row: Row, planned: int | None, prior: Commits | None) -> Row:
    bare = replace(
        row,
        target_prior=planned,
        target_prior_metadata=row.target_metadata,
        target_offset=None,
        method=None,
        grade=None,
        rereads_at_most=None,
        rereads_estimate=None,
        lower_kind="",
        lower_source_offset=None,
        lower_target_offset=None,
        upper_source_offset=None,
        upper_target_offset=None,
        checkpoint_source_offset=None,
        checkpoint_target_offset=None,
        equality="",
        why="",
        missing_on_target=None,
        target_metadata="",
    )
    if prior is None:
        sentence = "The journal holds no backup of this group: what was there before is not known."
        return replace(bare, decision=Decision.BLOCK, reason="no-backup", sentence=sentence)
    before = prior.get(row.target_partition)
    if before is None:
        sentence = "Nothing was committed before the apply: the offset is removed."
        return replace(bare, decision=Decision.REMOVE, reason="was-absent", sentence=sentence)
    sentence = f"Back to {before.offset}, which was committed before the apply"
    sentence += ", with its metadata." if before.metadata else "."
    return replace(
        bare,
        decision=Decision.SET,
        target_offset=before.offset,
        target_metadata=before.metadata,
        reason="was-there",
        sentence=sentence,
    )

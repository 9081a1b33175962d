"""From a plan and its journal to the plan that undoes it, and whether that plan still fits the journal. Pure.

Every row that apply wrote, or may have written, becomes one row: `set` to the offset that was there before, or
`remove` where there was none. What apply never reached is not in it. The prior state is the journal's first
backup of the group, so an undo comes out the same however often it is made. It carries a digest of what it was made
from: an undo of half a run would leave the other half where it is.

A row whose write was never acknowledged, nor found in place by a reading, may become visible on the target later. So it
carries a reason of its own (`UNACKNOWLEDGED`), and is written whatever the target shows.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.apply.assess import refuse_other_cluster
from migrate.apply.drift import to_write
from migrate.apply.history import ROLLBACK, GroupTrace, JournalState
from migrate.apply.outcome import committed, is_committed_as_planned
from migrate.apply.read_back import read_commits
from migrate.clock import Clock
from migrate.errors import MigrateError, Refused
from migrate.model import UNACKNOWLEDGED, Commit, Commits, Decision, Failure, Row, TopicPartition
from migrate.plan.plan import FORMAT_VERSION, MOVED_SETTING, REFUSE_MOVED, SHORT_DIGITS, UNDO, Plan, canonical
from migrate.ports import Progress
from migrate.row_table import PlanRows
from migrate.survey.cluster import ClusterAdmin
from migrate.text import capital, many


def undo_plan(
    plan: Plan,
    state: JournalState,
    now_ms: int,
    tool_version: str,
    moved: str = REFUSE_MOVED,
    restored: Iterable[Mapping[str, GroupTrace]] = (),
) -> Plan:
    """Return the undo of what `state` says was written of `plan`; without rows if nothing was.

    `moved` (`REFUSE_MOVED`, `RESTORE_MOVED`) is what to do with offsets that consumers have moved since. `restored` are
    what other undos of this plan did: a group that one of them read back is left alone, for what is there now is a
    later plan's or a consumer's.
    """
    done = groups_restored(restored)
    rows = PlanRows.of(
        _undone(row, trace, state.prior.get(group))
        for group, of_group in plan.groups().items()
        if group not in done and (trace := state.applied.get(group)) is not None
        for row in to_write(of_group)
        if trace.is_written(row.target_partition)
    )
    return undo_of(plan, state, rows, now_ms, {MOVED_SETTING: moved}, tool_version)


def undo_of(
    plan: Plan, state: JournalState, rows: PlanRows, now_ms: int, settings: Mapping[str, str], tool_version: str
) -> Plan:
    """Return the plan of these rows that undoes `plan`, made from this state of its journal."""
    topics = {topic for of_group in rows.groups().values() for topic in of_group.column("target_topic")}
    header = replace(
        plan.header,
        format_version=FORMAT_VERSION,
        tool_version=tool_version,
        kind=UNDO,
        created_at_ms=now_ms,
        settings=settings,
        waivers=(),
        target_topic_ids={t: i for t, i in plan.header.target_topic_ids.items() if t in topics},
        source_topic_ids={},  # an undo asks the target alone
        pinned=(),
        group_states=(),
        checks=(),
        counts={"commits_read": len(rows), "rows": len(rows), "uncommitted_added": 0},
        mm2_counts={},
        timings={},
        undoes=plan.fingerprint,
        undoes_events=state.events,
        undoes_digest=digest_of(state),
        comparison={},
    )
    return Plan(header, rows)


def groups_restored(restored: Iterable[Mapping[str, GroupTrace]]) -> set[str]:
    """Return the groups that one of these undos read back as it had set them."""
    return {group for traces in restored for group, trace in traces.items() if trace.read_back}


def refuse_stale(undo: Plan, state: JournalState) -> None:
    """Raise `Refused` if an undo was made from another state of the journal than `state`, in anything that matters.

    What matters is what was written, what stood there before, what was restored, and who has spent the plan; not
    that this undo itself has spent it.
    """
    header = undo.header
    settled = all(
        row.needs_acknowledgement or row.decision is Decision.BLOCK or not trace.is_in_doubt(row.target_partition)
        for group, rows in undo.groups().items()
        if (trace := state.applied.get(group)) is not None and trace.has_doubts
        for row in rows
    )
    if digest_of(state, undo.fingerprint) == header.undoes_digest and settled:
        return
    plan = header.undoes[:SHORT_DIGITS]
    raise Refused(
        f"The journal of plan {plan} is not as it was when this undo was made: it had {header.undoes_events} events "
        f"then and has {state.events} now, or is another one. What was written or restored since is not in this undo. "
        "Nothing was written.",
        "Make the undo anew, with `mm2-migrate rollback PLAN --out ANOTHER.plan`, and have that one read.",
    )


def digest_of(state: JournalState, undo: str = "") -> str:
    """Return the SHA-256, in hex, of what an undo rests on; `undo` is the fingerprint of the one that asks."""
    applied = {
        group: [
            [*p, trace.planned[p], None if prior is None else [c.offset, c.metadata] if (c := prior.get(p)) else []]
            for p in sorted(trace.written())
        ]
        for group, trace in state.applied.items()
        for prior in (state.prior.get(group),)
    }
    back = {
        group: [trace.read_back, [[*p, trace.planned[p]] for p in sorted(trace.written())]]
        for group, trace in state.rolled_back.items()
    }
    spends = [by for by in state.spends if by != undo]
    # A rollback of some groups alone spends no plan; one without an answer leaves the same traces as the one before it.
    runs = sum(run.command == ROLLBACK for run in state.runs)
    rests_on = {"applied": applied, "rolled_back": back, "spends": spends, "rollbacks": runs}
    return hashlib.sha256(canonical(rests_on)).hexdigest()


def _undone(row: Row, trace: GroupTrace, prior: Commits | None) -> Row:
    """Return the row that takes another one back; `prior` are its group's commits before, None where nobody knows."""
    partition = row.target_partition
    ours = trace.planned[partition], row.target_metadata
    if prior is None:
        sentence = "The journal holds no backup of this group: what was there before is not known."
        return way_back(row, ours, None, True, "")._replace(
            decision=Decision.BLOCK, reason="no-backup", sentence=sentence
        )
    return way_back(row, ours, prior.get(partition), trace.is_certain(partition), "the apply")


def way_back(row: Row, ours: tuple[int | None, str], before: Commit | None, certain: bool, since: str) -> Row:
    """Return the row that brings back what was committed in a place before our first write there, None for nothing.

    `row` says which place it is, and what is known of its logs. `ours` are the offset (None: removed) and the metadata
    that we wrote last, and that are expected there. Where no answer was `certain`, an earlier write may still become
    visible. `since` is what wrote, in words.
    """
    decision, reason = Decision.REMOVE, "was-absent"
    sentence = f"Nothing was committed before {since}: the offset is removed."
    if before is not None:
        decision, reason = Decision.SET, "was-there"
        sentence = f"Back to {before.offset}, which was committed before {since}"
        sentence += ", with its metadata." if before.metadata else "."
    if not certain:
        reason = UNACKNOWLEDGED
        sentence += f" {capital(since)} got no certain answer for it: it is written whatever is there now."
    # An undo translates nothing: the fields that say how a row was translated are not there.
    return Row(
        group=row.group,
        source_topic=row.source_topic,
        target_topic=row.target_topic,
        partition=row.partition,
        source_committed=row.source_committed,
        source_metadata=row.source_metadata,
        source_log_start=row.source_log_start,
        source_log_end=row.source_log_end,
        target_log_start=row.target_log_start,
        target_log_end=row.target_log_end,
        target_prior=ours[0],
        target_prior_metadata=ours[1],
        decision=decision,
        target_offset=None if before is None else before.offset,
        method=None,
        grade=None,
        rereads_at_most=None,
        rereads_estimate=None,
        reason=reason,
        sentence=sentence,
        target_metadata="" if before is None else before.metadata,
        target_group=row.target_group,
    )


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a way back cannot take back: rows that are as planned although this journal did not write them.

    A plan that was copied to another folder has a journal of its own there. Whoever began to apply it in one folder and
    finished in the other has two journals, each of which knows half; the target has all of it. `unread` are groups that
    could not be looked at. `why` is what kept from looking, "" if nothing did.
    """

    rows: tuple[Row, ...] = ()
    unread: tuple[str, ...] = ()
    why: str = ""

    def __bool__(self) -> bool:
        return bool(self.rows or self.unread)


def outside(plan: Plan, state: JournalState) -> tuple[Row, ...]:
    """Return the rows to set of which the journal does not say that they were, or may have been, written."""
    rows: list[Row] = []
    for group, table in plan.groups().items():
        trace = state.applied.get(group)
        written = trace.written() if trace else frozenset[TopicPartition]()
        if Decision.SET in table.column("decision") and not written.issuperset(table.target_partitions()):
            rows += (r for r in table if r.decision is Decision.SET and r.target_partition not in written)
    return tuple(rows)


def as_planned(rows: Collection[Row], commits: Mapping[str, Commits]) -> tuple[Row, ...]:
    """Return the rows at their planned offset; where that is the prior one, too, those with the planned metadata."""
    return tuple(
        row
        for row in rows
        if (held := commits.get(row.group)) is not None
        and committed(row, held) == row.target_offset
        and (row.target_prior != row.target_offset or is_committed_as_planned(row, held))
    )


def look_elsewhere(
    plan: Plan, rows: Sequence[Row], target: ClusterAdmin, clock: Clock, timeout_seconds: float, progress: Progress
) -> Elsewhere:
    """Read the groups of `rows` on the target, and return which rows are as planned.

    Raises `Refused` for a cluster that is not the plan's; one that does not answer is in the result.
    """
    groups = sorted({row.group for row in rows})
    if not groups:
        return Elsewhere()
    progress.step(
        f"looking at {many(len(groups), 'group')} on {target.side} {target.alias} that this journal did not write"
    )
    try:
        refuse_other_cluster(target, plan.header.target_cluster_id)
    except Refused:
        raise
    except MigrateError as error:
        return Elsewhere(unread=tuple(groups), why=error.problem)
    answers = read_commits(target, groups, clock, timeout_seconds)
    failed = {group: answer for group, answer in answers.items() if isinstance(answer, Failure)}
    commits = {group: answer for group, answer in answers.items() if not isinstance(answer, Failure)}
    why = next((str(answer) for answer in failed.values()), "")
    return Elsewhere(as_planned(rows, commits), tuple(failed), why)

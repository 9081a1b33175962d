"""What a rollback cannot take back: rows at their planned offset that this journal did not write.

A plan that was copied to another folder has a journal of its own there. Whoever began to apply it in one folder and
finished in the other has two journals, each of which knows half; the target has all of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from migrate.apply.drift import committed, is_committed_as_planned
from migrate.apply.history import JournalState
from migrate.apply.read_back import read_commits
from migrate.apply.run import refuse_other_cluster
from migrate.clock import Clock
from migrate.errors import MigrateError, Refused
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.plan.plan import Plan
from migrate.ports import Progress
from migrate.survey.cluster import ClusterAdmin


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Rows that are as planned although the journal did not write them, and groups that could not be looked at.

    `why` is what kept from looking, "" if nothing did.
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
    progress.step(f"looking at {len(groups)} groups on {target.side} {target.alias} that this journal did not write")
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

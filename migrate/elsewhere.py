"""What a rollback cannot take back: rows at their planned offset that this journal did not write.

A plan that was copied to another folder has a journal of its own there. Whoever began to apply it in one folder and
finished in the other has two journals, each of which knows half; the target has all of it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.clock import Clock
from migrate.drift import committed, stands
from migrate.errors import MigrateError, Refused
from migrate.history import JournalState
from migrate.model import Commits, Decision, Failure, Row
from migrate.plan import Plan
from migrate.ports import ClusterAdmin, Progress
from migrate.table import wrapped
from migrate.terminal import Colour, many, name, paint, safe
from migrate.writing import read_commits

NAMED = 20


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
    written = {(group, p) for group, trace in state.applied.items() for p in trace.written()}
    return tuple(r for r in plan.rows if r.decision is Decision.SET and (r.group, r.target_partition) not in written)


def as_planned(rows: Collection[Row], commits: Mapping[str, Commits]) -> tuple[Row, ...]:
    """Return the rows at their planned offset; where that is the prior one, too, those with the planned metadata."""
    return tuple(
        row
        for row in rows
        if (held := commits.get(row.group)) is not None
        and committed(row, held) == row.target_offset
        and (row.target_prior != row.target_offset or stands(row, held))
    )


def look_elsewhere(
    plan: Plan, rows: Sequence[Row], target: ClusterAdmin, clock: Clock, timeout_seconds: float, progress: Progress
) -> Elsewhere:
    """Read the groups of `rows` on the target, and tell which rows are as planned.

    Raises `Refused` for a cluster that is not the plan's; one that does not answer is in the result.
    """
    groups = sorted({row.group for row in rows})
    if not groups:
        return Elsewhere()
    progress.step(f"looking at {len(groups)} groups on {target.side} {target.alias} that this journal did not write")
    try:
        seen = target.facts().cluster_id
    except MigrateError as error:
        return Elsewhere(unread=tuple(groups), why=error.problem)
    if plan.header.target_cluster_id not in ("", seen):
        raise Refused(
            f"The plan is for {target.side} cluster {plan.header.target_cluster_id}, and {target.alias} is {seen}.",
            "Name the clusters that the plan was made for.",
        )
    found = read_commits(target, groups, clock, timeout_seconds)
    failed = {group: answer for group, answer in found.items() if isinstance(answer, Failure)}
    commits = {group: answer for group, answer in found.items() if not isinstance(answer, Failure)}
    why = next((f"{answer.code}: {answer.message}" for answer in failed.values()), "")
    return Elsewhere(as_planned(rows, commits), tuple(failed), why)


def elsewhere_lines(found: Elsewhere, width: int, colour: bool) -> Iterator[str]:
    """Yield what is to be said before the outcome of a rollback; nothing where nothing was found."""
    if found.rows:
        groups = len({row.group for row in found.rows})
        verdict = (
            f"NOT ALL OF IT: {many(len(found.rows), 'offset')} of {many(groups, 'group')} "
            f"{'is' if len(found.rows) == 1 else 'are'} as planned, and this journal did not write "
            f"{'it' if len(found.rows) == 1 else 'them'}"
        )
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        for row in found.rows[:NAMED]:
            place = f"{name(row.group)} {name(row.target_topic)}:{row.partition}"
            yield from wrapped(f"{place}: at {row.target_offset}", width, "  ", "    ")
        if len(found.rows) > NAMED:
            yield f"  and {len(found.rows) - NAMED} more"
        yield from wrapped(
            "Was the plan applied from a copy in another folder? Roll back there too: that journal has what was there "
            "before. Another plan, or MM2, may have written them as well.", width, "  > ",
        )  # fmt: skip
    if found.unread:
        verdict = f"NOT LOOKED AT: {many(len(found.unread), 'group')} that this journal did not write"
        yield from wrapped(paint(verdict, Colour.YELLOW, colour), width, "", "  ")
        more = f" and {len(found.unread) - NAMED} more" if len(found.unread) > NAMED else ""
        named = ", ".join(name(group) for group in found.unread[:NAMED])
        yield from wrapped(f"{named}{more}: {safe(found.why)}", width, "  ", "    ")
        yield from wrapped("Run the same command again to know whether they are as planned.", width, "  > ")
    if found:
        yield ""

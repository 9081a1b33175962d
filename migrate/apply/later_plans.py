"""What other plans beside a plan hold on the target: a way back must not take it from under them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from migrate.apply.drift import compared
from migrate.apply.history import APPLY, JournalState
from migrate.apply.journal import read_journal
from migrate.errors import MigrateError
from migrate.model import Decision, Row
from migrate.plan.companions import journals_in, plan_of_journal
from migrate.plan.file import read_plan
from migrate.plan.plan import UNDO, Plan
from migrate.row_table import PlanRows


def held_by_other_plans(undo: Plan, state: JournalState, others: Iterable[tuple[Plan, JournalState]]) -> dict[str, str]:
    """Return the groups of the target that an undo would take from under another plan, with its short fingerprint.

    Of `others`, a plan holds a group that it has set or found right, and read back, until it is rolled back. It counts
    where it holds an offset that the undo expects there, or any where the undo writes whatever is there, unless the
    undo brings back just that. What a plan found there was there before it; of two plans that have set the same offset,
    only the one that was applied later holds it: `state` is the journal of the plan to be undone. An undo that restores
    what has moved takes it all, and asks for no other plan.
    """
    if undo.header.restores_moved:
        return {}
    taken = {
        (row.target_group or row.group, row.target_partition): row
        for rows in undo.groups().values()
        for row in compared(rows)
        # Where it brings back what is expected there, it takes nothing away.
        if (row.target_prior, row.target_prior_metadata) != (row.target_offset, row.target_metadata)
    }
    began = state.runs[0].began if state.runs else ""
    held: dict[str, str] = {}
    for plan, journal in others:
        if not plan.header.is_of_rows:
            continue
        by_group, renamed = plan.groups(), plan.rows.renamed()
        is_later = any(run.command == APPLY and run.began > began for run in journal.runs)
        for group in journal.applied.keys() & by_group.keys() - journal.spent_groups:
            name = renamed.get(group, group)
            if journal.applied[group].read_back and any(
                _takes(taken.get((name, row.target_partition)), row, is_later) for row in compared(by_group[group])
            ):
                held[name] = plan.short_fingerprint
    return held


def _takes(back: Row | None, row: Row, is_later: bool) -> bool:
    """True if the row `back` of an undo would take away what `row` of another plan, a later one or not, holds."""
    found = row.decision is Decision.KEEP
    if back is None or not (found or is_later):
        return False
    holds = row.target_prior if found else row.target_offset
    return holds == back.target_prior or (back.needs_acknowledgement and holds != back.target_offset)


def without_held(undo: Plan, held: Mapping[str, str], way: str) -> Plan:
    """Return an undo in which the groups that other plans hold are blocked; `way` says what can be done about them."""
    rows = (
        row
        if (by := held.get(row.target_group or row.group)) is None
        else row._replace(
            decision=Decision.BLOCK,
            reason="kept-by-a-later-plan",
            sentence=f"Plan {by}, in this folder too, has set this offset or found it right: it is that plan's. {way}",
        )
        for row in undo.rows
    )
    return Plan(undo.header, PlanRows.of(rows)) if held else undo


def other_plans(fingerprint: str, target_cluster_id: str, folder: Path) -> Iterator[tuple[Plan, JournalState]]:
    """Yield the other plans of a folder for a target that were carried out and not rolled back, with their journals.

    No undo is among them. Raises `MigrateError` where a journal, or its plan, cannot be read: what it holds is not
    known.
    """
    for path in journals_in(folder):
        digits = path.name.split(".")[-3]
        if fingerprint.startswith(digits) or not path.stat().st_size:
            continue
        file = plan_of_journal(path, digits)
        if not file.exists():
            raise MigrateError(
                f"The journal {path.name} lies in this folder, and its plan {file.name} does not: whether it holds "
                "offsets that would be taken back is not known.",
                "Put the plan back beside its journal, or move the journal elsewhere if it is of another cutover.",
            )
        plan = read_plan(file)
        if plan.header.kind == UNDO or plan.header.target_cluster_id != target_cluster_id:
            continue
        if not (journal := read_journal(path, plan.fingerprint)).is_spent:
            yield plan, journal

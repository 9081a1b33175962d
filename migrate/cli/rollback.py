"""The `rollback` command: what was on the target before, from the journal; at once, or saved as a plan."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from migrate import __version__
from migrate.apply.assess import ApplyClusters
from migrate.apply.engine import apply_plan, nothing_written
from migrate.apply.history import ROLLBACK, GroupTrace, JournalState
from migrate.apply.journal import Journal, JournalLost, undos_beside
from migrate.apply.later_plans import held_by_other_plans, other_plans, without_held
from migrate.apply.undo import outside, undo_plan
from migrate.cli.apply import (
    Approved,
    Printed,
    WritingOptions,
    approved_plan,
    look_further,
    outcome,
    roles,
    run_options,
    target_names,
    with_elsewhere,
)
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, argument, flag, option, repeated
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_REFUSED, Refused, UsageError
from migrate.mm2.flow import Flow
from migrate.plan.file import read_plan, refuse_out, write_plan
from migrate.plan.plan import REFUSE_MOVED, SHORT_DIGITS, UNDO, Plan, refuse_rules
from migrate.ports import Progress
from migrate.row_table import PlanRows, groups_with_metadata
from migrate.session.clusters import apply_session
from migrate.show.apply import deleted_whole_lines
from migrate.show.next_steps import Typed
from migrate.show.plan_export import select
from migrate.text import many, shell_word


@dataclass(frozen=True, kw_only=True)
class RollbackOptions(OnClusters):
    """The plan whose writes are to be undone, and what of them."""

    plan: Path = argument()
    writing: WritingOptions = WritingOptions()
    # Inherited from a shell, it would turn a rollback of the plan into one of a few groups.
    groups: tuple[str, ...] = repeated(
        "Restore only groups that match in full. They are spent then, the rest of the plan stays applied.",
        name="--group", metavar="REGEX", envvar=None)  # fmt: skip
    allow_partial: bool = flag("Leave out whole groups that have moved on, and restore the others.")
    moved: str = option(
        "If consumers have moved on since the apply: refuse, or restore anyway (they must be stopped) and say what is "
        "re-read or skipped.", default="refuse", type=click.Choice(["refuse", "restore"]))  # fmt: skip
    out: Path | None = option(
        "Instead of restoring, save the undo as a separate plan for apply, with its own fingerprint.",
        metavar="PLAN")  # fmt: skip


def rollback(options: RollbackOptions) -> int:
    """Restore what was on the target before `apply` ran, from the journal next to the plan.

    Without --execute this is a dry run. Rows that have moved since are refused. After a rollback the plan is
    spent, or the groups that --group names: no apply of this plan sets them again. If offsets are as planned but
    this journal did not write them, it names them and exits 4.
    """
    flow = reached_flow(options.clusters)
    return printed(*run_rollback(options, flow, options.log.progress(options.plan), Terminal.here()))


# Makes the undo of a plan from its journal, the state of that, what was restored already, and `--moved`.
MakeUndo = Callable[[Plan, Journal, JournalState, Sequence[Mapping[str, GroupTrace]], str], Plan]


def undo_of_apply(
    plan: Plan, journal: Journal, state: JournalState, restored: Sequence[Mapping[str, GroupTrace]], moved: str
) -> Plan:
    """Return the undo of what `apply` wrote; raises `UsageError` for a plan that it does not write."""
    refuse_rules(plan, "rollback")
    undo = undo_plan(plan, state, SystemClock().now_ms(), __version__, moved, restored)
    others = other_plans(plan.fingerprint, plan.header.target_cluster_id, journal.path.parent)
    way = "--allow-partial leaves it there, --moved restore takes it back all the same."
    return without_held(undo, held_by_other_plans(undo, state, others), way)


def run_rollback(
    options: RollbackOptions, flow: Flow, progress: Progress, terminal: Terminal, command: str = "rollback",
    make_undo: MakeUndo = undo_of_apply,
) -> Printed:  # fmt: skip
    """Undo what the journal beside a plan says was written; return the lines to print and the exit code.

    `command` is what was typed, and `make_undo` what knows how its writes are taken back, and what other plans hold.
    """
    path, plan, writing, out = options.plan, read_plan(options.plan), options.writing, options.out
    if plan.header.kind == UNDO:
        raise UsageError(
            f"{path} is itself an undo.", "Apply it with `mm2-migrate apply`, or make a new plan to go forward."
        )
    if out is not None and writing.execute:
        # An --out of the environment would turn every rollback into a file, and end it with 0.
        raise UsageError(
            f"--execute restores what was there, and --out (or MM2_MIGRATE_OUT) saves how in {out}.",
            "Give one of the two. What --out saves is carried out by `mm2-migrate apply`.",
        )
    chosen = _chosen(plan, options)
    flow = roles(flow, plan)
    found, clock = approved_plan(plan, path, writing, goes_back=True), SystemClock()
    journal, session = found.journal(clock), writing.session(options.clusters)
    if not journal.path.exists():
        raise Refused(
            f"There is no journal {journal.path.name} beside {path}: nothing is known of an apply of this plan.",
            "If it was applied from elsewhere, put the plan back beside its journal; else there is nothing to undo.",
        )
    if out is not None:
        journal.refuse_running()
    state = journal.read()
    others = _other_undos(plan, state, journal.path.parent)
    undo = make_undo(plan, journal, state, [*others.values(), state.rolled_back], options.moved)
    loose = outside(plan, state)
    if chosen is not None:
        undo = replace(undo, rows=PlanRows.of(row for row in undo.rows if row.group in chosen))
        loose = tuple(row for row in loose if row.group in chosen)
    exact = groups_with_metadata(undo.rows)
    if out is not None:
        refuse_out(out)
    with apply_session(flow, progress, bool(exact) and out is None, session) as edges:
        names = target_names(undo, loose)
        target = edges.exact_admin(edges.target, exact | groups_with_metadata(PlanRows.of(loose)), names)
        if not undo.rows:
            released = writing.execute and _release(journal, state, found, chosen)
            lines, code = [_nothing_to_undo(plan, state, chosen, released)], EXIT_DONE
        elif out is not None:
            gone = deleted_whole_lines(plan, undo, terminal.width, terminal.colour)
            lines, code = [*_saved(plan, undo, out), *gone], EXIT_DONE
        else:
            choices = replace(
                run_options(found, writing), command=ROLLBACK, allow_partial=options.allow_partial,
                details=_details(found, chosen),
            )  # fmt: skip
            result = apply_plan(undo, ApplyClusters(target), journal, clock, progress, choices)
            typed = Typed(command, str(path), (*options.clusters.words(), *_words(options)))
            lines, code = outcome(result, typed, plan, terminal)
            if chosen is not None:
                lines.insert(1, f"Of {many(len(chosen), 'group')} alone: the rest of the plan stays as it is.")
            lines += deleted_whole_lines(plan, undo, terminal.width, terminal.colour, result)
        if code == EXIT_REFUSED:
            return lines, code
        elsewhere = look_further(plan, loose, target, clock, writing.group_timeout, progress)
    if undo.rows and out is not None:
        write_plan(undo, out)
    return with_elsewhere(lines, code, elsewhere, terminal)


def _release(journal: Journal, state: JournalState, found: Approved, chosen: Collection[str] | None) -> bool:
    """Note a rollback that has nothing to restore: what the plan, or those groups of it, found right is free again.

    Return whether it was noted: not of a plan that is spent, nor of a whole one that was never carried out.
    """
    if state.is_spent or (chosen is None and not state.applied):
        return False
    try:
        with journal.open(
            ROLLBACK, {"plan": found.plan.fingerprint, **_details(found, chosen)}, state.events
        ) as writer:
            writer.end(EXIT_DONE, {})
    except JournalLost as error:
        raise nothing_written(error) from error
    return True


def _details(found: Approved, chosen: Collection[str] | None) -> dict[str, object]:
    """Return what the journal says of a rollback where it begins; `groups` are those that it alone restores."""
    return {**found.details(), **({} if chosen is None else {"groups": sorted(chosen)})}


def _chosen(plan: Plan, options: RollbackOptions) -> frozenset[str] | None:
    """Return the groups that are restored alone; None for all of them. Raises `UsageError` as `select` does."""
    if not options.groups:
        return None
    refuse_rules(plan, "rollback --group")
    if options.out is not None:
        raise UsageError(
            "--group restores some groups at once, and --out saves the undo of the whole plan.",
            "Give one of the two; without --execute, --group shows what it would restore.",
        )
    return frozenset(row.group for row in select(plan.rows, options.groups))


def _words(options: RollbackOptions) -> list[str]:
    """Return the choices that the command to copy has to repeat."""
    words = [word for group in options.groups for word in ("--group", group)]
    return [*words, "--moved", options.moved] if options.moved != REFUSE_MOVED else words


def _other_undos(plan: Plan, state: JournalState, folder: Path) -> dict[str, dict[str, GroupTrace]]:
    """Return what the undo plans that have spent this plan did, by their fingerprints.

    Raises `Refused` where the journal of one is gone: what a later plan has set must not be taken for what it left.
    """
    undos = undos_beside(state, folder)
    if lost := next((by for by in state.spends if by != ROLLBACK and by not in undos), ""):
        raise Refused(
            f"Plan {plan.short_fingerprint} was undone by the undo plan {lost}, whose journal is not in "
            f"{folder}: what that restored is not known.",
            "Put the undo plan and its journal back into this folder.",
        )
    return undos


def _nothing_to_undo(plan: Plan, state: JournalState, chosen: Collection[str] | None, released: bool) -> str:
    alone = "" if chosen is None else f" to {many(len(chosen), 'group')}"
    if not any(trace.written() for group, trace in state.applied.items() if chosen is None or group in chosen):
        still = "; no apply of it sets them any more" if released else ""
        return f"NOTHING TO UNDO: plan {plan.short_fingerprint} has not written anything{alone}{still}"
    by = "" if state.spent_by in ("", ROLLBACK) else f", by the undo plan {state.spent_by[:SHORT_DIGITS]}"
    return f"NOTHING TO UNDO: all that plan {plan.short_fingerprint} has written{alone} was restored{by}"


def _saved(plan: Plan, undo: Plan, out: Path) -> list[str]:
    return [
        f"Saved the undo of {plan.short_fingerprint} as {out}: {many(len(undo.rows), 'row')}, "
        f"fingerprint {undo.fingerprint}. "
        "Nothing was written to the cluster.",
        f"Read it with: mm2-migrate show {shell_word(str(out))}",
    ]

"""The `apply` command, and how a plan that writes begins: it is approved, signed, and its journal is found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from migrate import __version__
from migrate.apply.assess import ApplyClusters, RunOptions
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.journal import Journal, with_undos
from migrate.apply.later_plans import held_by_other_plans, other_plans
from migrate.apply.signatures import Signature, refusal, signatures_beside
from migrate.apply.undo import Elsewhere, look_elsewhere, outside
from migrate.apply.write import Interruption
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, ReachedClusters, Seconds, argument, flag, option
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused, UsageError
from migrate.mm2.flow import Flow
from migrate.model import Row
from migrate.plan.companions import journal_path, journals_under_any_name, plan_of_journal, real_path
from migrate.plan.file import read_plan, refuse_replaced
from migrate.plan.plan import (
    MIN_APPROVAL_DIGITS,
    SHORT_DIGITS,
    UNDO,
    Plan,
    approves,
    refuse_empty,
    refuse_rules,
)
from migrate.ports import Progress
from migrate.row_table import PlanRows, groups_with_metadata
from migrate.session.clusters import apply_session
from migrate.session.options import SessionOptions
from migrate.show.apply import apply_lines, deleted_whole_lines, elsewhere_lines
from migrate.show.next_steps import Typed, spent_refusal
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.renamed import TargetNames
from migrate.text import many, safe, some

Printed = tuple[list[str], int]


@dataclass(frozen=True, kw_only=True)
class WritingOptions:
    """Whether anything is written, by whose approval, and how fast."""

    approve: str | None = option(
        "Fingerprint of the reviewed plan: all of it, or at least the first 32 digits.",
        metavar="FINGERPRINT")  # fmt: skip
    execute: bool = flag("Write. Without it: a dry run with every check.")
    concurrency: int = option("Groups in flight at once.", default=100, type=click.IntRange(1, 100), metavar="N")
    group_timeout: float = option(
        "How long to keep retrying while no group is completed.",
        default=60.0, type=Seconds(min=1), metavar="SECONDS")  # fmt: skip

    def session(self, clusters: ReachedClusters) -> SessionOptions:
        """Return what the clusters are reached with."""
        return SessionOptions(clusters.request_timeout, concurrency=self.concurrency)


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(OnClusters):
    """The plan to be applied, and what of it may be."""

    plan: Path = argument()
    writing: WritingOptions = WritingOptions()
    allow_partial: bool = flag(
        "Leave out whole groups that are blocked or have changed, ignore blocks that no row shows, and apply the rest "
        "(exit 4).")  # fmt: skip
    source_unreachable: bool = flag(
        "Proceed although the source does not answer, without checking whether its groups are stopped or were reset "
        "since the plan.")  # fmt: skip


def apply(options: ApplyOptions) -> int:
    """Set the planned offsets on the target: exactly the plan you approved, or nothing.

    Without --execute this is a dry run: every check, the fingerprint, and the command to type.
    Prior state is on disk before the first write. Running the same command again finishes the job or does nothing.
    What only Kafka's Java client can write or restore (commit metadata) needs Java here; that client is tried first.
    """
    flow = reached_flow(options.clusters)
    return printed(*run_apply(options, flow, options.log.progress(options.plan), Terminal.here()))


@dataclass(frozen=True)
class Approved:
    """A plan that is to be carried out, with what people said of it: the fingerprint that was approved, signatures.

    `unsigned` is why it must not be written yet, None where enough have signed.
    """

    path: Path
    plan: Plan
    approval: str
    signatures: Sequence[Signature] = ()
    unsigned: Refused | None = None

    def details(self) -> dict[str, Any]:
        """Return what the journal says of it where a run begins."""
        return {
            "approved": self.approval,
            "version": __version__,
            "signatures": [{"time": s.time, "name": s.name, "note": s.note} for s in self.signatures],
        }

    def journal(self, clock: SystemClock) -> Journal:
        """Return the plan's journal."""
        return Journal(journal_path(self.path, self.plan.fingerprint), self.plan.fingerprint, clock.now_ms)

    def dry_run_head(self) -> list[str]:
        """Return what is printed above a dry run that shows all: it is what people sign."""
        return [] if self.unsigned is None else [f"REFUSED: {self.unsigned.problem}", ""]

    @property
    def to_sign(self) -> str:
        """How to sign, "" where enough have: a dry run ends with it instead of the command that writes."""
        return "" if self.unsigned is None else self.unsigned.todo


def approved_plan(plan: Plan, path: Path, writing: WritingOptions, *, goes_back: bool = False) -> Approved:
    """Return a plan whose approval is right, and whose journal is where it will be looked for.

    Raises where --execute lacks the approval, or enough signatures; the way back (`goes_back`) needs none.
    """
    approval = approved(plan, writing.approve, writing.execute)
    refuse_other_name(plan, path, goes_back)
    if goes_back:
        return Approved(path, plan, approval)
    signatures = signatures_beside(path, plan.fingerprint)
    unsigned = refusal(plan, path, signatures)
    if unsigned is not None and writing.execute:
        raise unsigned
    return Approved(path, plan, approval, signatures, unsigned)


def run_apply(options: ApplyOptions, flow: Flow, progress: Progress, terminal: Terminal) -> Printed:
    """Apply a plan file, or show what applying it would do; return the lines to print and the exit code."""
    path, plan, writing = options.plan, read_plan(options.plan), options.writing
    refuse_rules(plan, "apply")
    refuse_empty(plan, "apply")
    flow = roles(flow, plan)
    found = approved_plan(plan, path, writing)
    clock = SystemClock()
    journal = found.journal(clock)
    if (state := with_undos(journal.read(), journal.path.parent)).is_spent:
        raise spent_refusal(plan, str(path), options.clusters.words(), state.is_undone)
    undone = _journal_undone(plan, path, clock) if plan.header.kind == UNDO else None
    undone_plan, loose, note = _undone_plan(undone) if undone is not None else (None, (), "")
    if undone is not None:
        _refuse_held(plan, undone)
    exact = groups_with_metadata(plan.rows)
    with apply_session(flow, progress, bool(exact), writing.session(options.clusters)) as edges:
        names = target_names(plan, loose)
        target = edges.exact_admin(edges.target, exact | groups_with_metadata(PlanRows.of(loose)), names)
        source = edges.exact_admin(edges.source, exact) if plan.header.asks_source else None
        result = apply_plan(
            plan,
            ApplyClusters(target, source, watches_expiry=True),
            journal,
            clock,
            progress,
            replace(
                run_options(found, writing),
                allow_partial=options.allow_partial,
                source_unreachable=options.source_unreachable,
                synced=flow.synced(plan.groups()),
                spends=undone,
                begun=partial(refuse_replaced, plan, path),
            ),
        )
        typed = Typed("apply", str(path), options.clusters.words(), found.to_sign)
        lines, code = outcome(result, typed, plan, terminal)
        if undone is not None:
            lines += deleted_whole_lines(undone_plan, plan, terminal.width, terminal.colour, result)
        if code != EXIT_REFUSED:
            elsewhere = look_further(plan, loose, target, clock, writing.group_timeout, progress)
            lines, code = with_elsewhere(lines, code, elsewhere, terminal)
    lines += [note] * bool(note)
    # The same exit code as with --execute where it is not signed, and all that a dry run is for.
    return (lines, code) if found.unsigned is None else ([*found.dry_run_head(), *lines], EXIT_REFUSED)


def run_options(found: Approved, writing: WritingOptions) -> RunOptions:
    """Return the choices of a run that all of those which write a plan have."""
    return RunOptions(
        execute=writing.execute,
        concurrency=writing.concurrency,
        group_timeout_seconds=writing.group_timeout,
        details=found.details(),
    )


def outcome(result: ApplyResult, typed: Typed, plan: Plan, terminal: Terminal) -> Printed:
    """Return what a run came to, as it is printed, and its exit code."""
    lines = apply_lines(result, typed, plan.fingerprint, terminal.width, terminal.colour)
    return list(lines), result.exit_code


def roles(flow: Flow, plan: Plan) -> Flow:
    """Return MM2's flow as the plan goes: a failback's source is MM2's target, and what it writes is MM2's source."""
    return flow.reversed() if plan.header.failback else flow


def target_names(plan: Plan, loose: Sequence[Row] = ()) -> TargetNames:
    """Return what the groups of a plan, and those of `loose` rows of the plan that it undoes, are called there."""
    return TargetNames({**PlanRows.of(loose).renamed(), **plan.rows.renamed()})


def look_further(
    plan: Plan, rows: Sequence[Row], target: ClusterAdmin, clock: SystemClock, timeout: float, progress: Progress
) -> Elsewhere:
    """Return who has committed on rows that this run did not write; a signal, or a fault, ends only this."""
    try:
        # A signal ends nothing here: what was written before must be printed.
        with Interruption():
            return look_elsewhere(plan, rows, target, clock, timeout, progress)
    except Refused:
        raise
    except Exception as error:
        # Nor does what breaks while looking further.
        return Elsewhere(unread=tuple(sorted({row.group for row in rows})), why=f"{type(error).__name__}: {error}")


def with_elsewhere(lines: list[str], code: int, elsewhere: Elsewhere, terminal: Terminal) -> Printed:
    """Say first what the journal does not know: with that left, nothing is done."""
    lines = [*elsewhere_lines(elsewhere, terminal.width, terminal.colour), *lines]
    return lines, EXIT_PARTLY if elsewhere and code == EXIT_DONE else code


def _undone_plan(undone: Journal) -> tuple[Plan | None, tuple[Row, ...], str]:
    """Return the plan of a journal that is undone and its rows that this did not write; and what to say without it."""
    file = plan_of_journal(undone.path, undone.fingerprint)
    try:
        plan = read_plan(file)
    except MigrateError:
        plan = None
    if plan is None or plan.fingerprint != undone.fingerprint:
        note = f"Note: the undone plan is not beside its journal as {file.name}: its other rows were not checked."
        return None, (), note
    return plan, outside(plan, undone.read()), ""


def approved(plan: Plan, approval: str | None, execute: bool) -> str:
    """Return the fingerprint that was approved; raises where --execute lacks it or it names another plan."""
    if approval is None:
        if execute:
            raise UsageError(
                "--execute needs --approve FINGERPRINT: the fingerprint of the plan that was reviewed.",
                "`mm2-migrate show` and a dry run print it.",
            )
        return plan.fingerprint
    if len(approval.strip()) < MIN_APPROVAL_DIGITS:
        raise Refused(
            f"--approve {approval} is too short: {MIN_APPROVAL_DIGITS} digits of the fingerprint are needed. Whoever "
            "makes plans can find two that share 12, one for you to read and one to apply.",
            "Give the whole fingerprint that was reviewed; whoever has read the plan copies it from there.",
        )
    if not approves(approval, plan):
        raise Refused(
            f"--approve {approval} is not this plan's fingerprint, which begins {plan.short_fingerprint}.",
            "Make sure that this is the plan you reviewed: `mm2-migrate show` prints its whole fingerprint.",
        )
    return approval


def refuse_other_name(plan: Plan, path: Path, rolling_back: bool = False) -> None:
    """Refuse a copy of a plan whose journal lies beside it under another name: the journal would not be found.

    A rollback takes the journal of the name that it was given, where there is one: the way back stays open.
    """
    own = journal_path(path, plan.fingerprint)
    if rolling_back and own.exists():
        return
    for journal in journals_under_any_name(own.parent, plan.fingerprint):
        if own.exists() and not journal.samefile(own):
            raise Refused(
                f"Plan {plan.short_fingerprint} has two journals here, {own.name} and {journal.name}: each tells "
                "of its own runs only.",
                "Roll back with each of the two names of the plan file, and make a new plan.",
            )
        if not own.exists():
            raise Refused(
                f"The journal of plan {plan.short_fingerprint} is {journal.name}, and the plan was named {path.name}.",
                f"Use the plan by its first name: {plan_of_journal(journal, plan.fingerprint).name}.",
            )


def _refuse_held(undo: Plan, undone: Journal) -> None:
    """Raise `Refused` where another plan has set or found right what an undo saved earlier would take back."""
    others = other_plans(undo.header.undoes, undo.header.target_cluster_id, undone.path.parent)
    if held := held_by_other_plans(undo, undone.read(), others):
        raise Refused(
            f"{many(len(held), 'group')} that this undo would take back {'is' if len(held) == 1 else 'are'} held by "
            f"another plan of this folder: {some((f'{safe(g)} by plan {by}' for g, by in sorted(held.items())), 5)}. "
            "Nothing was written.",
            "Make the undo anew: `mm2-migrate rollback PLAN` says what can be done about each group.",
        )


def _journal_undone(undo: Plan, path: Path, clock: SystemClock) -> Journal:
    """Find the journal of the plan that an undo plan undoes: it must learn that its plan is spent."""
    digits = undo.header.undoes[:SHORT_DIGITS]
    journals = journals_under_any_name(real_path(path).parent, undo.header.undoes)
    if not journals:
        raise Refused(
            f"The journal of plan {digits} is not beside {path}.",
            "Put the undo plan into the folder of the plan and its journal: that plan has to be marked as spent.",
        )
    if len(journals) > 1:
        raise Refused(
            f"Plan {digits} has {len(journals)} journals beside {path}: {', '.join(j.name for j in journals)}. "
            "This undo was made from one of them.",
            "Use `mm2-migrate rollback` with each of the names of the plan file.",
        )
    return Journal(journals[0], undo.header.undoes, clock.now_ms)

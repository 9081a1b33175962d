"""The commands around the moment that writes: `apply`, `rollback`, `verify`. Wiring, and no decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from migrate import __version__
from migrate.apply.assess import ApplyClusters, ApplyOptions, refuse_other_cluster
from migrate.apply.engine import ApplyResult, apply_plan
from migrate.apply.history import ROLLBACK, GroupTrace, JournalState
from migrate.apply.journal import Journal, journal_to_read, read_journal
from migrate.apply.record_proof import LogSide, prove
from migrate.apply.signatures import Signature, signatures_beside
from migrate.apply.undo import Elsewhere, look_elsewhere, outside, undo_plan
from migrate.apply.verify import Known, joint_exit_code, verify, with_members
from migrate.apply.verify_positions import (
    PositionVerification,
    asked_of,
    read_checkpoints,
    unread,
    verify_positions,
)
from migrate.apply.write import Interruption
from migrate.checks.topics import not_drained, target_recreated
from migrate.cli.position_options import checkpoints_of
from migrate.cli.sign import refusal
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused, UsageError
from migrate.mm2.flow import Flow
from migrate.model import Row
from migrate.plan.companions import journal_path, journals_under_any_name, plan_of_journal, real_path
from migrate.plan.file import read_plan, refuse_out, refuse_replaced, write_plan
from migrate.plan.plan import (
    MIN_APPROVAL_DIGITS,
    SHORT_DIGITS,
    STANDING,
    UNDO,
    Plan,
    approves,
    refuse_empty,
    refuse_standing,
)
from migrate.ports import Progress
from migrate.row_table import PlanRows, groups_with_metadata
from migrate.session.clusters import apply_session, get_ready, held_positions, parse_spark_conf
from migrate.show.apply import Typed, apply_lines, deleted_whole_lines, elsewhere_lines
from migrate.show.formats import select
from migrate.show.verify import proof_lines, verify_document, verify_lines
from migrate.show.verify_positions import left_out_lines, position_lines
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.positions import CheckpointAsked
from migrate.survey.renamed import TargetNames
from migrate.text import many, shell_word

Printed = tuple[list[str], int]


def run_apply(path: Path, flow: Flow, progress: Progress, **options: Any) -> Printed:
    """Apply a plan file, or show what applying it would do; return the lines to print and the exit code."""
    get_ready()
    plan = read_plan(path)
    refuse_standing(plan, "apply")
    refuse_empty(plan, "apply")
    flow = _roles(flow, plan)
    approval = approved(plan, options["approve"], options["execute"])
    refuse_other_name(plan, path)
    signatures = signatures_beside(plan, path)
    unsigned = refusal(plan, path, signatures)
    if unsigned is not None and options["execute"]:
        raise unsigned
    clock = SystemClock()
    undone = _journal_undone(plan, path, clock) if plan.header.kind == UNDO else None
    undone_plan, loose, note = _undone_plan(undone) if undone is not None else (None, (), "")
    exact = groups_with_metadata(plan.rows)
    with apply_session(flow, progress, bool(exact), options) as edges:
        names = _target_names(plan, loose)
        target = edges.exact_admin(edges.target, exact | groups_with_metadata(PlanRows.of(loose)), names)
        source = None
        if not plan.header.source_down and plan.header.kind != UNDO:
            source = edges.exact_admin(edges.source, exact)
        result = apply_plan(
            plan,
            ApplyClusters(target, source, watches_expiry=True),
            Journal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms),
            clock,
            progress,
            replace(
                _options(options, approval, signatures),
                synced=flow.synced(plan.groups()),
                spends=undone,
                begun=partial(refuse_replaced, plan, path),
            ),
        )
        lines, code = _told(result, "apply", path, plan, options)
        if undone is not None:
            lines += deleted_whole_lines(undone_plan, plan, options["width"], options["colour"], result)
        if code != EXIT_REFUSED:
            elsewhere = _look_elsewhere(plan, loose, target, clock, options["group_timeout"], progress)
            lines, code = _with_elsewhere(lines, code, elsewhere, options)
    lines += [note] * bool(note)
    if unsigned is None:
        return lines, code
    # The same exit code as with --execute, and all that a dry run is for: it is what people sign.
    return [f"REFUSED: {unsigned.problem}", unsigned.todo, "", *lines], EXIT_REFUSED


def run_rollback(path: Path, flow: Flow, progress: Progress, **options: Any) -> Printed:
    """Undo what the journal beside a plan says was written; return the lines to print and the exit code."""
    plan = read_plan(path)
    if plan.header.kind == UNDO:
        raise UsageError(
            f"{path} is itself an undo.", "Apply it with `mm2-migrate apply`, or make a new plan to go forward."
        )
    if options["out"] is not None and options["execute"]:
        # An --out of the environment would turn every rollback into a file, and end it with 0.
        raise UsageError(
            f"--execute restores what was there, and --out (or MM2_MIGRATE_OUT) saves how in {options['out']}.",
            "Give one of the two. What --out saves is carried out by `mm2-migrate apply`.",
        )
    flow = _roles(flow, plan)
    approval = approved(plan, options["approve"], options["execute"])
    refuse_other_name(plan, path, rolling_back=True)
    clock = SystemClock()
    journal = Journal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms)
    if not journal.path.exists():
        raise Refused(
            f"There is no journal {journal.path.name} beside {path}: nothing is known of an apply of this plan.",
            "If it was applied from elsewhere, put the plan back beside its journal; else there is nothing to undo.",
        )
    if options["out"] is not None:
        journal.refuse_running()
    state = journal.read()
    others = _other_undos(plan, state, journal.path.parent)
    # A rollback knows what it restored itself; an undo plan has a journal of its own, which does not.
    restored = [*others.values(), *([state.rolled_back] if options["out"] is not None else [])]
    if plan.header.kind == STANDING:
        from migrate.cli.standing import undo_of_mandate

        undo = undo_of_mandate(plan, journal, state, restored, flow, progress, options)
    else:
        undo = undo_plan(plan, state, clock.now_ms(), __version__, options["moved"], restored)
    loose = outside(plan, state)
    exact = groups_with_metadata(undo.rows)
    if options["out"] is not None:
        refuse_out(options["out"])
    with apply_session(flow, progress, bool(exact) and options["out"] is None, options) as edges:
        names = _target_names(undo if plan.header.kind == STANDING else plan, loose)
        target = edges.exact_admin(edges.target, exact | groups_with_metadata(PlanRows.of(loose)), names)
        if not undo.rows:
            lines, code = [_nothing_to_undo(plan, state)], EXIT_DONE
        elif options["out"] is not None:
            told = deleted_whole_lines(plan, undo, options["width"], options["colour"])
            lines, code = [*_saved(plan, undo, options["out"]), *told], EXIT_DONE
        else:
            choices = replace(_options(options, approval), command=ROLLBACK)
            result = apply_plan(undo, ApplyClusters(target), journal, clock, progress, choices)
            lines, code = _told(result, "rollback", path, plan, options)
            lines += deleted_whole_lines(plan, undo, options["width"], options["colour"], result)
        if code == EXIT_REFUSED:
            return lines, code
        elsewhere = _look_elsewhere(plan, loose, target, clock, options["group_timeout"], progress)
    if undo.rows and options["out"] is not None:
        write_plan(undo, options["out"])
    return _with_elsewhere(lines, code, elsewhere, options)


def _target_names(plan: Plan, loose: Sequence[Row] = ()) -> TargetNames:
    """Return what the groups of a plan, and those of `loose` rows of the plan that it undoes, are called there."""
    return TargetNames({**PlanRows.of(loose).renamed(), **plan.rows.renamed()})


def _look_elsewhere(
    plan: Plan, rows: Sequence[Row], target: ClusterAdmin, clock: SystemClock, timeout: float, progress: Progress
) -> Elsewhere:
    try:
        # A signal ends nothing here: what was written before must be printed.
        with Interruption():
            return look_elsewhere(plan, rows, target, clock, timeout, progress)
    except Refused:
        raise
    except Exception as error:
        # Nor does what breaks while looking further.
        return Elsewhere(unread=tuple(sorted({row.group for row in rows})), why=f"{type(error).__name__}: {error}")


def _with_elsewhere(lines: list[str], code: int, elsewhere: Elsewhere, options: dict[str, Any]) -> Printed:
    """Say first what the journal does not know: with that left, nothing is done."""
    lines = [*elsewhere_lines(elsewhere, options["width"], options["colour"]), *lines]
    return lines, EXIT_PARTLY if elsewhere and code == EXIT_DONE else code


def _undone_plan(undone: Journal) -> tuple[Plan | None, tuple[Row, ...], str]:
    """Return the plan of a journal that is undone and its rows that this did not write; and what to say without it."""
    file = plan_of_journal(undone.path, undone.fingerprint)
    try:
        plan = read_plan(file)
    except MigrateError:
        plan = None
    if plan is None or plan.fingerprint != undone.fingerprint:
        note = f"Note: the undone plan is not beside its journal as {file.name}: nobody looked at its other rows."
        return None, (), note
    return plan, outside(plan, undone.read()), ""


def _other_undos(plan: Plan, state: JournalState, folder: Path) -> dict[str, Mapping[str, GroupTrace]]:
    """Return what the undo plans that have spent this plan did, by their fingerprints.

    Raises `Refused` where the journal of one is gone: what a later plan has set must not be taken for what it left.
    """
    undos: dict[str, Mapping[str, GroupTrace]] = {}
    for fingerprint in dict.fromkeys(by for by in state.spends if by != ROLLBACK):
        journals = journals_under_any_name(folder, fingerprint)
        if not journals:
            raise Refused(
                f"Plan {plan.short_fingerprint} was undone by the undo plan {fingerprint}, whose journal is not in "
                f"{folder}: what that restored is not known.",
                "Put the undo plan and its journal back into this folder.",
            )
        for journal in journals:
            undos[fingerprint] = {**undos.get(fingerprint, {}), **read_journal(journal, fingerprint).applied}
    return undos


def _nothing_to_undo(plan: Plan, state: JournalState) -> str:
    if not any(trace.written() for trace in state.applied.values()):
        return f"NOTHING TO UNDO: plan {plan.short_fingerprint} has not written anything"
    by = "" if state.spent_by == ROLLBACK else f", by the undo plan {state.spent_by[:SHORT_DIGITS]}"
    return f"NOTHING TO UNDO: all that plan {plan.short_fingerprint} has written was restored{by}"


def _saved(plan: Plan, undo: Plan, out: Path) -> list[str]:
    return [
        f"Saved the undo of {plan.short_fingerprint} as {out}: {len(undo.rows)} rows, fingerprint {undo.fingerprint}. "
        "Nothing was written to the cluster.",
        f"Read it with: mm2-migrate show {shell_word(str(out))}",
    ]


def run_verify(path: Path, flow: Flow, progress: Progress, **options: Any) -> Printed:
    """Compare the target with a plan file; return the lines to print and the exit code."""
    plan = read_plan(path)
    refuse_standing(plan, "verify")
    refuse_empty(plan, "verify")
    if plan.header.kind == UNDO and options["records"]:
        raise UsageError(f"{path} is an undo: it restores what was there, and translates nothing.", "Omit --records.")
    checkpoints = asked_of(plan, checkpoints_of(options["spark_checkpoints"]))
    if checkpoints:
        parse_spark_conf(options["spark_conf"])  # wrong use is said before the target is read
    flow = _roles(flow, plan)
    # A selection says nothing of the plan as a whole, and so nothing of its blocks without a row.
    selected = bool(options["groups"] or options["only"])
    rows = select(plan.rows, options["groups"], options["only"])
    clock = SystemClock()
    journal = read_journal(journal_to_read(path, plan.fingerprint), plan.fingerprint)
    known = Known(journal, options["consumers_ran"])
    exact = groups_with_metadata(plan.rows) & {row.group for row in rows}
    with apply_session(flow, progress, bool(exact), options) as edges:
        target = edges.exact_admin(edges.target, exact, _target_names(plan))
        refuse_other_cluster(target, plan.header.target_cluster_id)
        looked_ms = clock.now_ms()
        verification = verify(plan, target, progress, rows if selected else None, known)
        if options["settle"]:
            progress.step(f"waiting {options['settle']:g} s for a second reading")
            clock.wait(options["settle"])
            again, looked_ms = target.renewed(), clock.now_ms()
            alive = partial(with_members, again, known)
            verification = verify(plan, again, progress, rows if selected else None, known).after(verification, alive)
        proof = None
        if options["records"]:
            source = edges.source.admin()
            refuse_other_cluster(source, plan.header.source_cluster_id)
            sides = (
                LogSide(source, edges.source.next_records()),
                LogSide(target, edges.target.next_records(flow.target_isolation_level)),
            )
            proof = prove(rows, verification.findings, *sides, progress, options["limit"], _still_copied(plan))
    held = _verified_positions(plan, checkpoints, progress, options)
    code = joint_exit_code(*(result.exit_code for result in (verification, proof, held) if result is not None))
    if options["form"] == "json":
        return list(verify_document(verification, plan, proof, looked_ms, held)), code
    lines = list(verify_lines(verification, plan, options["width"], options["colour"]))
    if len(rows) != len(plan.rows):
        lines.append(f"{len(rows)} of {len(plan.rows)} rows were looked at, as --group and --only say.")
    if proof is not None:
        lines += ["", *proof_lines(proof, plan, options["width"], options["colour"])]
    if held is not None:
        lines += ["", *position_lines(held, options["width"], options["colour"])]
    return [*lines, *left_out_lines(plan, held, options["width"])], code


def _still_copied(plan: Plan) -> frozenset[str]:
    """Return the source's topics that the plan was accepted for although not all is copied, as far as it knows.

    Not those whose copy was created anew: it was accepted because all had been copied again.
    """
    waiting, anew = (
        {c.subject for c in plan.header.checks if c.check == check.name and c.accepted}
        for check in (not_drained, target_recreated)
    )
    return frozenset(waiting - anew)


def _verified_positions(
    plan: Plan, checkpoints: Sequence[CheckpointAsked], progress: Progress, options: Mapping[str, Any]
) -> PositionVerification | None:
    """Compare the checkpoint folders that were named with the plan's positions; None where none were."""
    if not checkpoints:
        return None
    progress.step(f"reading {many(len(checkpoints), 'checkpoint')}")
    try:
        with held_positions(options) as reader:
            return verify_positions(plan, list(read_checkpoints(checkpoints, reader)))
    except Exception as error:
        # A machine without Java, say: what was found of the groups is told all the same.
        return verify_positions(plan, [unread(asked, error) for asked in checkpoints])


def _roles(flow: Flow, plan: Plan) -> Flow:
    """Return MM2's flow as the plan goes: a failback's source is MM2's target, and what it writes is MM2's source."""
    return flow.reversed() if plan.header.failback else flow


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


def _options(options: dict[str, Any], approval: str, signatures: Sequence[Signature] = ()) -> ApplyOptions:
    return ApplyOptions(
        execute=options["execute"],
        allow_partial=options.get("allow_partial", False),
        concurrency=options["concurrency"],
        group_timeout_seconds=options["group_timeout"],
        details={
            "approved": approval,
            "version": __version__,
            "signatures": [{"time": s.time, "name": s.name, "note": s.note} for s in signatures],
        },
        source_unreachable=options.get("source_unreachable", False),
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


def _told(result: ApplyResult, command: str, path: Path, plan: Plan, options: dict[str, Any]) -> Printed:
    typed = Typed(command, str(path), options["typed"])
    lines = list(apply_lines(result, typed, plan.fingerprint, options["width"], options["colour"]))
    return lines, result.exit_code

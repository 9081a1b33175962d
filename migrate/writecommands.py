"""The commands around the moment that writes: `apply`, `rollback`, `verify`. Wiring, and no decisions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from migrate import __version__
from migrate.application import ApplyOptions, ApplyResult, apply_plan
from migrate.clock import SystemClock
from migrate.drift import UNDO
from migrate.errors import EXIT_DONE, EXIT_REFUSED, Refused, UsageError
from migrate.exactadmin import groups_with_metadata
from migrate.flow import Flow
from migrate.history import ROLLBACK
from migrate.journal import Journal, journal_path, journals_under_any_name
from migrate.kafka.hosted import get_ready
from migrate.model import Row
from migrate.plan import Plan, approves
from migrate.planfile import read_plan, refuse_overwrite, write_plan
from migrate.ports import ClusterAdmin, Progress
from migrate.recordproof import LogSide, RecordProof, prove
from migrate.results import Typed, apply_lines, verify_lines
from migrate.show import select
from migrate.showproof import proof_lines, verify_document
from migrate.signatures import Signature
from migrate.signing import refusal, signatures_beside
from migrate.undo import undo_plan
from migrate.verification import verify
from migrate.wiring import admin_of, exact_admin_of, group_facts_of, java_on_demand, record_reader_of

Told = tuple[list[str], int]


def run_apply(path: Path, flow: Flow, progress: Progress, **options: Any) -> Told:
    """Apply a plan file, or show what applying it would do; return the lines to print and the exit code."""
    get_ready()
    plan = read_plan(path)
    flow = _roles(flow, plan)
    approval = _approved(plan, options["approve"], options["execute"])
    _refuse_other_name(plan, path)
    signatures = signatures_beside(plan, path)
    unsigned = refusal(plan, path, signatures)
    if unsigned is not None and options["execute"]:
        raise unsigned
    clock = SystemClock()
    deadline, concurrency = options["request_timeout"], options["concurrency"]
    undone = _journal_undone(plan, path, clock) if plan.header.kind == UNDO else None
    exact = groups_with_metadata(plan.rows)
    with java_on_demand(progress, at_once=bool(exact)) as machine:
        target = exact_admin_of(flow.target, machine, exact, deadline, concurrency)
        source = None
        if not plan.header.source_down and plan.header.kind != UNDO:
            source = exact_admin_of(flow.source, machine, exact, deadline, concurrency)
        result = apply_plan(
            plan,
            target,
            source,
            Journal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms),
            clock,
            progress,
            _options(options, approval, signatures, flow.synced(plan.groups())),
            spends=undone,
            target_groups=group_facts_of(flow.target, deadline),
        )
    lines, code = _told(result, "apply", path, plan, options)
    if unsigned is None:
        return lines, code
    # The same exit code as with --execute, and all that a dry run is for: it is what people sign.
    return [f"REFUSED: {unsigned.problem}", unsigned.todo, "", *lines], EXIT_REFUSED


def run_rollback(path: Path, flow: Flow, progress: Progress, **options: Any) -> Told:
    """Undo what the journal beside a plan says was written; return the lines to print and the exit code."""
    plan = read_plan(path)
    if plan.header.kind == UNDO:
        raise UsageError(
            f"{path} is itself an undo.", "Apply it with `mm2-migrate apply`, or make a new plan to go forward."
        )
    flow = _roles(flow, plan)
    approval = _approved(plan, options["approve"], options["execute"])
    _refuse_other_name(plan, path)
    clock = SystemClock()
    journal = Journal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms)
    if not journal.path.exists():
        raise Refused(
            f"There is no journal {journal.path.name} beside {path}: nothing is known of an apply of this plan.",
            "If it was applied from elsewhere, put the plan back beside its journal; else there is nothing to undo.",
        )
    state = journal.read()
    if not state.applied:
        return [f"NOTHING TO UNDO: plan {plan.short_fingerprint} has not written anything"], EXIT_DONE
    undo = undo_plan(plan, state, clock.now_ms(), __version__, options["moved"])
    if options["out"] is not None:
        refuse_overwrite(options["out"])
        write_plan(undo, options["out"])
        return [
            f"Saved the undo of {plan.short_fingerprint} as {options['out']}: {len(undo.rows)} rows, "
            f"fingerprint {undo.short_fingerprint}. Nothing was written to the cluster.",
            "Read it with: mm2-migrate show " + str(options["out"]),
        ], EXIT_DONE
    exact = groups_with_metadata(undo.rows)
    with java_on_demand(progress, at_once=bool(exact)) as machine:
        target = exact_admin_of(flow.target, machine, exact, options["request_timeout"], options["concurrency"])
        result = apply_plan(undo, target, None, journal, clock, progress, _options(options, approval), command=ROLLBACK)
    return _told(result, "rollback", path, plan, options)


def run_verify(path: Path, flow: Flow, progress: Progress, **options: Any) -> Told:
    """Compare the target with a plan file; return the lines to print and the exit code."""
    plan = read_plan(path)
    if plan.header.kind == UNDO and options["records"]:
        raise UsageError(f"{path} is an undo: it restores what was there, and translates nothing.", "Omit --records.")
    flow = _roles(flow, plan)
    rows = select(plan, options["groups"], options["only"])
    clock = SystemClock()
    exact = groups_with_metadata(rows)
    with java_on_demand(progress, at_once=bool(exact)) as machine:
        target = exact_admin_of(flow.target, machine, exact, options["request_timeout"])
        _refuse_other_cluster(target, plan.header.target_cluster_id)
        found = verify(plan, target, progress, rows)
        if options["settle"]:
            progress.step(f"waiting {options['settle']:g} s for a second reading")
            clock.wait(options["settle"])
            found = verify(plan, target.renewed(), progress, rows).after(found)
        proof = _prove(rows, plan, flow, target, progress, options) if options["records"] else None
    code = max(found.exit_code, proof.exit_code if proof else EXIT_DONE)
    spent = Journal(journal_path(path, plan.fingerprint), plan.fingerprint, clock.now_ms).read().is_spent
    if options["form"] == "json":
        return list(verify_document(found, plan, proof, code, spent)), code
    lines = list(verify_lines(found, plan, options["width"], options["colour"]))
    if len(rows) != len(plan.rows):
        lines.append(f"{len(rows)} of {len(plan.rows)} rows were looked at, as --group and --only say.")
    if spent:
        lines.append("Note: this plan was rolled back, so its offsets are not expected to stand.")
    if proof is not None:
        lines += ["", *proof_lines(proof, plan, options["width"], options["colour"])]
    return lines, code


def _roles(flow: Flow, plan: Plan) -> Flow:
    """Return MM2's flow as the plan goes: a failback's source is MM2's target, and what it writes is MM2's source."""
    return flow.reversed() if plan.header.failback else flow


def _prove(
    rows: Sequence[Row], plan: Plan, flow: Flow, target: ClusterAdmin, progress: Progress, options: dict[str, Any]
) -> RecordProof:
    deadline = options["request_timeout"]
    source = admin_of(flow.source, deadline)
    _refuse_other_cluster(source, plan.header.source_cluster_id)
    return prove(
        rows,
        LogSide(source, record_reader_of(flow.source, deadline)),
        LogSide(target, record_reader_of(flow.target, deadline, flow.target_isolation_level)),
        progress,
        options["limit"],
    )


def _refuse_other_cluster(admin: ClusterAdmin, planned_id: str) -> None:
    """Raise `Refused` if this is not the cluster of the plan; a plan made without it ("") can not tell."""
    seen = admin.facts().cluster_id
    if planned_id and seen != planned_id:
        raise Refused(
            f"The plan is for {admin.side} cluster {planned_id}, and {admin.alias} is {seen}.",
            "Name the clusters that the plan was made for.",
        )


def _approved(plan: Plan, approval: str | None, execute: bool) -> str:
    """Return the fingerprint that was approved; raises where --execute lacks it or it names another plan."""
    if approval is None:
        if execute:
            raise UsageError(
                "--execute needs --approve FINGERPRINT: the fingerprint of the plan that was reviewed.",
                "`mm2-migrate show` and a dry run print it; 12 digits are enough.",
            )
        return plan.fingerprint
    if not approves(approval, plan):
        raise Refused(
            f"--approve {approval} is not this plan's fingerprint, which is {plan.short_fingerprint}...",
            "Give at least 12 of its digits, and make sure that this is the plan you reviewed.",
        )
    return approval


def _refuse_other_name(plan: Plan, path: Path) -> None:
    """Refuse a copy of a plan whose journal lies beside it under another name: the journal would not be found."""
    own = journal_path(path, plan.fingerprint)
    for journal in journals_under_any_name(path.absolute().parent, plan.fingerprint):
        if journal.name != own.name:
            raise Refused(
                f"The journal of plan {plan.short_fingerprint} is {journal.name}, and the plan was named {path.name}.",
                f"Use the plan by its first name: {journal.name.split('.' + plan.short_fingerprint)[0]}.",
            )


def _options(
    options: dict[str, Any],
    approval: str,
    signatures: Sequence[Signature] = (),
    synced: frozenset[str] = frozenset(),
) -> ApplyOptions:
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
        synced=synced,
    )


def _journal_undone(undo: Plan, path: Path, clock: SystemClock) -> Journal | None:
    """Find the journal of the plan that an undo plan undoes: it must learn that its plan is spent."""
    digits = undo.header.undoes[:12]
    for journal in journals_under_any_name(path.absolute().parent, undo.header.undoes):
        return Journal(journal, undo.header.undoes, clock.now_ms)
    raise Refused(
        f"The journal of plan {digits} is not beside {path}.",
        "Put the undo plan into the folder of the plan and its journal: that plan has to be marked as spent.",
    )


def _told(result: ApplyResult, command: str, path: Path, plan: Plan, options: dict[str, Any]) -> Told:
    typed = Typed(command, str(path), options["typed"])
    lines = list(apply_lines(result, typed, plan.fingerprint, options["width"], options["colour"]))
    return lines, result.exit_code

"""The `verify` command: the target as it is now beside the plan, and what groups read next on either side."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from migrate.apply.assess import refuse_other_cluster
from migrate.apply.journal import history_beside
from migrate.apply.record_proof import LogSide, prove
from migrate.apply.verify import Known, joint_exit_code, with_members
from migrate.apply.verify import verify as compare_with_plan
from migrate.checks.topics import not_drained, target_recreated
from migrate.cli.apply import Printed, roles, target_names
from migrate.cli.console import Terminal, printed
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnClusters, PlanRowOptions, Seconds, argument, flag, option
from migrate.clock import SystemClock
from migrate.errors import UsageError
from migrate.mm2.flow import Flow
from migrate.plan.file import read_plan
from migrate.plan.plan import UNDO, Plan, refuse_empty, refuse_rules
from migrate.ports import Progress
from migrate.row_table import groups_with_metadata
from migrate.session.clusters import apply_session
from migrate.session.options import SessionOptions
from migrate.show.plan_export import select
from migrate.show.verify import proof_lines, verify_document, verify_lines, verify_steps
from migrate.text import many


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(OnClusters):
    """The plan that the target is compared with, and how closely."""

    plan: Path = argument()
    settle: float | None = option(
        "Read twice, this far apart, and report what moved in between.",
        type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    consumers_ran: bool = flag("Consumers have run on the target since: progress beyond the planned offsets is theirs.")
    records: bool = flag(
        "Also read, per row, the next record on the source and the next one on the target, and show them side by side: "
        "offset, time, size, fingerprints equal or not. Never the payload.")  # fmt: skip
    limit: int | None = option(
        "With --records: only the first N rows.", type=click.IntRange(min=1), metavar="N", envvar=None)  # fmt: skip
    rows: PlanRowOptions = PlanRowOptions()
    form: str = option(
        "json: one document with every row.",
        name="--format", default="table", type=click.Choice(["table", "json"]))  # fmt: skip


def verify(options: VerifyOptions) -> int:
    """Read the target afresh, and report whether each planned offset is there or consumers have moved on.

    An offset beyond the planned one is good only while the group has members, or with --consumers-ran. --records also
    proves it by what each group reads next on either side. Exits 1 if an offset is behind, missing, or ahead without a
    consumer, or if the records of an exact row differ; 4 if rows were not written, or blocks of the plan are open.
    """
    flow = reached_flow(options.clusters, options.form != "table")
    return printed(*run_verify(options, flow, options.log.progress(options.plan), Terminal.here()))


def run_verify(options: VerifyOptions, flow: Flow, progress: Progress, terminal: Terminal) -> Printed:
    """Compare the target with a plan file; return the lines to print and the exit code."""
    path, plan = options.plan, read_plan(options.plan)
    refuse_rules(plan, "verify")
    refuse_empty(plan, "verify")
    if plan.header.kind == UNDO and options.records:
        raise UsageError(f"{path} is an undo: it restores what was there, and translates nothing.", "Omit --records.")
    flow = roles(flow, plan)
    # A selection says nothing of the plan as a whole, and so nothing of its blocks without a row.
    selected = bool(options.rows.groups or options.rows.only)
    rows = select(plan.rows, options.rows.groups, options.rows.only)
    clock = SystemClock()
    journal = history_beside(path, plan.fingerprint)
    known = Known(journal, options.consumers_ran)
    exact = groups_with_metadata(plan.rows) & {row.group for row in rows}
    with apply_session(flow, progress, bool(exact), SessionOptions(options.clusters.request_timeout)) as edges:
        target = edges.exact_admin(edges.target, exact, target_names(plan))
        progress.step(f"reaching {plan.header.target_alias}")
        refuse_other_cluster(target, plan.header.target_cluster_id)
        looked_ms = clock.now_ms()
        verification = compare_with_plan(plan, target, progress, rows if selected else None, known)
        if options.settle:
            progress.step(f"waiting {options.settle:g} s for a second reading")
            clock.wait(options.settle)
            again, looked_ms = target.renewed(), clock.now_ms()
            alive = partial(with_members, again, known)
            verification = compare_with_plan(plan, again, progress, rows if selected else None, known).after(
                verification, alive
            )
        proof = None
        if options.records:
            source = edges.source.admin()
            progress.step(f"reaching {plan.header.source_alias}")
            refuse_other_cluster(source, plan.header.source_cluster_id)
            sides = (
                LogSide(source, edges.source.next_records()),
                LogSide(target, edges.target.next_records(flow.target_isolation_level)),
            )
            proof = prove(rows, verification.findings, *sides, progress, options.limit, _still_copied(plan))
    code = joint_exit_code(*(result.exit_code for result in (verification, proof) if result is not None))
    if options.form == "json":
        return list(verify_document(verification, plan, proof, looked_ms)), code
    lines = list(verify_lines(verification, plan, terminal.width, terminal.colour))
    if len(rows) != len(plan.rows):
        lines.append(f"{len(rows)} of {many(len(plan.rows), 'row')} were looked at, as --group and --only say.")
    lines += verify_steps(verification, plan, str(path), options.clusters.words(), terminal.width)
    if proof is not None:
        lines += ["", *proof_lines(proof, plan, terminal.width, terminal.colour)]
    return lines, code


def _still_copied(plan: Plan) -> frozenset[str]:
    """Return the source's topics that the plan was accepted for although not all is copied, as far as it knows.

    Not those whose copy was created anew: it was accepted because all had been copied again.
    """
    waiting, anew = (
        {c.subject for c in plan.header.checks if c.check == check.name and c.accepted}
        for check in (not_drained, target_recreated)
    )
    return frozenset(waiting - anew)

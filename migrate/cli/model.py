"""The `plan` command as it is typed: a plan, or with --model those of the flows of a file, one after another."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from migrate.cli.console import Terminal, printed
from migrate.cli.flows import KeptFlow, read_flows
from migrate.cli.options import Command, command_of, option, options_of, resolve_flow
from migrate.cli.plan import PlanOptions, made_plan, request_of
from migrate.cli.plan import plan as plan_alone
from migrate.errors import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_PARTLY,
    EXIT_REFUSED,
    EXIT_USAGE,
    MigrateError,
    UsageError,
)
from migrate.plan.file import refuse_out
from migrate.plan.totals import totals
from migrate.progress import LineProgress
from migrate.session.options import SparkOptions
from migrate.session.plan import SessionOf, session_of_several_plans
from migrate.show.plan_table import MadePlan, made_lines, verdict
from migrate.survey.survey import PlanRequest

# What holds for a whole run, and so is said beside the model and not in it.
OF_THE_RUN = frozenset({"model", "out_dir", "master", "spark_conf", "log_format", "debug"})
_NOT_OF_A_FLOW = OF_THE_RUN | {"out", "flow"}
_WORST_FIRST = (EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_PARTLY, EXIT_DONE)


@dataclass(frozen=True, kw_only=True)
class PlanningOptions(PlanOptions):
    """A plan, or those of a model."""

    model: Path | None = option(
        "Plan every flow of this file (YAML: docs/models.md), one after another; what they have in common is read "
        "once.", metavar="FILE")  # fmt: skip
    # Not from the environment, where it may be that of `groups waves`.
    out_dir: Path | None = option(
        "With --model: folder to write the plans to, each under its flow's name.  [default: plans]",
        metavar="FOLDER", envvar=None)  # fmt: skip


def plan(options: PlanningOptions) -> int:
    """Read both clusters and MM2's topics, translate every commit, check, and write a plan.

    Changes nothing on any cluster. Exits 3 if the plan has blocks, or if no commit is inside the filters; it is still
    written, for review.
    """
    if options.model is None:
        if options.out_dir is not None:
            raise UsageError("--out-dir is for the plans of a model.", "Give --model FILE, or one file with --out.")
        return plan_alone(options)
    if context := click.get_current_context(silent=True):  # None where Python calls: then nothing was typed
        _refuse_beside_model(context)
    made = run_model(options.model, options.out_dir or Path("plans"), options.spark, options.log.progress())
    terminal = Terminal.here()
    return printed(made_lines(made, terminal.width, terminal.colour), worst_code(made))


def flow_parameters(command: click.Command) -> list[click.Parameter]:
    """Return those of `plan` that a flow may have."""
    return [parameter for parameter in command.params if parameter.name not in _NOT_OF_A_FLOW]


def plan_command() -> Command:
    """Return `plan` without its environment variables: what was planned is to be read in the model alone."""
    command = command_of("plan", plan_alone, "")
    for parameter in command.params:
        parameter.envvar = None
    return command


def _refuse_beside_model(context: click.Context) -> None:
    """Raise `UsageError` for an option that is typed beside --model, and belongs into it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in OF_THE_RUN and source is click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--model and {parameter.opts[-1]} exclude each other.",
                "Say it in the model, if it is an option of a flow; else make such a plan by itself.",
            )


def run_model(model: Path, out_dir: Path, spark: SparkOptions, progress: LineProgress) -> list[MadePlan]:
    """Make a plan of each flow of a model, and write it; return what became of each, in their order.

    What the model says is looked at in full before any cluster is asked. A flow that fails keeps no other from being
    planned. Raises `UsageError` where the model, or a flow's options, are wrong, `Refused` where a plan that was
    applied would be replaced.
    """
    command = plan_command()
    asked = [(flow.name, *_asked(flow, out_dir, command)) for flow in read_flows(model)]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out-dir {out_dir} cannot be made: {error.strerror}.", "Name another folder.") from error
    for _, options, _ in asked:
        refuse_out(options.out)
    sessions = [(request, options.session()) for _, options, request in asked if isinstance(request, PlanRequest)]
    if not sessions:
        return [_failed(name, error) for name, _, error in asked if isinstance(error, MigrateError)]
    made = []
    small = not any(session.reads_offsets_topic for _, session in sessions)
    compares = any(not (request.source_down or session.no_match) for request, session in sessions)
    with session_of_several_plans(spark, small, compares) as session_of:
        for number, (name, options, request) in enumerate(asked, 1):
            progress.say(f"flow {number} of {len(asked)}: {name}")
            if isinstance(request, MigrateError):
                made.append(_failed(name, request))
            else:
                made.append(_made(name, options, request, session_of, progress))
            progress.say(f"{name}: {made[-1].verdict}")
    return made


def _asked(flow: KeptFlow, out_dir: Path, command: click.Command) -> tuple[PlanOptions, PlanRequest | MigrateError]:
    """Return the options of a flow and what they ask for, or what kept its names from being known."""
    given = flow.parsed(command, flow_parameters(command))
    options = replace(options_of(PlanOptions, given), out=out_dir / f"{flow.name}.plan")
    try:
        return options, request_of(options, resolve_flow(options.clusters))
    except UsageError as error:
        raise UsageError(f"{flow.file}: flow {flow.name}: {error.problem}", error.todo) from error
    except MigrateError as error:
        # A Connect worker that does not answer, say: it is asked for the flow's names.
        return options, error


def _failed(name: str, error: MigrateError) -> MadePlan:
    # Whatever kept it: 2 or 3 would say that the model is wrong, or that there is a plan.
    return MadePlan(name, f"FAILED: {error}", EXIT_FAILED)


def _made(
    name: str, options: PlanOptions, request: PlanRequest, session_of: SessionOf, progress: LineProgress
) -> MadePlan:
    try:
        with session_of(request.flow, request.source_down, options.session()) as clusters:
            plan = made_plan(request, clusters, options.out, progress)
    except MigrateError as error:
        return _failed(name, error)
    text, _ = verdict(plan, totals(plan))
    code = EXIT_DONE if plan.is_clean() else EXIT_REFUSED
    return MadePlan(name, text, code, str(options.out), plan.short_fingerprint)


def worst_code(made: Iterable[MadePlan]) -> int:
    """Return the exit code of a run: that of a flow that failed first, then of one with blocks."""
    codes = {each.exit_code for each in made}
    return next(code for code in _WORST_FIRST if code in codes)

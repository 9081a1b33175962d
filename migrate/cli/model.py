"""`plan --model`: the flows of a kept file, each with the options of `plan`, planned one after another."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import click

from migrate.cli.console import Terminal, printed
from migrate.cli.flows import KeptFlow, read_flows
from migrate.cli.options import Command, LogOptions, SparkOptions, command_of, options_of, resolve_flow
from migrate.cli.plan import PlanOptions, made_plan, plan, request_of
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
from migrate.session.plan import SessionOf, session_of_several_plans
from migrate.show.plan_table import verdict
from migrate.show.several_plans import MadePlan, made_lines
from migrate.survey.survey import PlanRequest

# What holds for a whole run, and so is said beside the model and not in it.
OF_THE_RUN = frozenset({"model", "out_dir", "master", "spark_conf", "log_format", "debug"})
_NOT_OF_A_FLOW = OF_THE_RUN | {"out", "flow"}
_WORST_FIRST = (EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_PARTLY, EXIT_DONE)


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which flows are planned, and where the plans go."""

    model: Path
    out_dir: Path = Path("plans")
    spark: SparkOptions = SparkOptions()
    log: LogOptions = LogOptions()


def plan_flows(options: ModelOptions) -> int:
    """Make a plan of each flow of a model; print what became of them, and return the worst exit code."""
    made, terminal = run_model(options, options.log.progress()), Terminal.here()
    return printed(made_lines(made, terminal.width, terminal.colour), worst_code(made))


def flow_parameters(command: click.Command) -> list[click.Parameter]:
    """Return those of `plan` that a flow may have."""
    return [parameter for parameter in command.params if parameter.name not in _NOT_OF_A_FLOW]


def plan_command() -> Command:
    """Return `plan` without its environment variables: what was planned is to be read in the model alone."""
    command = command_of("plan", plan, "")
    for parameter in command.params:
        parameter.envvar = None
    return command


def refuse_beside_model(context: click.Context) -> None:
    """Raise `UsageError` for an option that is typed beside --model, and belongs into it."""
    typed = click.core.ParameterSource.COMMANDLINE
    of_a_flow = {parameter.name for parameter in flow_parameters(plan_command())}
    for parameter in context.command.params:
        if (
            parameter.name
            and parameter.name not in OF_THE_RUN
            and context.get_parameter_source(parameter.name) is typed
        ):
            raise UsageError(
                f"--model and {parameter.opts[-1]} exclude each other.",
                "Omit it, or make such a plan by itself."
                if parameter.name not in of_a_flow
                else "Say it in the model: of a flow, or under defaults for all of them.",
            )


@dataclass(frozen=True)
class _Asked:
    flow: KeptFlow
    request: PlanRequest
    options: PlanOptions


def run_model(options: ModelOptions, progress: LineProgress) -> list[MadePlan]:
    """Make a plan of each flow of a model, and write it; return what became of each, in their order.

    What the model says is looked at in full before any cluster is asked. A flow that fails keeps no other from being
    planned. Raises `UsageError` where the model, or a flow's options, are wrong, `Refused` where a plan that was
    applied would be replaced.
    """
    out_dir, command = options.out_dir, plan_command()
    asked = [_asked(flow, out_dir, command) for flow in read_flows(options.model)]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out-dir {out_dir} cannot be made: {error.strerror}.", "Name another folder.") from error
    flows = [each for each in asked if isinstance(each, _Asked)]
    for flow in flows:
        refuse_out(flow.options.out)
    if not flows:
        return [each for each in asked if isinstance(each, MadePlan)]
    made = []
    with session_of_several_plans([flow.request.flow for flow in flows], progress, options.spark) as edges_of:
        for number, each in enumerate(asked, 1):
            name = each.flow.name if isinstance(each, _Asked) else each.flow
            progress.say(f"flow {number} of {len(asked)}: {name}")
            made.append(_made(each, edges_of, progress) if isinstance(each, _Asked) else each)
            progress.say(f"{name}: {made[-1].verdict}")
    return made


def _asked(flow: KeptFlow, out_dir: Path, command: click.Command) -> "_Asked | MadePlan":
    given = flow.parsed(command, flow_parameters(command))
    options = replace(options_of(PlanOptions, given), out=out_dir / f"{flow.name}.plan")
    try:
        return _Asked(flow, request_of(options, resolve_flow(options.clusters)), options)
    except UsageError as error:
        raise UsageError(f"{flow.file}: flow {flow.name}: {error.problem}", error.todo) from error
    except MigrateError as error:
        # A Connect worker that does not answer, say: it is asked for the flow's names.
        return _failed(flow.name, error)


def _failed(name: str, error: MigrateError) -> MadePlan:
    # Whatever kept it: 2 or 3 would say that the model is wrong, or that there is a plan.
    return MadePlan(name, f"FAILED: {error}", EXIT_FAILED)


def _made(asked: _Asked, edges_of: SessionOf, progress: LineProgress) -> MadePlan:
    name, request, out = asked.flow.name, asked.request, asked.options.out
    try:
        with edges_of(request.flow, request.source_down, asked.options.session()) as clusters:
            plan = made_plan(request, clusters, out, progress)
    except MigrateError as error:
        return _failed(name, error)
    text, _ = verdict(plan, totals(plan))
    code = EXIT_DONE if plan.is_clean() else EXIT_REFUSED
    return MadePlan(name, text, code, str(out), plan.short_fingerprint)


def worst_code(made: Iterable[MadePlan]) -> int:
    """Return the exit code of a run: that of a flow that failed first, then of one with blocks."""
    codes = {each.exit_code for each in made}
    return next(code for code in _WORST_FIRST if code in codes)

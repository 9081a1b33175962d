"""The `flows plan` command: a plan of each flow of a file, one after another, in one Spark."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from migrate.cli.console import Terminal, printed
from migrate.cli.flows import FLOWS_FILE, KeptFlow, Said, read_flows, said_in
from migrate.cli.options import Command, LogOptions, argument, command_of, option, options_of, resolve_flow
from migrate.cli.plan import PlanOptions, made_plan, request_of
from migrate.cli.plan import plan as plan_alone
from migrate.errors import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_PARTLY,
    EXIT_REFUSED,
    EXIT_USAGE,
    ConfigError,
    MigrateError,
    UsageError,
)
from migrate.extras.flows.source_memory import SourceMemory
from migrate.extras.flows.text import MadePlan, made_lines
from migrate.mm2.flow import Cluster, Flow
from migrate.plan.file import refuse_out
from migrate.plan.totals import totals
from migrate.progress import LineProgress
from migrate.session.clusters import starting_spark
from migrate.session.options import SessionOptions, SparkOptions
from migrate.session.plan import PlanSession
from migrate.show.plan_table import verdict
from migrate.survey.commits_source import CommitsSource
from migrate.survey.survey import Clusters, PlanRequest

# As people write lists; the options themselves are repeated.
_PLURALS = {"groups": "group", "exclude_groups": "exclude_group", "topics": "topic", "exclude_topics": "exclude_topic"}
# What holds for a whole run, and so is said beside the file and not in it; and what it says of each flow by itself.
_NOT_OF_A_FLOW = {"master", "spark_conf", "log_format", "quiet", "color", "debug", "out", "flow"}
_WORST_FIRST = (EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_PARTLY, EXIT_DONE)
SessionOf = Callable[[Flow, CommitsSource, SessionOptions], AbstractContextManager[Clusters]]
"""Gives what one of several plans reads through: of its flow, where its commits come from, and its options."""


@dataclass(frozen=True, kw_only=True)
class FlowsOptions:
    """Whose flows are planned, and where the plans go."""

    file: Path | None = argument("[FILE]", required=False)
    # Not from the environment, where it may be that of `groups waves`.
    out_dir: Path = option(
        "Folder to write the plans to, each under its flow's name.",
        default=Path("plans"), metavar="FOLDER", envvar=None)  # fmt: skip
    spark: SparkOptions = SparkOptions()
    log: LogOptions = LogOptions()


def plan(options: FlowsOptions) -> int:
    """Plan every flow of a file (YAML, docs/flows.md; default flows.yaml in this folder), one after another.

    Changes nothing on any cluster. What flows have in common is read once: one Spark, and the commits and topic ids of
    a source that several have. Exits 1 if a flow has no plan, else 3 if a plan has blocks.
    """
    made = plan_flows(options.file or FLOWS_FILE, options.out_dir, options.spark, options.log.progress())
    terminal = Terminal.here()
    return printed(made_lines(made, terminal.width, terminal.colour), worst_code(made))


def flow_parameters(command: click.Command) -> list[click.Parameter]:
    """Return those of `plan` that a flow may have."""
    return [parameter for parameter in command.params if parameter.name not in _NOT_OF_A_FLOW]


def plan_command() -> Command:
    """Return `plan` without its environment variables: what was planned is to be read in the file alone."""
    command = command_of("plan", plan_alone, "")
    for parameter in command.params:
        parameter.envvar = None
    return command


def planned_options(flow: KeptFlow) -> KeptFlow:
    """Return a flow with all that it says as options of `plan`, those under `policies` among the others.

    Raises `ConfigError` for an option that is said twice, and where no group or no topic is named at all.
    """
    return replace(flow, defaults=_planned(flow, flow.defaults), own=_planned(flow, flow.own))


def _planned(flow: KeptFlow, said: Mapping[str, Said]) -> dict[str, Said]:
    options: dict[str, Said] = {}
    for key, each in said.items():
        if key == "policies":
            more = _planned(flow, said_in(each.value, f"{each.of}, policies", flow.file))
        else:
            more = {_PLURALS.get(key, key): each}
        if twice := sorted(options.keys() & more.keys()):
            raise ConfigError(f"{flow.file}: {each.of} has {twice[0]} twice.", "Say it once.")
        options |= more
    for name in ("group", "topic"):
        # Options that are not given leave nothing out: of an empty list that would be every group.
        if (named := options.get(name)) is not None and named.value == []:
            raise ConfigError(
                f"{flow.file}, line {named.line}: {named.of}: {name}s is an empty list, which leaves no {name} out.",
                f"Name {name}s there, or write {name}s: ['.*'] for every one.",
            )
    return options


def plan_flows(file: Path, out_dir: Path, spark: SparkOptions, progress: LineProgress) -> list[MadePlan]:
    """Make a plan of each flow of a file, and write it; return what became of each, in their order.

    What the file says is looked at in full before any cluster is asked. A flow that fails keeps no other from being
    planned. Raises `UsageError` where the file, or a flow's options, are wrong, `Refused` where a plan that was
    applied would be replaced.
    """
    command = plan_command()
    asked = [(flow.name, *_asked(flow, out_dir, command)) for flow in read_flows(file)]
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
    small = not any(request.commits.reads_topic for request, _ in sessions)
    compares = any(request.commits.asks_source and not session.no_match for request, session in sessions)
    clusters = [cluster for request, _ in sessions for cluster in (request.flow.source, request.flow.target)]
    with session_of_several_plans(spark, clusters, small, compares) as session_of:
        for number, (name, options, request) in enumerate(asked, 1):
            progress.say(f"flow {number} of {len(asked)}: {name}")
            if isinstance(request, MigrateError):
                made.append(_failed(name, request))
            else:
                made.append(_made(name, options, request, session_of, progress))
            progress.say(f"{name}: {made[-1].verdict}")
    return made


class _OneOfSeveral(PlanSession):
    """What one of several plans reads through: its Spark goes on for those after it."""

    def end_records(self) -> None:
        """End nothing."""

    def end(self) -> None:
        """Close all but Spark."""
        self.end_readers()


@contextmanager
def session_of_several_plans(
    options: SparkOptions, clusters: Collection[Cluster], small: bool, compares: bool
) -> Iterator[SessionOf]:
    """Yield what gives each of several plans what it reads through, one after another.

    `clusters` are all that is read, `small` and `compares` what Spark has to be fit for: no topic is long, and records
    are compared.

    They share one Spark, and what they read of a source: one is the same where its properties are, since with others
    brokers may show other groups.
    """
    memories = defaultdict[frozenset[tuple[str, str]], SourceMemory](SourceMemory)
    with starting_spark(options, *clusters, small=small, compares=compares) as spark:

        def session_of(flow: Flow, commits: CommitsSource, of_plan: SessionOptions) -> AbstractContextManager[Clusters]:
            session = _OneOfSeveral(flow, commits, spark, of_plan)
            if session.source is not None:
                session.source = memories[frozenset(flow.source.properties.items())].source(session.source)
            return closing(session)

        yield session_of


def _asked(flow: KeptFlow, out_dir: Path, command: click.Command) -> tuple[PlanOptions, PlanRequest | MigrateError]:
    """Return the options of a flow and what they ask for, or what kept its names from being known."""
    given = planned_options(flow).parsed(command, flow_parameters(command))
    options = replace(options_of(PlanOptions, given), out=out_dir / f"{flow.name}.plan")
    try:
        return options, request_of(options, resolve_flow(options.clusters))
    except UsageError as error:
        raise UsageError(f"{flow.file}: flow {flow.name}: {error.problem}", error.todo) from error
    except MigrateError as error:
        # A Connect worker that does not answer, say: it is asked for the flow's names.
        return options, error


def _failed(name: str, error: MigrateError) -> MadePlan:
    # Whatever kept it: 2 or 3 would say that the file is wrong, or that there is a plan.
    return MadePlan(name, f"FAILED: {error}", EXIT_FAILED)


def _made(
    name: str, options: PlanOptions, request: PlanRequest, session_of: SessionOf, progress: LineProgress
) -> MadePlan:
    try:
        with session_of(request.flow, request.commits, options.session()) as clusters:
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

"""`plan --model`: the flows of a kept file, each with the options of `plan`, planned one after another."""

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from migrate.cli.options import resolve_flow, resolve_policies, take_clusters
from migrate.cli.plan import made_plan, request_of
from migrate.cli.position_options import PathOrUrl
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
from migrate.mm2.yaml_file import yaml_documents
from migrate.plan.file import refuse_out
from migrate.plan.totals import totals
from migrate.progress import LineProgress
from migrate.session.plan import SessionOf, session_of_several_plans
from migrate.show.plan_table import verdict
from migrate.show.several_plans import MadePlan
from migrate.survey.survey import PlanRequest

# What holds for a whole run, and so is said beside the model and not in it.
OF_THE_RUN = frozenset({"model", "out_dir", "master", "spark_conf", "log_format", "debug"})
_NOT_OF_A_FLOW = OF_THE_RUN | {"out", "help", "standing", "until", "grades", "moving_groups"}
# As people write lists; the options themselves are repeated.
_PLURALS = {"groups": "group", "exclude_groups": "exclude_group", "topics": "topic", "exclude_topics": "exclude_topic"}
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHAPE = "Lay it out as docs/models.md shows: flows, a list, each with a name and the options of plan."
_WORST_FIRST = (EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_PARTLY, EXIT_DONE)


@dataclass(frozen=True)
class ModelFlow:
    """One flow of a model: its name, and the options of `plan` as they would be typed."""

    name: str
    words: tuple[str, ...]


def refuse_beside_model(context: click.Context) -> None:
    """Raise `UsageError` for an option that is typed beside --model, and belongs into it."""
    typed = click.core.ParameterSource.COMMANDLINE
    for parameter in context.command.params:
        if (
            parameter.name
            and parameter.name not in OF_THE_RUN
            and context.get_parameter_source(parameter.name) is typed
        ):
            raise UsageError(
                f"--model and {parameter.opts[-1]} exclude each other.",
                "Omit it, or make such a plan by itself."
                if parameter.name in _NOT_OF_A_FLOW
                else "Say it in the model: of a flow, or under defaults for all of them.",
            )


def refuse_model_folder(context: click.Context) -> None:
    """Raise `UsageError` for an --out-dir that is typed without --model."""
    if context.get_parameter_source("out_dir") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--out-dir is for the plans of a model.", "Give --model FILE, or name one file with --out.")


def read_model(path: Path, command: click.Command) -> tuple[ModelFlow, ...]:
    """Return the flows of a model; `command` is `plan`, whose options they may have.

    Files are relative to the model's folder. Raises `ConfigError` for what is no model, naming the flow and the key.
    """
    documents = yaml_documents(path, _SHAPE, is_strict=True)
    if len(documents) != 1 or not isinstance(documents[0], dict) or not isinstance(documents[0].get("flows"), list):
        raise ConfigError(f"{path} has no list of flows.", _SHAPE)
    model: dict[str, Any] = documents[0]
    if unknown := sorted(map(str, model.keys() - {"flows", "defaults"})):
        raise ConfigError(f"{path}: {unknown[0]!r} is neither flows nor defaults.", _SHAPE)
    defaults = _flattened(model.get("defaults") or {}, f"{path}: defaults")
    if not model["flows"]:
        raise ConfigError(f"{path} has no flow.", _SHAPE)
    flows = [_flow(entry, f"{path}: flow {n}", defaults, path, command) for n, entry in enumerate(model["flows"], 1)]
    # File systems of macOS and Windows would take two such names for one file.
    names = [flow.name.lower() for flow in flows]
    if doubled := next((flow.name for flow in flows if names.count(flow.name.lower()) > 1), ""):
        raise ConfigError(f"{path} has two flows named {doubled}.", "Each plan needs a file of its own: rename one.")
    return tuple(flows)


def _flow(entry: Any, where: str, defaults: Mapping[str, Any], path: Path, command: click.Command) -> ModelFlow:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        raise ConfigError(
            f"{where} has no name that a file can have.", "Give it a name of letters, digits, dots, _ and -."
        )
    where = f"{path}: flow {name}"
    options = {**defaults, **_flattened({key: value for key, value in entry.items() if key != "name"}, where)}
    words = [word for key, value in options.items() for word in _typed(key, value, where, path.parent, command)]
    return ModelFlow(name, tuple(words))


def _flattened(tree: Any, where: str) -> dict[str, Any]:
    """The options of a flow by their names with underscores, those under `policies` among the others."""
    if not isinstance(tree, dict):
        raise ConfigError(f"{where} is not a mapping of options to values.", _SHAPE)
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        named = str(key).replace("-", "_")
        more = _flattened(value, f"{where}, policies") if named == "policies" else {_PLURALS.get(named, named): value}
        if twice := sorted(flat.keys() & more.keys()):
            raise ConfigError(f"{where} has {twice[0]} twice.", "Say it once.")
        flat |= more
    return flat


def _typed(key: str, value: Any, where: str, folder: Path, command: click.Command) -> Iterator[str]:
    """Yield an option as it would be typed."""
    word = "--" + key.replace("_", "-")
    option = next((p for p in command.params if word in p.opts), None)
    if not isinstance(option, click.Option) or option.name in _NOT_OF_A_FLOW:
        known = sorted(p.opts[-1][2:] for p in command.params if p.name not in _NOT_OF_A_FLOW)
        raise ConfigError(f"{where}: {key!r} is no option of a flow.", f"Choose among {', '.join(known)}.")
    if option.is_flag:
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {key} is {value!r}, and takes true or false.", "Say true, or leave it out.")
        yield from [word] if value else []
        return
    values = value if isinstance(value, list) else [value]
    if len(values) != 1 and not option.multiple:
        raise ConfigError(f"{where}: {key} takes one value, and has {len(values)}.", "Give it one.")
    for each in values:
        if isinstance(each, bool | dict | list) or each is None:
            raise ConfigError(
                f"{where}: {key} has a value that is no text or number: {each!r}.",
                "Put it in quotes, if it is meant as text.",
            )
        # With its `=`: a value may begin with a dash.
        yield f"{word}={_beside(folder, str(each), option)}"


def _beside(folder: Path, value: str, option: click.Option) -> str:
    """Return a value; one that names a file or a folder as it is from the model's folder."""
    if isinstance(option.type, click.Path):
        return str(folder / value)
    if not isinstance(option.type, PathOrUrl):
        return value
    holder, equals, path = value.partition("=") if option.type.of_holder else ("", "", value)
    return value if _URL.match(path) or not path else f"{holder}{equals}{folder / path}"


@dataclass(frozen=True)
class _Asked:
    flow: ModelFlow
    request: PlanRequest
    options: Mapping[str, Any]
    out: Path


def run_model(path: Path, out_dir: Path, context: click.Context, progress: LineProgress, **run: Any) -> list[MadePlan]:
    """Make a plan of each flow of a model, and write it to `out_dir`; return what became of each, in their order.

    `run` are `master` and `spark_conf`. What the model says is looked at in full before any cluster is asked. A flow
    that fails keeps no other from being planned. Raises `UsageError` where the model, or a flow's options, are wrong,
    `Refused` where a plan that was applied would be replaced.
    """
    asked = [_asked(flow, path, out_dir, context) for flow in read_model(path, context.command)]
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out-dir {out_dir} cannot be made: {error.strerror}.", "Name another folder.") from error
    flows = [each for each in asked if isinstance(each, _Asked)]
    for flow in flows:
        refuse_out(flow.out)
    if not flows:
        return [each for each in asked if isinstance(each, MadePlan)]
    made = []
    with session_of_several_plans([flow.request.flow for flow in flows], progress, run) as edges_of:
        for number, each in enumerate(asked, 1):
            name = each.flow.name if isinstance(each, _Asked) else each.flow
            progress.say(f"flow {number} of {len(asked)}: {name}")
            made.append(_made(each, edges_of, progress) if isinstance(each, _Asked) else each)
            progress.say(f"{name}: {made[-1].verdict}")
    return made


def _asked(flow: ModelFlow, path: Path, out_dir: Path, context: click.Context) -> "_Asked | MadePlan":
    command = _apart_from_environment(context.command)
    try:
        options = dict(command.make_context(str(command.name), list(flow.words), parent=context.parent).params)
    except click.UsageError as error:
        raise UsageError(f"{path}: flow {flow.name}: {error.format_message()}", "Correct it in the model.") from error
    for name in _NOT_OF_A_FLOW:
        options.pop(name, None)
    try:
        given = take_clusters(options)
        policies = resolve_policies(options)
        return _Asked(flow, request_of(resolve_flow(given), policies, options), options, out_dir / f"{flow.name}.plan")
    except UsageError as error:
        raise UsageError(f"{path}: flow {flow.name}: {error.problem}", error.todo) from error
    except MigrateError as error:
        # A Connect worker that does not answer, say: it is asked for the flow's names.
        return _failed(flow.name, error)


def _apart_from_environment(command: click.Command) -> click.Command:
    """Return the command without its environment variables: what was planned is to be read in the model alone."""
    alone = copy(command)
    alone.params = [copy(parameter) for parameter in command.params]
    for parameter in alone.params:
        parameter.envvar = None
    return alone


def _failed(name: str, error: MigrateError) -> MadePlan:
    # Whatever kept it: 2 or 3 would say that the model is wrong, or that there is a plan.
    return MadePlan(name, f"FAILED: {error}", EXIT_FAILED)


def _made(asked: _Asked, edges_of: SessionOf, progress: LineProgress) -> MadePlan:
    name, request = asked.flow.name, asked.request
    try:
        with edges_of(request.flow, request.source_down, asked.options) as clusters:
            plan = made_plan(request, clusters, asked.out, progress)
    except MigrateError as error:
        return _failed(name, error)
    text, _ = verdict(plan, totals(plan))
    code = EXIT_DONE if plan.is_clean() else EXIT_REFUSED
    return MadePlan(name, text, code, str(asked.out), plan.short_fingerprint)


def worst_code(made: Iterable[MadePlan]) -> int:
    """Return the exit code of a run: that of a flow that failed first, then of one with blocks."""
    codes = {each.exit_code for each in made}
    return next(code for code in _WORST_FIRST if code in codes)

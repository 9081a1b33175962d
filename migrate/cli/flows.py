"""Where the clusters are: as it was typed, or as a flow of a YAML file says. The file may say more: docs/flows.md."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from migrate.cli.console import print_lines, say_beside
from migrate.cli.options import ClusterOptions, options_of, parameters_of, resolve_flow
from migrate.errors import ConfigError, UsageError
from migrate.mm2.flow import Flow
from migrate.mm2.yaml_file import LinedDict, yaml_documents
from migrate.text import some

C = TypeVar("C", bound=ClusterOptions)
# The one that commands look for in the folder that they run in.
FLOWS_FILE = Path("flows.yaml")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHAPE = "Lay it out as docs/flows.md shows: flows, a list, each with a name and the options of plan."
# How MM2 is set up is said once.
_SETTINGS = ("mm2_config", "connect_url", "strimzi")


@dataclass(frozen=True)
class Said:
    """What a file says of one option: its value, in which line, and `of` what: a flow, or the defaults of all."""

    value: Any
    line: int
    of: str


@dataclass(frozen=True)
class KeptFlow:
    """One flow of a file: its name, and what is said of its options by their names with underscores."""

    file: Path
    name: str
    defaults: Mapping[str, Said]
    own: Mapping[str, Said]

    @property
    def options(self) -> Mapping[str, Said]:
        """What holds for it: its own options, and for the rest those of all flows."""
        return {**self.defaults, **self.own}

    def words(self, known: Collection[click.Parameter]) -> tuple[str, ...]:
        """Return the options as they would be typed, files relative to the file's folder.

        Raises `ConfigError` for one that is not `known`, and for a value that it does not take.
        """
        return tuple(word for key, said in self.options.items() for word in self._typed(key, said, known))

    def parsed(self, command: click.Command, known: Collection[click.Parameter]) -> dict[str, Any]:
        """Return the values of a command's parameters that the flow gives; raises `UsageError` for a wrong one."""
        words = list(self.words(known))
        try:
            return command.make_context("mm2-migrate", words).params
        except click.UsageError as error:
            raise UsageError(f"{self.file}: flow {self.name}: {error.format_message()}", "Correct it there.") from error

    def _typed(self, key: str, said: Said, known: Collection[click.Parameter]) -> Iterator[str]:
        where, word, value = f"{self.file}, line {said.line}: {said.of}", "--" + key.replace("_", "-"), said.value
        option = next((each for each in known if word in each.opts), None)
        if not isinstance(option, click.Option):
            names = sorted(each.opts[-1][2:] for each in known)
            raise ConfigError(f"{where}: {key!r} is not an option of a flow.", f"Choose among {', '.join(names)}.")
        if option.is_flag:
            if not isinstance(value, bool):
                problem = f"{where}: {key} is {value!r}, and takes true or false."
                raise ConfigError(problem, "Say true, or leave it out.")
            yield from [word] if value else []
            return
        values = value if isinstance(value, list) else [value]
        if len(values) != 1 and not option.multiple:
            raise ConfigError(f"{where}: {key} takes one value, and has {len(values)}.", "Give it one.")
        for each in values:
            if isinstance(each, bool | dict | list) or each is None:
                raise ConfigError(
                    f"{where}: {key} has a value that is neither text nor a number: {each!r}.",
                    "Put it in quotes, if it is meant as text.",
                )
            # With its `=`: a value may begin with a dash.
            yield f"{word}={_beside(self.file.parent, str(each), option)}"


def _beside(folder: Path, value: str, option: click.Option) -> str:
    """Return a value; one that names a file or a folder as it is from the folder of the flows."""
    return str(folder / value) if isinstance(option.type, click.Path) else value


def read_flows(path: Path) -> tuple[KeptFlow, ...]:
    """Return the flows of a file; raises `ConfigError` for what has none, or names them wrongly."""
    documents = yaml_documents(path, _SHAPE, is_strict=True)
    if len(documents) != 1 or not isinstance(documents[0], dict) or not isinstance(documents[0].get("flows"), list):
        raise ConfigError(f"{path} has no list of flows.", _SHAPE)
    kept: dict[str, Any] = documents[0]
    if unknown := sorted(map(str, kept.keys() - {"flows", "defaults"})):
        raise ConfigError(f"{path}: {unknown[0]!r} is neither flows nor defaults.", _SHAPE)
    defaults = said_in(kept["defaults"], "defaults", path) if kept.get("defaults") else {}
    if not kept["flows"]:
        raise ConfigError(f"{path} has no flow.", _SHAPE)
    flows = [_flow(entry, f"{path}: flow {number}", defaults, path) for number, entry in enumerate(kept["flows"], 1)]
    # File systems of macOS and Windows would take two such names for one file.
    names = [flow.name.lower() for flow in flows]
    if doubled := next((flow.name for flow in flows if names.count(flow.name.lower()) > 1), ""):
        raise ConfigError(f"{path} has two flows named {doubled}.", "Each plan needs a file of its own: rename one.")
    return tuple(flows)


def _flow(entry: Any, where: str, defaults: Mapping[str, Said], path: Path) -> KeptFlow:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not _FILE_NAME.fullmatch(name):
        raise ConfigError(
            f"{where} has no name that a file can have.", "Give it a name of letters, digits, dots, _ and -."
        )
    own = said_in(entry, f"flow {name}", path)
    return KeptFlow(path, name, defaults, {key: said for key, said in own.items() if key != "name"})


def said_in(tree: Any, of: str, path: Path) -> dict[str, Said]:
    """Return what a mapping in a file says, by the names of options with underscores.

    Raises `ConfigError` for what is not a mapping, and for an option that is written in two ways.
    """
    if not isinstance(tree, LinedDict):
        raise ConfigError(f"{path}: {of} is not a mapping of options to values.", _SHAPE)
    found: dict[str, Said] = {}
    for key, value in tree.items():
        if (named := str(key).replace("-", "_")) in found:
            raise ConfigError(f"{path}, line {tree.lines[key]}: {of} has {named} twice.", "Say it once.")
        found[named] = Said(value, tree.lines[key], of)
    return found


def reached_flow(given: ClusterOptions, is_data: bool = False) -> Flow:
    """Return the flow between the clusters that the options, or a kept flow, describe; see `clusters_of`."""
    return resolve_flow(clusters_of(given, is_data))


def clusters_of(given: C, is_data: bool = False) -> C:
    """Return where the clusters are: as it was typed, and for the rest as the flow says that --flow names.

    The only flow of a `flows.yaml` in this folder needs no name where nothing was given. Which flow it is, and what of
    it is not read here, is printed before anything else, on stderr if what a command prints `is_data`: a file that
    happens to lie there must never choose in silence which cluster is written. Raises `UsageError` for a name that no
    flow has, and where there are several and none is named.
    """
    if given.flow is None and given.words():
        return given
    kept = _kept(given.flow)
    if kept is None:
        return given
    command = click.Command("", params=[each for _, each in parameters_of(ClusterOptions) if each.name != "flow"])
    for parameter in command.params:
        parameter.envvar = None
    where = {parameter.name for parameter in command.params}
    read = replace(kept, defaults={}, own={key: said for key, said in kept.options.items() if key in where})
    said = options_of(ClusterOptions, {"flow": None, **read.parsed(command, command.params)})
    typed = {each.name: value for each in fields(ClusterOptions) if (value := getattr(given, each.name)) is not None}
    if any(name in typed for name in _SETTINGS):
        said = replace(said, mm2_config=None, connect_url=None, strimzi=None)
    found = replace(given, **{**vars(said), **typed, "flow": None})
    line = f"Flow {kept.name} of {kept.file}: {found.source or '?'} -> {found.target or '?'}."
    if beside := [f"--{name.replace('_', '-')}" for name in typed if name != "flow"]:
        line += f" Typed beside it: {', '.join(beside)}."
    if others := sorted(kept.options.keys() - where):
        line += f" Not read here: {', '.join(others)}."
    say_beside(line) if is_data else print_lines([line])
    return found


def _kept(name: str | None) -> KeptFlow | None:
    """Return the flow of that name, or the only one; None where no name was given and there is no file."""
    if not FLOWS_FILE.exists():
        if name is None:
            return None
        raise UsageError(
            f"--flow {name}: there is no {FLOWS_FILE} in this folder.",
            "Change to the folder that has it, or say where the clusters are by the other options.",
        )
    flows = read_flows(FLOWS_FILE)
    names = some([flow.name for flow in flows], 20)
    if name is None and len(flows) > 1:
        raise UsageError(
            f"Which flow? {FLOWS_FILE} in this folder has {len(flows)}: {names}.",
            "Name one with --flow NAME, or say where the clusters are by the other options.",
        )
    found = next((flow for flow in flows if name in (None, flow.name)), None)
    if found is None:
        raise UsageError(f"--flow {name}: {FLOWS_FILE} has no flow of that name.", f"It has {names}.")
    return found

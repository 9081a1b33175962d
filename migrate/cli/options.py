"""How a command's options are declared, those that commands share, and what they mean. No decisions about offsets here.

A command is a function that takes one frozen dataclass. Each field is an option, an argument, or a part with options of
its own; `command_of` makes the command line of it.
"""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, get_args

import click

from migrate.cli.console import (
    ColourChoice,
    choose_colour,
    one_paragraph,
    progress_on_stderr,
    say_beside,
    say_reading,
)
from migrate.errors import UsageError
from migrate.mm2.flow import ANY, REPLICATORS, Cluster, Flow, called
from migrate.mm2.naming import PolicyKind, ReplicationPolicy, TopicNames
from migrate.model import Decision, Grade, Side

if TYPE_CHECKING:
    from migrate.mm2.connectors import Described
    from migrate.progress import LineProgress
    from migrate.session.clusters import Endpoint
    from migrate.token_command import TokenCommand

T = TypeVar("T")
ENVIRONMENT_PREFIX = "MM2_MIGRATE_"
# What affects data is given on the command line of the night, never inherited from a shell's profile.
NEVER_FROM_ENVIRONMENT = frozenset(
    {
        "--execute", "--approve", "--allow-partial", "--accept", "--rewind", "--untranslatable", "--moved", "--by",
        "--source-unreachable", "--consumers-ran",
        "--uncommitted", "--max-rereads", "--failback", "--source-down", "--commits-as-of", "--flow",
    }
)  # fmt: skip
FILE = click.Path(path_type=Path)
# Some 23 days. Kafka's clients take ms in 31 bits, which end at 2,147,483 seconds: beyond, a deadline lies in the past.
MOST_SECONDS = 2_000_000
# Of 2001 and 2100. Another number is one of seconds, a year, or a date without its hyphens.
LEAST_MS, MOST_MS = 10**12, 4_102_444_800_000


class Seconds(click.FloatRange):
    """A number of seconds, at least `min` and at most `MOST_SECONDS`; anything else is wrong usage (exit 2)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the seconds as a float."""
        seconds = super().convert(value, param, ctx)
        # Nothing is later than nan: such a deadline never comes. No clock can wait for inf.
        if not math.isfinite(seconds) or seconds > MOST_SECONDS:
            self.fail(f"{value} is not a number of seconds up to {MOST_SECONDS:,}.", param, ctx)
        return seconds


class ParsedBy(click.ParamType[int]):
    """A number that is written as `parse` reads it; that raises `ValueError` where it cannot."""

    name = "text"

    def __init__(self, parse: Callable[[str], int]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return value if isinstance(value, int) else self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def option(help: str, *, name: str = "", default: Any = None, **settings: Any) -> Any:
    """Declare a field of an options class as an option, of which its name and annotation say the rest.

    `name` is for one that is called otherwise than its field. A `bool` is a flag, a tuple can be repeated, a `Path` is
    a file, an enum one of its words. `MM2_MIGRATE_<NAME>` sets it too, unless it affects data, or `envvar` is None.
    Other `settings` are click's.
    """
    made = {"cls": click.Option, "name": name, "settings": {**settings, "help": help}}
    return field(metadata=made) if settings.get("required") else field(default=default, metadata=made)


def flag(help: str, *, name: str = "") -> Any:
    """Declare a field that is True where its option is given."""
    return option(help, name=name, default=False, is_flag=True)


def repeated(help: str, *, name: str = "", **settings: Any) -> Any:
    """Declare a field with the texts of an option that can be given several times."""
    return option(help, name=name, default=(), multiple=True, **settings)


def argument(metavar: str | None = None, *, required: bool = True, default: Any = None, **settings: Any) -> Any:
    """Declare a field as an argument: what a command is about."""
    made = {"cls": click.Argument, "name": "", "settings": {**settings, "required": required, "metavar": metavar}}
    return field(metadata=made) if required else field(default=default, metadata=made)


def parameters_of(of: type, title: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Yield what a class declares, with the section of the help that each is in; "" are the command's own."""
    for each in fields(of):
        if is_dataclass(each.type):
            part = cast(type, each.type)
            yield from parameters_of(part, getattr(part, "TITLE", title))
        elif each.metadata:
            yield title, _parameter(each)


def typed_name(of: Field[Any]) -> str:
    """Return an option as it is typed."""
    return str(of.metadata.get("name", "")) or "--" + of.name.replace("_", "-")


def _parameter(of: Field[Any]) -> click.Parameter:
    cls, names = of.metadata.get("cls", click.Option), [of.name]
    settings = {"default": of.default, **of.metadata.get("settings", of.metadata)}
    if settings["default"] in (MISSING, None, ()):
        del settings["default"]  # click would not ask for a name that is needed, and count an empty tuple as a value
    elif not settings.get("is_flag"):
        settings.setdefault("show_default", settings["default"] != "")
        if isinstance(settings["default"], StrEnum):
            settings["default"] = str(settings["default"])
    if cls is click.Option:
        names.append(typed_name(of))
        long = names[-1].split("/")[0]
        if long not in NEVER_FROM_ENVIRONMENT:
            settings.setdefault("envvar", ENVIRONMENT_PREFIX + long[2:].replace("-", "_").upper())
    kind = of.type
    if isinstance(kind, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        settings.setdefault("type", click.Choice([str(word) for word in kind]))
    elif kind is Path:
        settings.setdefault("type", FILE)
    made: click.Parameter = cls(names, **settings)
    return made


def options_of(of: type[T], given: Mapping[str, Any]) -> T:
    """Return the options of a class, from what click has read, by the names of the fields."""
    values: dict[str, Any] = {}
    for each in fields(cast(Any, of)):
        if is_dataclass(each.type):
            values[each.name] = options_of(cast(type, each.type), given)
        elif each.metadata:
            value, kind = given[each.name], each.type
            values[each.name] = kind(value) if isinstance(kind, type) and issubclass(kind, StrEnum) else value
    return of(**values)


class Command(click.Command):
    """A command whose help has its own options first, then those that it shares, in named sections."""

    sections: Mapping[str, list[click.Parameter]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        shown = [*self.sections.items()]
        shown[-1] = (shown[-1][0], [*shown[-1][1], *filter(None, [self.get_help_option(ctx)])])
        for title, parameters in shown:
            options = (each for each in parameters if isinstance(each, click.Option))
            records = [record for each in options if (record := each.get_help_record(ctx)) is not None]
            if records:
                with formatter.section(title or "Options"):
                    formatter.write_dl(records)


def command_of(name: str, run: Callable[[T], int], short_help: str) -> Command:
    """Return the command line of a function that takes options and returns an exit code; its docstring is the help."""
    asked: type[T] = run.__annotations__["options"]
    sections: dict[str, list[click.Parameter]] = {"": []}
    for title, parameter in parameters_of(asked):
        sections.setdefault(title, []).append(parameter)

    def called_by_click(**given: Any) -> None:
        if given.get("flow") is not None:
            # A flow says all of where the clusters are, but for what is typed: no shell's profile is mixed into it.
            source_of = click.get_current_context().get_parameter_source
            where = [each.name for each in fields(ClusterOptions)]
            given |= {name: None for name in where if source_of(name) is click.core.ParameterSource.ENVIRONMENT}
        one_paragraph(lambda: run(options_of(asked, given)), given["debug"])()

    sections[LogOptions.TITLE] = sections.pop(LogOptions.TITLE)  # the least of a command's own, in the end
    parameters = [parameter for section in sections.values() for parameter in section]
    command = Command(name, callback=called_by_click, params=parameters, help=run.__doc__, short_help=short_help)
    command.sections = sections
    return command


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """How a command tells what it is doing, and of its faults."""

    TITLE: ClassVar = "Of every command"
    log_format: str = option(
        "Format of progress and log lines on stderr.", default="text", type=click.Choice(["text", "json"]))  # fmt: skip
    quiet: bool = flag("No progress on stderr: results and errors alone.")
    color: ColourChoice = option(
        "When results are coloured. auto: on a terminal, without NO_COLOR.",
        default="auto", callback=choose_colour)  # fmt: skip
    debug: bool = flag("Show stack traces.")

    def progress(self, *plans: Path) -> "LineProgress":
        """Return the command's progress on stderr; that large `plans` are read is said at once."""
        progress: LineProgress = progress_on_stderr(self.log_format, self.quiet)
        say_reading(progress, *plans)
        return progress


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Where the clusters are, and what MM2 is called there; None where it was not given."""

    TITLE: ClassVar = "Where the clusters are"
    flow: str | None = option(
        "A flow of flows.yaml in this folder (docs/flows.md), which says the rest of this section; what is typed "
        "beside it wins.  [default: the only flow there, if nothing here is given]", metavar="NAME")  # fmt: skip
    mm2_config: Path | None = option(
        "The mm2.properties that runs MirrorMaker 2: brokers, security, policy, topics.", metavar="FILE")  # fmt: skip
    connect_url: str | None = option(
        "A Kafka Connect worker that runs MM2's connectors: the same facts from its REST API, never credentials.",
        metavar="URL")  # fmt: skip
    strimzi: Path | None = option(
        "A Strimzi KafkaMirrorMaker2 (YAML): the same facts, never credentials.", metavar="FILE")  # fmt: skip
    source: str | None = option(
        "Alias of MM2's source, which the groups leave (and come back to with --failback).",
        metavar="ALIAS")  # fmt: skip
    target: str | None = option("Alias of MM2's target, which the groups move to.", metavar="ALIAS")
    source_config: Path | None = option(
        "Java client properties of the source: overrides every connection setting of --mm2-config.",
        metavar="FILE")  # fmt: skip
    target_config: Path | None = option(
        "Java client properties of the target: overrides every connection setting of --mm2-config.",
        metavar="FILE")  # fmt: skip
    source_token_command: str | None = option(
        "A command that prints a token to log in to the source with, and when it ends (docs/security.md).",
        metavar="COMMAND")  # fmt: skip
    target_token_command: str | None = option("The same for the target.", metavar="COMMAND")
    replicator: str | None = option(
        "Who copies: any is a replicator other than MM2, of which only the records are looked at.  [default: mm2]",
        type=click.Choice(list(REPLICATORS)))  # fmt: skip
    topic_map: Path | None = option(
        "With --replicator any: CSV of source_topic,target_topic, or regex:REGEX,REPLACEMENT.  [default: names are "
        "unchanged]", metavar="FILE")  # fmt: skip
    replication_policy: str | None = option(
        "How topics are named on the target: ALIAS.topic, or unchanged.  [default: default; with --replicator any: "
        "identity]", type=click.Choice(["default", "identity"]))  # fmt: skip
    separator: str | None = option("replication.policy.separator.  [default: .]", metavar="TEXT")
    offset_syncs_location: str | None = option(
        "Where MM2 keeps its offset syncs.  [default: source]", type=click.Choice(["source", "target"]))  # fmt: skip
    checkpoints_topic: str | None = option("Name of MM2's checkpoints topic.", metavar="TOPIC")
    offset_syncs_topic: str | None = option("Name of MM2's offset-syncs topic.", metavar="TOPIC")
    connect_offsets_topic: str | None = option(
        "Where MM2 keeps its own positions: offset.storage.topic of its Connect worker.", metavar="TOPIC")  # fmt: skip

    @property
    def says_where(self) -> bool:
        """True if some option tells where the clusters are."""
        options = (self.mm2_config, self.connect_url, self.strimzi, self.source_config, self.target_config)
        return any(option is not None for option in options)

    def words(self) -> tuple[str, ...]:
        """Return the options as they would be typed, for the next command to copy."""
        given = ((typed_name(each), getattr(self, each.name)) for each in fields(ClusterOptions))
        return tuple(word for name, value in given if value is not None for word in (name, str(value)))


@dataclass(frozen=True, kw_only=True)
class ReachedClusters(ClusterOptions):
    """Where the clusters are, and what asking them takes."""

    request_timeout: float = option(
        "Deadline for one request to a cluster.", default=30.0, type=Seconds(min=0.1), metavar="SECONDS")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OnClusters:
    """What every command has that asks clusters."""

    clusters: ReachedClusters
    log: LogOptions = LogOptions()


@dataclass(frozen=True, kw_only=True)
class OnOneCluster(OnClusters):
    """What every command has that asks one of the two clusters."""

    side: Side = option("The cluster to ask.", default=Side.SOURCE, envvar=None)

    def endpoint(self, flow: Flow) -> "Endpoint":
        """Return the cluster to ask."""
        from migrate.session.clusters import endpoints

        source, target = endpoints(flow, self.clusters.request_timeout)
        return source if self.side is Side.SOURCE else target


def _kinds_of_rows(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    from migrate.survey.policies import UNTRANSLATABLE_REASONS

    return [word for word in (*Decision, *Grade, *UNTRANSLATABLE_REASONS) if word.startswith(typed)]


@dataclass(frozen=True, kw_only=True)
class PlanRowOptions:
    """Which rows of a plan."""

    TITLE: ClassVar = "Which rows"
    # Inherited from a shell, they would let `verify` open the gate over rows that it passed over.
    groups: tuple[str, ...] = repeated("Only groups that match in full.", name="--group", metavar="REGEX", envvar=None)
    only: tuple[str, ...] = repeated(
        "Only rows of this kind.",
        metavar="DECISION|GRADE|REASON", envvar=None, shell_complete=_kinds_of_rows)  # fmt: skip


def resolve_flow(given: ClusterOptions) -> Flow:
    """Return the flow that the cluster options describe; raises `UsageError` where they do not suffice."""
    from migrate.mm2 import config_file as mm2config
    from migrate.mm2.config_providers import resolved
    from migrate.mm2.java_properties import read_properties

    _refuse_mixed(given)
    source_alias, target_alias = _aliases(given)
    source_client = read_properties(given.source_config) if given.source_config else None
    target_client = read_properties(given.target_config) if given.target_config else None
    overrides = mm2config.Overrides(
        replication_policy=given.replication_policy,
        separator=given.separator,
        syncs_side=Side(given.offset_syncs_location) if given.offset_syncs_location else None,
        checkpoints_topic=given.checkpoints_topic,
        offset_syncs_topic=given.offset_syncs_topic,
        connect_offsets_topic=given.connect_offsets_topic,
    )
    described_by = given.mm2_config
    if given.mm2_config is not None:
        flow = mm2config.read_flow(given.mm2_config, source_alias, target_alias, overrides)
        flow = mm2config.with_clients(flow, source_client, target_client)
    elif given.connect_url is not None or given.strimzi is not None:
        described_by = given.strimzi or Path("--connect-url")
        described = _described(given)
        flow = described.flow((source_alias, source_client), (target_alias, target_client), overrides)
    else:
        assert source_client is not None and target_client is not None
        if given.replicator == ANY.word:
            flow = _other_flow(source_client, target_client, (source_alias, target_alias), given)
        else:
            flow = mm2config.client_flow(source_client, target_client, source_alias, target_alias, overrides)
    source, target = str(given.source_config or described_by), str(given.target_config or described_by)
    return replace(
        flow,
        source=replace(
            flow.source,
            origin=source,
            properties=resolved(flow.source.properties, source),
            token_command=_token_command("--source-token-command", given.source_token_command),
        ),
        target=replace(
            flow.target,
            origin=target,
            properties=resolved(flow.target.properties, target),
            token_command=_token_command("--target-token-command", given.target_token_command),
        ),
    )


def _token_command(option: str, typed: str | None) -> "TokenCommand | None":
    """Return the command; raises `UsageError` where a shell would not take it."""
    if typed is None:
        return None
    from migrate.token_command import TokenCommand

    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise UsageError(f"{option} cannot be split into words: {error}.", "Quote it as for a shell.") from None
    if not words:
        raise UsageError(f"{option} names no command.", "Give one, or omit the option.")
    return TokenCommand(option, tuple(words))


def _aliases(given: ClusterOptions) -> tuple[str, str]:
    """Return the flow's two aliases; raises `UsageError` where the options do not go together."""
    settings = {"--mm2-config": given.mm2_config, "--connect-url": given.connect_url, "--strimzi": given.strimzi}
    described_by = [name for name, value in settings.items() if value is not None]
    if len(described_by) > 1:
        raise UsageError(f"{' and '.join(described_by)} exclude each other.", "Say once how MM2 is set up.")
    if not described_by and (given.source_config is None or given.target_config is None):
        raise UsageError(
            "Where are the clusters?",
            "Give --mm2-config FILE (or --connect-url URL, or --strimzi FILE) with --source ALIAS and --target ALIAS, "
            "or --source-config FILE and --target-config FILE with both aliases; or --flow NAME of a flows.yaml "
            "in this folder.",
        )
    if given.source is None or given.target is None:
        raise UsageError("Which flow?", "Name MM2's aliases of both clusters with --source ALIAS and --target ALIAS.")
    if given.source == given.target and given.source:
        raise UsageError(f"--source and --target are both {given.source!r}.", "Name two clusters.")
    return given.source, given.target


def _described(given: ClusterOptions) -> "Described":
    if given.connect_url is not None:
        from migrate.mm2.connect_worker import connect_worker

        worker = connect_worker(given.connect_url)
        if worker.warning:
            say_beside(f"mm2-migrate: warning: {worker.warning}")
        return worker.described()
    from migrate.mm2.strimzi import read_strimzi

    assert given.strimzi is not None
    return read_strimzi(given.strimzi)


def _refuse_mixed(given: ClusterOptions) -> None:
    """Raise `UsageError` where options of MM2 and of another replicator are mixed."""
    if given.replicator != ANY.word:
        if given.topic_map is not None:
            raise UsageError(
                "--topic-map says how a replicator other than MM2 names topics.",
                "Give --replicator any as well. MM2's own names are --replication-policy default or identity.",
            )
        return
    of_mm2 = replace(
        given, source=None, target=None, source_config=None, target_config=None, source_token_command=None,
        target_token_command=None, replicator=None, topic_map=None, replication_policy=None, separator=None,
    ).words()  # fmt: skip
    if of_mm2:
        raise UsageError(
            f"--replicator any: {of_mm2[0]} is about MirrorMaker 2, of which nothing is asked then.",
            "Omit it, and give --source-config FILE and --target-config FILE.",
        )
    if given.topic_map is not None and given.replication_policy is not None:
        raise UsageError("--topic-map and --replication-policy exclude each other.", "Say once how topics are named.")
    if given.separator is not None and given.replication_policy != PolicyKind.DEFAULT:
        raise UsageError(
            "--separator is part of names that begin with an alias.",
            "Give --replication-policy default too, or omit it.",
        )


def _other_flow(
    source: Mapping[str, str], target: Mapping[str, str], aliases: tuple[str, str], given: ClusterOptions
) -> Flow:
    """Return the flow of another replicator than MM2, from the client properties of both clusters and the options.

    Topics are named as on the source unless options say otherwise. Raises `UsageError` for a map that cannot be read.
    """
    return Flow(
        Cluster(Side.SOURCE, called(Side.SOURCE, aliases[0]), dict(source)),
        Cluster(Side.TARGET, called(Side.TARGET, aliases[1]), dict(target)),
        _topic_names(aliases, given),
        Side.SOURCE,
        checkpoints_topic="",
        offset_syncs_topic="",
        replicator=ANY,
    )


def _topic_names(aliases: tuple[str, str], given: ClusterOptions) -> TopicNames:
    from migrate.mm2.name_map import NameMap, read_name_map
    from migrate.mm2.other_names import MappedNames

    if given.replication_policy == PolicyKind.DEFAULT:
        separator = given.separator
        return ReplicationPolicy(PolicyKind.DEFAULT, *aliases, "." if separator is None else separator)
    topic_map = given.topic_map
    return MappedNames(*aliases, NameMap() if topic_map is None else read_name_map("--topic-map", topic_map, "topic"))


def time_of(option: str, text: str | None) -> int | None:
    """Return a moment in ms since 1970: a whole number is that already, all else ISO 8601 with its zone.

    Raises `UsageError` for what is none, and for a number that is hardly meant as ms, such as seconds or a date.
    """
    if text is None:
        return None
    if text.isdecimal():
        # The length first: Python does not read thousands of digits.
        digits = text.lstrip("0")
        if len(digits) == len(str(LEAST_MS)) and LEAST_MS <= int(digits) < MOST_MS:
            return int(digits)
    else:
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                return round(moment.timestamp() * 1000)
    raise UsageError(
        f"{option} {text[:60]!r} is not a time.",
        "Give a date and a time with its zone, such as 2026-11-23T22:00:00Z or ...+01:00, or ms since 1970.",
    )


def refuse_password(option_name: str, text: str) -> None:
    """Raise `UsageError` for a URL with a password in it: plans and messages name it, a process list shows it.

    `text` is the URL, or has it behind NAME=.
    """
    # Half of all secret keys have a slash, so that one may look like a port and a path; a bucket has no port.
    if re.search(r"://[^/@:]*:(?!\d+/)[^@]*@", text) or re.search(r"\bs3[an]?://[^/@:]*:[^@]*@", text):
        raise UsageError(
            f"{option_name}: a URL holds a password, which plans, messages and process lists show.",
            "Give it to Spark's file system in spark-defaults.conf, or by a provider of credentials.",
        )

"""The command line's shared options, and what they mean together. No decisions about offsets here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrate.cli.console import one_paragraph, say_beside
from migrate.cli.replicator_options import other_flow, refuse_mixed
from migrate.cli.seconds import Seconds
from migrate.errors import UsageError
from migrate.mm2.flow import Flow, Replicator
from migrate.model import Side
from migrate.survey.policies import (
    UNTRANSLATABLE_REASONS,
    CommitsFrom,
    Policies,
    Rewind,
    Uncommitted,
    parse_untranslatable,
)
from migrate.text import parse_bytes, parse_duration

if TYPE_CHECKING:
    from migrate.match.protocol import Limits
    from migrate.mm2.connectors import Described
    from migrate.survey.filters import Filters

ENVIRONMENT_PREFIX = "MM2_MIGRATE_"
# What affects data is given on the command line of the night, never inherited from a shell's profile.
NEVER_FROM_ENVIRONMENT = frozenset(
    {
        "--execute", "--approve", "--allow-partial", "--accept", "--rewind", "--untranslatable", "--moved", "--by",
        "--source-unreachable", "--consumers-ran", "--to-topic", "--standing", "--grades", "--moving-group", "--side",
        "--uncommitted", "--max-rereads", "--failback", "--source-down", "--commits-as-of",
    }
)  # fmt: skip
# As many questions to brokers as nobody notices; each looks into an old segment of a log.
MOST_LOOKUPS = 100_000
FILE = click.Path(path_type=Path)
Command = Callable[..., Any]


def option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return a click option that `MM2_MIGRATE_<NAME>` also sets, unless it affects data."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    if long not in NEVER_FROM_ENVIRONMENT:
        settings.setdefault("envvar", ENVIRONMENT_PREFIX + long[2:].replace("-", "_").upper())
    return click.option(*names, **settings)


def together(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return several options as one decorator, in the order of the help text."""
    return lambda command: reduce(lambda decorated, decorate: decorate(decorated), reversed(decorators), command)


# What every command has, nearest to its function: logging, debugging, and one paragraph for every error.
command_options = together(
    option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
           help="Format of progress and log lines on stderr."),
    option("--debug", is_flag=True, help="Show stack traces."),
    one_paragraph,
)  # fmt: skip
# What `apply` and `rollback` share.
writing_options = together(
    option("--approve", metavar="FINGERPRINT",
           help="Fingerprint of the reviewed plan: all of it, or at least the first 32 digits."),
    option("--execute", is_flag=True, help="Write. Without it: a dry run with every check."),
    option("--concurrency", type=click.IntRange(1, 100), default=100, show_default=True, metavar="N",
           help="Groups in flight at once."),
    option("--group-timeout", type=Seconds(min=1), default=60.0, show_default=True,
           metavar="SECONDS", help="How long to keep retrying while no group is completed."),
)  # fmt: skip
# Where the clusters are and what MM2 is called there, as a command that asks no cluster has it: it prints them.
printed_cluster_options = together(
    option("--mm2-config", type=FILE, metavar="FILE",
           help="The mm2.properties that runs MirrorMaker 2: brokers, security, policy, topics."),
    option("--connect-url", metavar="URL",
           help="A Kafka Connect worker that runs MM2's connectors: the same facts from its REST API, never "
                "credentials."),
    option("--strimzi", type=FILE, metavar="FILE",
           help="A Strimzi KafkaMirrorMaker2 (YAML): the same facts, never credentials."),
    option("--source", metavar="ALIAS",
           help="Alias of MM2's source, which the groups leave (and come back to with --failback)."),
    option("--target", metavar="ALIAS", help="Alias of MM2's target, which the groups move to."),
    option("--source-config", type=FILE, metavar="FILE",
           help="Java client properties of the source: all of its connection, whatever the others say of it."),
    option("--target-config", type=FILE, metavar="FILE",
           help="Java client properties of the target: all of its connection, whatever the others say of it."),
    option("--replicator", type=click.Choice([str(r) for r in Replicator]),
           help="Who copies: any is a replicator other than MM2, of which only the records are looked at.  "
                "[default: mm2]"),
    option("--topic-map", type=FILE, metavar="FILE",
           help="With --replicator any: CSV of source_topic,target_topic, or regex:REGEX,REPLACEMENT.  [default: names "
                "are unchanged]"),
    option("--replication-policy", type=click.Choice(["default", "identity"]),
           help="How topics are named on the target: ALIAS.topic, or unchanged.  [default: default; with --replicator "
                "any: identity]"),
    option("--separator", metavar="TEXT", help="replication.policy.separator.  [default: .]"),
    option("--offset-syncs-location", type=click.Choice(["source", "target"]),
           help="Where MM2 keeps its offset syncs.  [default: source]"),
    option("--checkpoints-topic", metavar="TOPIC", help="Name of MM2's checkpoints topic."),
    option("--offset-syncs-topic", metavar="TOPIC", help="Name of MM2's offset-syncs topic."),
    option("--connect-offsets-topic", metavar="TOPIC",
           help="Where MM2 keeps its own positions: offset.storage.topic of its Connect worker."),
)  # fmt: skip
# The same, with what asking takes.
cluster_options = together(
    printed_cluster_options,
    option("--request-timeout", type=Seconds(min=0.1), default=30.0, show_default=True,
           metavar="SECONDS", help="Deadline for one request to a cluster."),
)  # fmt: skip
topic_options = together(
    option("--topic", "topics", multiple=True, metavar="REGEX",
           help="Only source topics that match in full."),
    option("--exclude-topic", "exclude_topics", multiple=True, metavar="REGEX",
           help="Leave these source topics out."),
)  # fmt: skip
GROUP_HELP = "Only groups that match in full."
group_option = option("--group", "groups", multiple=True, metavar="REGEX", help=GROUP_HELP)
# Which rows of a plan. Inherited from a shell, they would let `verify` open the gate over rows that it passed over.
row_options = together(
    option("--group", "groups", multiple=True, metavar="REGEX", help=GROUP_HELP, envvar=None),
    option("--only", multiple=True, metavar="DECISION|GRADE|REASON", help="Only rows of this kind.", envvar=None),
)
# Filters on groups and topics.
filter_options = together(
    group_option,
    option("--exclude-group", "exclude_groups", multiple=True, metavar="REGEX",
           help="Leave these groups out; wins over --group."),
    topic_options,
    option("--groups-file", type=FILE, metavar="FILE",
           help="A wave: only the groups listed in this file, one per line."),
)  # fmt: skip
# What groups are called on the target.
group_map_option = option(
    "--group-map", type=FILE, metavar="FILE",
    help="Groups that have another name on the target: CSV with the heading source_group,target_group, or lines "
         "regex:EXPRESSION,REPLACEMENT (full match; \\1 is a group of it); the first line that matches decides. Or a "
         "plan: its groups are called what it says.")  # fmt: skip


def filters_of(options: Mapping[str, Any]) -> "Filters":
    """Return the filters that a command with `filter_options` was given; raises `UsageError` for a wrong one."""
    from migrate.survey.filters import Filters

    names = ("groups", "exclude_groups", "topics", "exclude_topics", "groups_file")
    return Filters.from_options(*(options[name] for name in names))


commits_from_option = option(
    "--commits-from", type=click.Choice([str(c) for c in CommitsFrom]), default=str(CommitsFrom.ADMIN),
    show_default=True,
    help="Ask the groups' coordinators for commits, or read them in __consumer_offsets, pinned, of the cluster that "
         "the groups leave: that also names groups which no listing shows.",
)  # fmt: skip


class _Accept(click.Option):
    """Names the checks only where its help is printed: to know them, all of them are imported."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from migrate.checks.checklist import ACCEPTABLE_CHECKS

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} Checks: {', '.join(ACCEPTABLE_CHECKS)}.")


# What a reviewer decides: waivers, and what becomes of rows that no law translates.
policy_options = together(
    option("--accept", multiple=True, metavar="CHECK[:SUBJECT]", cls=_Accept,
           help="Turn that block into a warning."),
    option("--untranslatable", multiple=True, metavar="[REASON=]block|skip|earliest|latest",
           help="What to do with commits that no rule can translate (default block). "
                f"Reasons: {', '.join(UNTRANSLATABLE_REASONS)}."),
    option("--rewind", type=click.Choice([str(r) for r in Rewind]), default="block", show_default=True,
           help="What to do if the target group is already beyond the planned offset."),
    option("--uncommitted", type=click.Choice([str(u) for u in Uncommitted]), default="ignore",
           show_default=True, help="What to do with partitions of a group's topics that it never committed."),
    option("--max-rereads", type=click.IntRange(min=0), default=1_000_000, show_default=True,
           metavar="N", help="Block a group that would re-read more records than this."),
)  # fmt: skip


def parsed_by(parse: Callable[[str], int]) -> Callable[[click.Context, click.Parameter, str | None], int | None]:
    """Return the callback of an option whose text `parse` reads; it raises `ValueError` where it cannot."""

    def parsed(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return parsed


# What commits are placed by.
by_option = option(
    "--by", type=click.Choice(["records", "timestamp"]), default="records", show_default=True,
    help="Place commits by comparing records, or by timestamps alone: for copies that cannot be compared. All of the "
         "source from the lowest commit on is read for it.",
)  # fmt: skip


# What bounds the comparing of records.
matching_limits = together(
    option("--match-limit", type=click.IntRange(min=1), default=1_000_000, show_default=True,
           metavar="RECORDS", help="Read at most this many offsets of either log per partition; rows that "
                                   "would need more are bounded or estimated."),
    option("--max-fetch", callback=parsed_by(parse_bytes), metavar="BYTES",
           help="Fetch at most about this much from each cluster: 500M, 2G, 1048576. Partitions beyond it "
                "are not compared.  [default: no limit]"),
)  # fmt: skip
matching_options = together(
    matching_limits,
    option("--no-match", is_flag=True,
           help="Compare no records: rows rest on MM2's offset syncs, with timestamps as a guard."),
)  # fmt: skip


def limits_of(options: Mapping[str, Any]) -> "Limits":
    """Return what `by_option` and `matching_options` let be read; raises `UsageError` where they contradict."""
    from migrate.match.protocol import Limits

    by_timestamp = options["by"] == "timestamp"
    if by_timestamp and options["no_match"]:
        raise UsageError(
            "--by timestamp and --no-match exclude each other: timestamps are read from the records.",
            "Omit one of them.",
        )
    return Limits(0 if options["no_match"] else options["match_limit"], options["max_fetch"], by_timestamp)


# Where Spark runs.
spark_options = together(
    option("--master", metavar="URL", help="Spark master, if no session has one.  [default: local[*]]"),
    option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting; repeatable."),
)  # fmt: skip


# What is exported of the offsets topic, and where to.
export_options = together(
    option("--since", metavar="TIME", help="Only records that the broker took at this time or later: "
                                           "2026-11-23T22:00:00Z, or ms since 1970."),
    option("--until", metavar="TIME", help="Only records from before this time: the newest of each key is that of "
                                           "then."),
    option("--latest/--history", "latest", default=True, show_default=True,
           help="The newest record of each key, or every record that is still there."),
    option("--tombstones", is_flag=True, help="Also records that take a commit or a group away."),
    option("--kinds", type=click.Choice(["commits", "groups", "all"]), default="commits", show_default=True,
           help="Commits, groups with their members, or both."),
    option("--format", "form", type=click.Choice(["jsonl", "csv", "parquet"]), required=True, help="What to write."),
    option("--out", metavar="PATH",
           help="A file (jsonl, csv), or a folder or URL (parquet); what exists is refused (exit 3)."),
    option("--to-topic", metavar="TOPIC",
           help="Instead of --out: a topic, which exists, of a cluster that groups do not leave; needs --format jsonl "
                "and --to-config."),
    option("--to-config", type=FILE, metavar="FILE", help="Java client properties of the cluster of --to-topic."),
    option("--max-fetch", callback=parsed_by(parse_bytes), metavar="BYTES",
           help="Refuse (exit 3) to fetch more than about this: 500M, 2G, 1048576.  [default: no limit]"),
)  # fmt: skip


# What is told of groups' commits over time, and where to.
history_options = together(
    option("--since", metavar="TIME", help="Only commits that the broker took at this time or later: "
                                           "2026-11-23T22:00:00Z, or ms since 1970."),
    option("--until", metavar="TIME", help="Only commits from before this time."),
    option("--bucket", callback=parsed_by(parse_duration), default="1m", show_default=True, metavar="DURATION",
           help="One row for each group and partition in so long (10s, 5m, 1h, 1d)."),
    option("--no-lag", is_flag=True, help="Do not ask where logs ended: no end_at_time and no lag."),
    option("--max-lookups", type=click.IntRange(min=0), default=MOST_LOOKUPS, show_default=True, metavar="N",
           help="Refuse (exit 3) to ask for the ends of logs at more (partition, time)."),
    option("--rows", type=click.IntRange(min=1), default=40, show_default=True, metavar="N",
           help="How many rows, the newest, a table shows."),
    option("--format", "form", type=click.Choice(["table", "csv", "parquet"]), default="table", show_default=True,
           help="csv and parquet have all rows."),
    option("--out", metavar="PATH",
           help="A file (csv; without it stdout), or a folder or URL (parquet); what exists is refused (exit 3)."),
    option("--max-fetch", callback=parsed_by(parse_bytes), metavar="BYTES",
           help="Refuse (exit 3) to fetch more than about this: 500M, 2G, 1048576.  [default: no limit]"),
)  # fmt: skip


@dataclass(frozen=True)
class ClusterOptions:
    """The cluster options as given; None where not."""

    mm2_config: Path | None
    source: str | None
    target: str | None
    source_config: Path | None
    target_config: Path | None
    replication_policy: str | None
    separator: str | None
    offset_syncs_location: str | None
    checkpoints_topic: str | None
    offset_syncs_topic: str | None
    connect_offsets_topic: str | None = None
    connect_url: str | None = None
    strimzi: Path | None = None
    replicator: str | None = None
    topic_map: Path | None = None

    @property
    def says_where(self) -> bool:
        """True if some option tells where the clusters are."""
        options = (self.mm2_config, self.connect_url, self.strimzi, self.source_config, self.target_config)
        return any(option is not None for option in options)

    def words(self) -> tuple[str, ...]:
        """Return the options as they would be typed, for the next command to copy."""
        given = ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        pairs = (("--" + name.replace("_", "-"), str(value)) for name, value in given if value is not None)
        return tuple(word for pair in pairs for word in pair)


def take_clusters(options: dict[str, Any]) -> ClusterOptions:
    """Take the cluster options out of a command's options."""
    return ClusterOptions(**{name: options.pop(name) for name in ClusterOptions.__dataclass_fields__})


def resolve_flow(given: ClusterOptions) -> Flow:
    """Return the flow that the cluster options describe; raises `UsageError` where they do not suffice."""
    from migrate.mm2 import config_file as mm2config
    from migrate.mm2.config_providers import resolved
    from migrate.mm2.java_properties import read_properties

    refuse_mixed(vars(given))
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
    told_by = given.mm2_config
    if given.mm2_config is not None:
        flow = mm2config.read_flow(given.mm2_config, source_alias, target_alias, overrides)
        flow = mm2config.with_clients(flow, source_client, target_client)
    elif given.connect_url is not None or given.strimzi is not None:
        told_by = given.strimzi or Path("--connect-url")
        described = _described(given)
        flow = described.flow((source_alias, source_client), (target_alias, target_client), overrides)
    else:
        assert source_client is not None and target_client is not None
        if given.replicator == Replicator.ANY:
            flow = other_flow(source_client, target_client, (source_alias, target_alias), vars(given))
        else:
            flow = mm2config.client_flow(source_client, target_client, source_alias, target_alias, overrides)
    source, target = str(given.source_config or told_by), str(given.target_config or told_by)
    return replace(
        flow,
        source=replace(flow.source, origin=source, properties=resolved(flow.source.properties, source)),
        target=replace(flow.target, origin=target, properties=resolved(flow.target.properties, target)),
    )


def _aliases(given: ClusterOptions) -> tuple[str, str]:
    """Return the flow's two aliases; raises `UsageError` where the options do not go together."""
    settings = {"--mm2-config": given.mm2_config, "--connect-url": given.connect_url, "--strimzi": given.strimzi}
    told_by = [name for name, value in settings.items() if value is not None]
    if len(told_by) > 1:
        raise UsageError(f"{' and '.join(told_by)} exclude each other.", "Say once how MM2 is set up.")
    if not told_by and (given.source_config is None or given.target_config is None):
        raise UsageError(
            "Where are the clusters?",
            "Give --mm2-config FILE (or --connect-url URL, or --strimzi FILE) with --source ALIAS and --target ALIAS, "
            "or --source-config FILE and --target-config FILE with both aliases.",
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


def resolve_policies(options: dict[str, Any]) -> Policies:
    """Take the options of `policy_options` out of a command's, and return the policies that they choose."""
    from migrate.checks.checklist import parse_waiver

    default, by_reason = parse_untranslatable(options.pop("untranslatable"))
    return Policies(
        waivers=tuple(parse_waiver(text) for text in options.pop("accept")),
        untranslatable=default,
        untranslatable_by_reason=by_reason,
        rewind=Rewind(options.pop("rewind")),
        uncommitted=Uncommitted(options.pop("uncommitted")),
        max_rereads=options.pop("max_rereads"),
    )

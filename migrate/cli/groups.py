"""The command group `groups`: parse, one call, print, exit code."""

import sys
from pathlib import Path
from typing import Any

import click

from migrate.cli.console import coloured, print_lines, printed, progress_on_stderr, terminal, terminal_width
from migrate.cli.options import (
    FILE,
    Command,
    by_option,
    cluster_options,
    command_options,
    export_options,
    filter_options,
    group_map_option,
    group_option,
    history_options,
    matching_limits,
    option,
    parsed_by,
    resolve_flow,
    spark_options,
    take_clusters,
    together,
)
from migrate.cli.seconds import Seconds
from migrate.cli.utf8 import print_in_utf8
from migrate.errors import UsageError
from migrate.model import Side
from migrate.text import parse_bytes, parse_duration

_side_option = option(
    "--side", type=click.Choice([str(side) for side in Side]), default=str(Side.SOURCE), show_default=True,
    help="The cluster to ask.",
)  # fmt: skip
# As `filter_options`, but topics are those of one cluster.
_group_options = together(
    group_option,
    option("--exclude-group", "exclude_groups", multiple=True, metavar="REGEX",
           help="Leave these groups out; wins over --group."),
    option("--groups-file", type=FILE, metavar="FILE", help="Only the groups listed in this file, one per line."),
)  # fmt: skip
_topic_options = together(
    option("--topic", "topics", multiple=True, metavar="REGEX",
           help="Only topics that match in full, by their names on the cluster that is asked, and groups that read "
                "them."),
    option("--exclude-topic", "exclude_topics", multiple=True, metavar="REGEX", help="Leave these topics out."),
)  # fmt: skip
_look_options = together(
    option("--watch", is_flag=True, help="Look again every two seconds, until Ctrl-C."),
    option("--timeout", type=Seconds(min=0), metavar="SECONDS",
           help="With --watch: end after this long.  [default: never]"),
    option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
           help="json: one document; with --watch one per look. csv: not with --watch."),
)  # fmt: skip


@click.group(
    short_help="List, describe and compare consumer groups; decide the waves.", subcommand_metavar="COMMAND [OPTIONS]"
)
def groups() -> None:
    """Look at consumer groups: what is there, how far it lags, what belongs together, what both clusters have.

    Changes no group on any cluster. Only `compare`, `export` and `history` need Spark and Java, and `list --records`
    where __consumer_offsets is long.
    """


@groups.command("list", short_help="Show every group: kind, state, members, topics, lag, what deserves attention.")
@cluster_options
@_side_option
@_group_options
@_topic_options
@option(
    "--records",
    is_flag=True,
    help="Read __consumer_offsets too: last commit, empty since when, when offsets expire, how often it commits. With "
    "more than 2,000,000 records to read, Spark reads them, which needs Java.",
)
@option("--idle", callback=parsed_by(parse_duration), metavar="DURATION",
        help="Only groups that nobody has used for so long (3d, 12h), or of which it cannot tell. Implies "
             "--records.")  # fmt: skip
@option(
    "--max-fetch",
    callback=parsed_by(parse_bytes),
    metavar="BYTES",
    help="With --records: refuse (exit 3) to fetch more than about this: 500M, 2G.  [default: no limit]",
)
@_look_options
@spark_options
@command_options
def list_groups(**options: Any) -> int:
    """Show a line for every group of a cluster, of every kind, and what they add up to.

    Exits 1 if something could not be read: it is shown as ?, with the reason, and never as 0.
    """
    from migrate.cli.inventory import run_list

    return _look(run_list, options)


@groups.command(short_help="Show the partitions of groups, as kafka-consumer-groups --describe does.")
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@cluster_options
@_side_option
@option("--all-groups", is_flag=True, help="Describe every group, those too that plan leaves out by default.")
@_look_options
@command_options
def describe(**options: Any) -> int:
    """Show every partition that a group has committed on or is assigned: offset, log end, lag, member.

    LOG-END-OFFSET and LAG are those of kafka-consumer-groups: records of open transactions count. Exits 1 if a group is
    not there, or something could not be read.
    """
    from migrate.cli.inventory import run_describe

    return _look(run_describe, options)


@groups.command(short_help="Compare what groups have committed on both clusters, by translation.")
@cluster_options
@filter_options
@group_map_option
@option("--within", type=click.IntRange(min=0), default=0, show_default=True, metavar="RECORDS",
        help="Let groups be behind by at most this many records; ahead is never let pass.")  # fmt: skip
@option("--no-match", is_flag=True,
        help="Compare no records: translations rest on MM2's offset syncs alone, and are lower bounds. Takes seconds, "
             "and needs neither Spark nor Java.")  # fmt: skip
@by_option
@matching_limits
@option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
        help="json: one document. json and csv have every row.")  # fmt: skip
@spark_options
@command_options
def compare(**options: Any) -> int:
    """Compare what groups have committed on the target with what their source commits translate to.

    Whoever wrote it: MM2's own group sync, `apply`, a tool, consumers. Commits of the source are translated as `plan`
    does it; numbers of two clusters are never compared. --no-match needs neither Spark nor Java, and answers from MM2's
    topics alone, which proves nothing. Exits 1 unless every row is proven to be equal, or behind by at most --within
    records, and all could be seen.
    """
    from migrate.cli.compare import run_compare

    flow = resolve_flow(take_clusters(options))
    progress = progress_on_stderr(options.pop("log_format"))
    if options["form"] == "csv":
        print_in_utf8()
    return run_compare(flow, progress, print_lines, width=terminal_width, colour=coloured(), **options)


@groups.command(short_help="Pack groups that share topics into waves, and write them as groups files.")
@cluster_options
@_side_option
@_group_options
@option("--max-groups", type=click.IntRange(min=1), default=100, show_default=True, metavar="N",
        help="How many groups a wave should have at most; groups that go together are never split.")  # fmt: skip
@option("--by", default="topics", show_default=True, metavar="topics|'prefix REGEX'",
        help="What keeps groups together: a topic that they share, or that REGEX matches the same text at the "
             "beginning of their names (its first group in parentheses, if it has one).")  # fmt: skip
@option("--out-dir", type=FILE, default=Path(), show_default=".", metavar="DIR",
        help="Folder to write wave1.txt, wave2.txt and so on to; refused (exit 3) if it has such files.")  # fmt: skip
@command_options
def waves(**options: Any) -> int:
    """Decide which groups move together, and write a groups file for each wave.

    Groups that read the same topic go together, and those that a chain of topics connects. Exits 1 if something could
    not be read: a group that is missing here is missing in the waves.
    """
    from migrate.cli.inventory import run_waves

    flow = resolve_flow(take_clusters(options))
    progress = progress_on_stderr(options.pop("log_format"))
    return printed(*run_waves(flow, progress, **terminal(), **options))


@groups.command(short_help="Export __consumer_offsets: every commit and group as JSON lines, CSV or Parquet.")
@cluster_options
@_side_option
@_group_options
@_topic_options
@export_options
@spark_options
@command_options
def export(**options: Any) -> int:
    """Read __consumer_offsets in full with Spark, and write the newest commit of every group and partition.

    --history writes every record that compaction has left. What was read, written and left out is said in the end.
    Exits 1 if something that was asked for could not be given, with a line for each: commits that an open transaction
    hides, records that cannot be decoded, a group that is named and has no record.
    """
    from migrate.cli.export import run_export

    flow = resolve_flow(take_clusters(options))
    return run_export(flow, progress_on_stderr(options.pop("log_format")), **options)


@groups.command(short_help="Show what groups have committed over time: offset, rate and lag per partition.")
@cluster_options
@_side_option
@_group_options
@_topic_options
@history_options
@spark_options
@command_options
def history(**options: Any) -> int:
    """Read __consumer_offsets with Spark, and tell how each group went on: a row for each partition and --bucket.

    It goes back only as far as the log cleaner has left commits: the topic is compacted by default. Lag is always an
    estimate: the log's end at a past time is asked for by the timestamps of its records. Exits 1 if something that is
    there could not be read.
    """
    from migrate.cli.history import run_history

    flow = resolve_flow(take_clusters(options))
    progress = progress_on_stderr(options.pop("log_format"))
    if options["form"] == "csv":
        print_in_utf8()
    return run_history(flow, progress, print_lines, **terminal(), **options)


def _look(run: Command, options: dict[str, Any]) -> int:
    """Run a command that looks once, or again and again."""
    if options["timeout"] is not None and not options["watch"]:
        raise UsageError("--timeout says how long to watch.", "Give --watch too, or omit it.")
    if options["watch"] and options["form"] == "csv":
        raise UsageError("--watch and --format csv exclude each other.", "Use --format json, a document per line.")
    flow = resolve_flow(take_clusters(options))
    progress = progress_on_stderr(options.pop("log_format"))
    if options["form"] == "csv":
        print_in_utf8()
    screen = {"width": terminal_width, "colour": coloured(), "on_terminal": sys.stdout.isatty()}
    code: int = run(flow, progress, print_lines, **screen, **options)
    return code

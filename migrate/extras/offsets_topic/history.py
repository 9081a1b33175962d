"""What `groups history` does: read the offsets topic through Spark into a time series, ask where logs ended, show it.

No cluster is changed.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from migrate.cli.choices import FilterOptions
from migrate.cli.console import Terminal, print_in_utf8, reader_has_gone
from migrate.cli.flows import reached_flow
from migrate.cli.options import OnOneCluster, ParsedBy, flag, option
from migrate.clock import Clock, SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, ClusterError, Refused, UsageError
from migrate.extras.offsets_topic.export import CSV, PARQUET, Written, opened_place, period_of, refuse_place, waited_for
from migrate.extras.offsets_topic.history_values import HistoryRequest, HistoryResult, lookups_of
from migrate.extras.offsets_topic.text import announcement, history_summary, history_table
from migrate.kafka.log_times import PlaceTime
from migrate.mm2.topics import MOST_HELD
from migrate.progress import LineProgress
from migrate.session.clusters import Endpoint, starting_spark
from migrate.session.options import SparkOptions
from migrate.show.lines import wrapped
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.offsets_pin import OffsetsPin, named_groups, pin_offsets_topic, refuse_beyond
from migrate.text import many, parse_bytes, parse_duration

if TYPE_CHECKING:
    from migrate.extras.offsets_topic.series import CommitSeries

TABLE = "table"
# As many questions to brokers as nobody notices; each looks into an old segment of a log.
MOST_LOOKUPS = 100_000
Print = Callable[[Iterable[str]], None]


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(OnOneCluster):
    """What is shown of groups' commits over time, and where it goes."""

    since: str | None = option(
        "Only commits that the broker took at this time or later: 2026-11-23T22:00:00Z, or ms since 1970.",
        metavar="TIME")  # fmt: skip
    until: str | None = option("Only commits from before this time.", metavar="TIME")
    bucket: int = option(
        "One row for each group and partition in so long (10s, 5m, 1h, 1d).",
        default=60_000, type=ParsedBy(parse_duration), metavar="DURATION", show_default="1m")  # fmt: skip
    no_lag: bool = flag("Do not ask where logs ended: no end_at_time and no lag.")
    max_lookups: int = option(
        "Refuse (exit 3) to ask for the ends of logs at more (partition, time).",
        default=MOST_LOOKUPS, type=click.IntRange(min=0), metavar="N")  # fmt: skip
    rows: int = option("How many rows, the newest, a table shows.", default=40, type=click.IntRange(min=1), metavar="N")
    form: str = option(
        "csv and parquet have all rows.",
        name="--format", default=TABLE, type=click.Choice([TABLE, CSV, PARQUET]))  # fmt: skip
    out: str | None = option(
        "A file (csv; without it stdout), or a folder or URL (parquet); what exists is refused (exit 3).",
        metavar="PATH")  # fmt: skip
    max_fetch: int | None = option(
        "Refuse (exit 3) to fetch more than about this: 500M, 2G, 1048576.  [default: no limit]",
        type=ParsedBy(parse_bytes), metavar="BYTES")  # fmt: skip
    filters: FilterOptions = FilterOptions()
    spark: SparkOptions = SparkOptions()


def history(options: HistoryOptions) -> int:
    """Read __consumer_offsets with Spark, and tell how each group went on: a row for each partition and --bucket.

    It goes back only as far as the log cleaner has left commits: the topic is compacted by default. Lag is always an
    estimate: the log's end at a past time is asked for by the timestamps of its records. Exits 1 if something that is
    there could not be read.
    """
    flow = reached_flow(options.clusters, options.form != "table")
    progress = options.log.progress()
    if options.form == CSV:
        print_in_utf8()
    terminal = Terminal.here()
    from migrate.extras.offsets_topic.series import commit_series
    from migrate.spark.consumer_offsets import offsets_session, topic_reader
    from migrate.spark.dataframes import reading_topic
    from migrate.survey.offsets_topic import OFFSETS_TOPIC

    asked, out, form = request_of(options, SystemClock().now_ms()), options.out or "", options.form
    _refuse_out(out, form)
    of = options.endpoint(flow)
    with starting_spark(options.spark, of.cluster, small=False) as spark:
        pin, request = _pinned(of, asked, options.max_fetch, progress)
        session = offsets_session(spark, pin.offsets <= MOST_HELD)
        with _place(session, out, form, terminal.show) as write:
            progress.step(announcement(pin, pin.offsets_bytes))
            with (
                reading_topic(of.java, OFFSETS_TOPIC),
                commit_series(topic_reader(session, of.java), pin.logs, pin.partitions, request) as series,
            ):
                result = HistoryResult(series.counted, series.rows, not options.no_lag)
                if form == TABLE:
                    series = series.newest(options.rows)
                if result.with_lag:
                    series, result = _with_ends(of, series, result, options.max_lookups, progress)
                progress.end()
                if form == TABLE:
                    terminal.show(history_table(series.shown(), result, request, terminal.width, terminal.colour))
                elif write(series) != result.rows and not (reader_has_gone() and not out):
                    raise ClusterError(
                        f"{out or 'The output'} has not as many rows as were read.", "Run the command again."
                    )
    _say(result, pin, out, form, progress, terminal)
    return EXIT_DONE if result.is_whole and not pin.open_ends else EXIT_FAILED


def request_of(options: HistoryOptions, now_ms: int) -> HistoryRequest:
    """Return what the options ask for; raises `UsageError` where they contradict each other."""
    since_ms, until_ms = period_of(options.since, options.until, "commit")
    if not options.bucket:
        raise UsageError("--bucket 0 has no length.", "Give one of a second or more: 10s, 1m, 1h, 1d.")
    return HistoryRequest(options.bucket, now_ms, options.filters.filters(), since_ms, until_ms)


def _refuse_out(out: str, form: str) -> None:
    """Raise `UsageError` where the format and --out do not fit together, and what `refuse_place` raises."""
    if form == PARQUET and not out:
        raise UsageError("--format parquet needs a place.", "Give --out FOLDER, or a URL.")
    if form == TABLE and out:
        raise UsageError("--format table is for the screen.", "Omit --out, or give --format csv or parquet.")
    if out:
        refuse_place(out, form)


def _pinned(
    of: Endpoint, asked: HistoryRequest, max_fetch: int | None, progress: LineProgress
) -> tuple[OffsetsPin, HistoryRequest]:
    """Pin the topic, and wait for transactions that were open then while Spark starts."""
    with closing(of.admin()) as admin:
        progress.step(f"reaching {admin.alias}")
        admin.facts()
        pin, request = pinned_now(admin, asked, SystemClock())
        refuse_beyond(max_fetch, pin.offsets_bytes, pin.alias)
        return waited_for(admin, pin, progress, SystemClock()), request


def pinned_now(admin: ClusterAdmin, asked: HistoryRequest, clock: Clock) -> tuple[OffsetsPin, HistoryRequest]:
    """Return the topic's pin, and the request with the time of it. Raises what `pin_offsets_topic` does."""
    pin = pin_offsets_topic(admin, named_groups(asked.filters))
    # Of an earlier time (a cluster is reached in seconds) the newest rows would tell commits that came after it.
    return pin, replace(asked, now_ms=clock.now_ms())


def _with_ends(
    of: Endpoint, series: "CommitSeries", result: HistoryResult, most: int, progress: LineProgress
) -> "tuple[CommitSeries, HistoryResult]":
    """Add where the logs ended; raises `Refused` if that is more questions than are allowed."""
    from migrate.extras.offsets_topic.log_ends import ends_at
    from migrate.kafka.log_times import LogTimes

    problem = lookups_of(series.lookups(), most)
    if problem:
        raise Refused(
            problem,
            "Give a longer --bucket, --since or --group, allow more, or omit log ends and lag with --no-lag.",
        )
    wanted: list[PlaceTime] = series.places()
    progress.step(f"asking {of.cluster.alias} for the ends of logs at {many(len(wanted), 'time')} of partitions")
    with closing(of.admin()) as admin:
        ends = ends_at(admin, LogTimes(of.kafka, of.deadline_seconds, progress), wanted)
    series = series.with_ends(ends)
    return series, replace(result, unseen=series.unseen())


@contextmanager
def _place(session: Any, out: str, form: str, show: Print) -> Iterator[Written]:
    """Yield what writes the rows and returns how many."""
    if out:
        with opened_place(session, out, form) as write:
            yield write
    else:
        yield lambda series: _counted(series.csv_lines(), show)


def _counted(lines: Iterable[str], write: Print) -> int:
    """Write lines, the first of which is a header; return how many there are behind it."""
    count = -1

    def counting() -> Iterator[str]:
        nonlocal count
        for line in lines:
            count += 1
            yield line

    write(counting())
    return count


def _say(
    result: HistoryResult, pin: OffsetsPin, out: str, form: str, progress: LineProgress, terminal: Terminal
) -> None:
    lines = history_summary(result, pin, out)
    if form == TABLE:
        terminal.show(["", *(part for line in lines for part in wrapped(line, terminal.width))])
        return
    for line in lines:
        progress.say(line)

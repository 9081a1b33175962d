"""`groups list`, `describe` and `waves`: read one cluster, print. They change nothing on it."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

import click

from migrate.cli.choices import FilterOptions, GroupOptions
from migrate.cli.console import Ended, ReaderGone, Terminal, print_in_utf8, printed, reader_has_gone
from migrate.cli.flows import reached_flow
from migrate.cli.options import (
    FILE,
    OnOneCluster,
    ParsedBy,
    Seconds,
    argument,
    flag,
    option,
)
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.extras.inventory.describe import (
    DescribedGroup,
    describe_groups,
    description_csv,
    description_document,
    description_lines,
    lines_beside_csv,
    not_visible,
)
from migrate.extras.inventory.group_records import RecordsOfAnyLength
from migrate.extras.inventory.listing import (
    Inventory,
    inventory_of,
    listing_csv,
    listing_document,
    listing_lines,
    unread_lines,
)
from migrate.extras.inventory.read import ClusterGroups, read_groups
from migrate.extras.inventory.spark_records import spark_records
from migrate.extras.inventory.waves import (
    NOT_IN_A_FILE,
    GroupsToMove,
    Waves,
    groups_to_move,
    refuse_waves_in,
    wave_report,
    waves_by_prefix,
    waves_by_topics,
    write_waves,
)
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.progress import LineProgress, Timer
from migrate.session.clusters import Endpoint
from migrate.session.options import SparkOptions
from migrate.show.lines import wrapped
from migrate.show.screen import Draw, screen_if
from migrate.show.status import late_line, late_text
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.filters import Filters
from migrate.text import Colour, duration_text, parse_bytes, parse_duration
from migrate.watch import BackgroundLook, Glance, LastStep, watch_until_over

T = TypeVar("T")
Described = tuple[ClusterGroups, tuple[DescribedGroup, ...]]
Forms = Mapping[str, Callable[[T], Iterator[str]]]


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """How often to look, and how it is shown."""

    watch: bool = flag("Look again every two seconds, until Ctrl-C.")
    timeout: float | None = option(
        "With --watch: end after this long.  [default: never]", type=Seconds(min=0), metavar="SECONDS")  # fmt: skip
    form: str = option(
        "json: one document; with --watch one per look. csv: not with --watch.",
        name="--format", default="table", type=click.Choice(["table", "json", "csv"]))  # fmt: skip

    def refuse_contradictions(self) -> None:
        """Raise `UsageError` for options that do not go together."""
        if self.timeout is not None and not self.watch:
            raise UsageError("--timeout says how long to watch.", "Give --watch too, or omit it.")
        if self.watch and self.form == "csv":
            raise UsageError("--watch and --format csv exclude each other.", "Use --format json, a document per line.")


@dataclass(frozen=True, kw_only=True)
class ListOptions(OnOneCluster):
    """Which groups are listed, and what is read of each."""

    records: bool = flag(
        "Read __consumer_offsets too: last commit, empty since when, when offsets expire, how often it commits. With "
        "more than 2,000,000 records to read, Spark reads them, which needs Java.")  # fmt: skip
    idle: int | None = option(
        "Only groups not used for so long (3d, 12h), or whose last use is unknown. Implies --records.",
        type=ParsedBy(parse_duration), metavar="DURATION")  # fmt: skip
    stalled: int | None = option(
        "Look twice, so long apart (30s, 5m): a group is stalled if it has members, had records to read on a partition "
        "at the first look, and has the same commit there at the second. Choose longer than groups take from one "
        "commit to the next.", type=ParsedBy(parse_duration), metavar="DURATION")  # fmt: skip
    max_fetch: int | None = option(
        "With --records: refuse (exit 3) to fetch more than about this: 500M, 2G.  [default: no limit]",
        type=ParsedBy(parse_bytes), metavar="BYTES")  # fmt: skip
    look: LookOptions = LookOptions()
    filters: FilterOptions = FilterOptions()
    spark: SparkOptions = SparkOptions()


@dataclass(frozen=True, kw_only=True)
class DescribeOptions(OnOneCluster):
    """Which groups are described."""

    names: tuple[str, ...] = argument("[GROUP]...", nargs=-1, required=False, default=())
    all_groups: bool = flag("Describe every group, those too that plan leaves out by default.")
    look: LookOptions = LookOptions()


@dataclass(frozen=True, kw_only=True)
class WavesOptions(OnOneCluster):
    """Which groups move together, and where the groups files go."""

    max_groups: int = option(
        "How many groups a wave should have at most; groups that go together are never split.",
        default=100, type=click.IntRange(min=1), metavar="N")  # fmt: skip
    by: str = option(
        "What keeps groups together: a topic that they share, or that REGEX matches the same text at the beginning of "
        "their names (its first group in parentheses, if it has one).",
        default="topics", metavar="topics|'prefix REGEX'")  # fmt: skip
    out_dir: Path = option(
        "Folder to write wave1.txt, wave2.txt and so on to; refused (exit 3) if it has such files.",
        default=Path(), type=FILE, metavar="DIR", show_default=".")  # fmt: skip
    groups: GroupOptions = GroupOptions()


def list_groups(options: ListOptions) -> int:
    """Show a line for every group of a cluster, of every kind, and what they add up to.

    Exits 1 if something could not be read: it is shown as ?, with the reason, and never as 0.
    """
    return run_list(options, *_begun(options), Terminal.here())


def describe(options: DescribeOptions) -> int:
    """Show every partition that a group has committed on or is assigned: offset, log end, lag, member.

    LOG-END-OFFSET and LAG are those of kafka-consumer-groups: records of open transactions count. Members with no
    partition assigned are idle: the group has more members than partitions. Exits 1 if a group is not there, or
    something could not be read.
    """
    return run_describe(options, *_begun(options), Terminal.here())


def waves(options: WavesOptions) -> int:
    """Decide which groups move together, and write a groups file for each wave.

    Groups that read the same topic go together, and those that a chain of topics connects. Exits 1 if something could
    not be read: a group that is missing here is missing in the waves.
    """
    flow = reached_flow(options.clusters)
    return printed(*run_waves(options, flow, options.log.progress(), Terminal.here()))


def _begun(options: ListOptions | DescribeOptions) -> tuple[Flow, LineProgress]:
    options.look.refuse_contradictions()
    flow = reached_flow(options.clusters, options.look.form != "table")
    if options.look.form == "csv":
        print_in_utf8()
    return flow, options.log.progress()


def run_list(options: ListOptions, flow: Flow, progress: LineProgress, terminal: Terminal) -> int:
    """Print every group inside the filters; return 1 if something could not be read."""
    filters, idle_ms = options.filters.filters(), options.idle
    with_records = options.records or idle_ms is not None
    if with_records and options.look.watch:
        problem = "--watch does not go with --records or --idle, which read __consumer_offsets in full for every look."
        raise UsageError(problem, "Omit one of them.")
    if options.stalled is not None and options.look.watch:
        raise UsageError("--watch and --stalled exclude each other.", "--stalled looks twice by itself: omit one.")

    of = options.endpoint(flow)
    long = partial(spark_records, of, options.spark)

    def look(admin: ClusterAdmin, timer: Timer) -> Inventory:
        by_length = RecordsOfAnyLength(admin, long, progress, SystemClock(), options.max_fetch)
        earlier = None
        if options.stalled is not None:
            earlier, seconds = read_groups(admin, filters, timer), options.stalled / 1000
            text = f"waiting {duration_text(seconds)} for the second look"
            timer.run("wait", text, lambda: timer.clock.wait(seconds))
        read = read_groups(admin, filters, timer, records=by_length if with_records else None)
        return inventory_of(read, idle_ms, earlier)

    forms: Forms[Inventory] = {
        "table": lambda seen: listing_lines(seen, terminal.width, terminal.colour),
        "csv": listing_csv,
        "json": listing_document,
    }
    seen = _look(of, Teller(forms[options.look.form], options.look, progress, terminal), look)
    if options.look.form == "csv":
        _say_unread(seen.read, {g.group: g.not_visible() for g in seen.groups}, progress, terminal)
    return EXIT_DONE if seen.is_whole else EXIT_FAILED


def run_describe(options: DescribeOptions, flow: Flow, progress: LineProgress, terminal: Terminal) -> int:
    """Print the partitions of the groups that were named; return 1 if something could not be read, or is not there."""
    names = options.names
    if bool(names) == options.all_groups:
        raise UsageError("Which groups?", "Name them, or give --all-groups; not both.")
    filters = Filters(groups_file=frozenset(names)) if names else None

    def look(admin: ClusterAdmin, timer: Timer) -> Described:
        read = read_groups(admin, filters, timer)
        # Groups that were not named have been left out by no filter.
        return replace(read, filtered={}), describe_groups(read)

    forms: Forms[Described] = {
        "table": lambda seen: description_lines(*seen, terminal.width, terminal.colour),
        "csv": lambda seen: description_csv(seen[1]),
        "json": lambda seen: description_document(*seen),
    }
    teller = Teller(forms[options.look.form], options.look, progress, terminal)
    read, described = _look(options.endpoint(flow), teller, look)
    if options.look.form == "csv":
        for line in lines_beside_csv(described):
            progress.say(line)
        _say_unread(read, {group.group: not_visible(group) for group in described}, progress, terminal)
    is_whole = all(group.is_whole for group in described) and not (read.missing or read.unseen and not names)
    return EXIT_DONE if is_whole else EXIT_FAILED


def _say_unread(
    read: ClusterGroups, reasons: Mapping[str, Mapping[str, str]], progress: LineProgress, terminal: Terminal
) -> None:
    """Say beside CSV, which has no place for it, what could not be read and who is not there."""
    for line in filter(None, unread_lines(read, reasons, terminal.width, False)):
        progress.say(line)


def run_waves(options: WavesOptions, flow: Flow, progress: Progress, terminal: Terminal) -> tuple[list[str], int]:
    """Write the waves; return the report and the exit code: 1 if something could not be read.

    Raises `Refused` before anything is read if the folder has waves already.
    """
    # Of every topic: groups that share one which a filter takes would be split without a word.
    filters, folder = options.groups.filters(), options.out_dir
    pack = packing(options.by, options.max_groups)
    refuse_waves_in(folder)
    with closing(options.endpoint(flow).admin()) as admin:
        read = read_groups(admin, filters, Timer(SystemClock(), progress), with_ends=False)
    moved = groups_to_move(read)
    packed = pack(moved)
    files = write_waves(packed.waves, folder)
    lines = wave_report(read, packed, moved, list(map(str, files)), terminal.width, terminal.colour)
    is_whole = not (moved.unread or read.unseen or read.missing or NOT_IN_A_FILE in moved.left_out)
    return list(lines), EXIT_DONE if is_whole else EXIT_FAILED


def packing(by: str, max_groups: int) -> Callable[[GroupsToMove], Waves]:
    """Return what packs groups as `--by` says; raises `UsageError` where that says neither topics nor a prefix."""
    word, _, expression = by.strip().partition(" ")
    if word == "topics" and not expression:
        return lambda moved: waves_by_topics(moved.reads, max_groups)
    if word != "prefix" or not expression.strip():
        raise UsageError(f"--by {by!r} is neither topics nor 'prefix REGEX'.", "For example --by 'prefix [a-z]+-'.")
    try:
        prefix = re.compile(expression.strip())
    except re.error as error:
        raise UsageError(f"--by {by!r} has no regular expression: {error}.", "For example 'prefix [a-z]+-'.") from None
    return lambda moved: waves_by_prefix(moved.reads, max_groups, prefix)


def _look(of: Endpoint, teller: "Teller[T]", look: Callable[[ClusterAdmin, Timer], T]) -> T:
    """Look once, or again and again, and print what was seen; return the last of it."""
    clock, asked, admin, in_use = SystemClock(), teller.asked, of.admin(), Lock()
    try:
        if not asked.watch:
            seen = look(admin, Timer(clock, teller.progress))
        else:
            step = LastStep()

            def once() -> T:
                with in_use:
                    return look(admin, Timer(clock, step))

            with screen_if(teller.terminal.is_screen and asked.form != "json") as teller.draw:
                begin = partial(BackgroundLook, once, step)
                seen = teller.unless_left(lambda: watch_until_over(begin, asked.timeout, clock, teller))
    finally:
        # As in `status_session`: a client that is closed under a question can take the process with it.
        if not in_use.locked():
            admin.close()
    if not asked.watch or (teller.terminal.is_screen and asked.form == "table"):
        teller.terminal.show(teller.lines(seen))
    return seen


@dataclass
class Teller(Generic[T]):
    """Shows what a watch sees: on a terminal's screen, else one look after the other; JSON is a document per line."""

    lines: Callable[[T], Iterator[str]]
    asked: LookOptions
    progress: LineProgress
    terminal: Terminal
    draw: Draw | None = None
    _last: Glance[T] | None = None

    def __call__(self, glance: Glance[T]) -> None:
        """Show the newest look; on a screen also how old it is, every second."""
        self._last = glance
        if self.draw:
            self.draw(self._drawn(glance))
        elif glance.is_tick:
            return
        elif not glance.freshness.is_current:
            self.progress.say(late_line(glance, "look"))
        elif glance.seen is not None:
            whole = self.lines(glance.seen)
            self.terminal.show(["".join(whole)] if self.asked.form == "json" else [*whole, ""])
            if reader_has_gone():
                raise ReaderGone

    def unless_left(self, watch: Callable[[], T]) -> T:
        """Return what a watch returns, or its last look where somebody leaves it: with Ctrl-C, or by closing its pipe.

        Raises `KeyboardInterrupt` where there is no look, the newest one failed, or the next one is late.
        """
        try:
            return watch()
        except Ended:
            raise
        except (KeyboardInterrupt, ReaderGone):
            last = self._last
            if last is None or last.seen is None or not last.freshness.is_current:
                raise
            return last.seen

    def _drawn(self, glance: Glance[T]) -> Iterator[str]:
        late = late_text(glance.freshness)
        read = glance.seen is not None
        age = f"Read {duration_text(glance.freshness.age_seconds)} ago." if read else "Looking for the first time."
        shade = Colour.RED if late and self.terminal.colour else None
        yield from wrapped(f"{age} {late}".rstrip(), self.terminal.width, colour=shade)
        if glance.seen is not None:
            yield from self.lines(glance.seen)

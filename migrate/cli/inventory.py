"""What the `groups` commands do: wire the edges, read one cluster, print. They change nothing on it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from migrate.cli.console import Ended, ReaderGone, reader_has_gone
from migrate.cli.inventory_wiring import InventorySession, inventory_session
from migrate.cli.options import filters_of
from migrate.clock import SystemClock
from migrate.errors import EXIT_DONE, EXIT_FAILED, UsageError
from migrate.inventory.describe import DescribedGroup, describe_groups
from migrate.inventory.group_waves import (
    NOT_IN_A_FILE,
    GroupsToMove,
    Waves,
    groups_to_move,
    refuse_waves_in,
    waves_by_prefix,
    waves_by_topics,
    write_waves,
)
from migrate.inventory.listing import Inventory, inventory_of
from migrate.inventory.read import ClusterGroups, read_groups
from migrate.mm2.flow import Flow
from migrate.ports import Progress
from migrate.progress import LineProgress, Timer
from migrate.show.describe import (
    description_csv,
    description_document,
    description_lines,
    lines_beside_csv,
    not_visible,
)
from migrate.show.group_waves import wave_report
from migrate.show.lines import wrapped
from migrate.show.listing import listing_csv, listing_document, listing_lines, unread_lines
from migrate.show.screen import Screen
from migrate.show.status import late_text
from migrate.survey.filters import Filters
from migrate.text import Colour, duration_text
from migrate.watch import Asking, BackgroundLook, Glance, watch_until_over

T = TypeVar("T")
Print = Callable[[Iterable[str]], None]


def run_list(flow: Flow, progress: LineProgress, show: Print, **options: Any) -> int:
    """Print every group inside the filters; return 1 if something could not be read."""
    filters = filters_of(options)
    idle_ms: int | None = options["idle"]
    with_records = options["records"] or idle_ms is not None
    if with_records and options["watch"]:
        problem = "--watch does not go with --records or --idle, which read __consumer_offsets in full for every look."
        raise UsageError(problem, "Omit one of them.")

    def look(edges: InventorySession, timer: Timer) -> Inventory:
        return inventory_of(
            read_groups(edges.admin, filters, timer, records=edges.records if with_records else None), idle_ms
        )

    seen: Inventory = _look(flow, progress, show, options, look, lambda inventory: _listed(inventory, options))
    _say_unread(seen.read, {g.group: g.not_visible() for g in seen.groups}, progress, options)
    return EXIT_DONE if seen.is_whole else EXIT_FAILED


def run_describe(flow: Flow, progress: LineProgress, show: Print, **options: Any) -> int:
    """Print the partitions of the groups that were named; return 1 if something could not be read, or is not there."""
    names: tuple[str, ...] = options["names"]
    if bool(names) == options["all_groups"]:
        raise UsageError("Which groups?", "Name them, or give --all-groups; not both.")
    filters = Filters(groups_file=frozenset(names)) if names else None
    read, described = _look(
        flow, progress, show, options, lambda edges, timer: _described(read_groups(edges.admin, filters, timer)),
        lambda seen: _description(*seen, options),
    )  # fmt: skip
    if options["form"] == "csv":
        for line in lines_beside_csv(described):
            progress.say(line)
    _say_unread(read, {group.group: not_visible(group) for group in described}, progress, options)
    is_whole = all(group.is_whole for group in described) and not (read.missing or read.unseen and not names)
    return EXIT_DONE if is_whole else EXIT_FAILED


def _say_unread(
    read: ClusterGroups, reasons: Mapping[str, Mapping[str, str]], progress: LineProgress, options: Mapping[str, Any]
) -> None:
    """Say beside CSV, which has no place for it, what could not be read and who is not there."""
    if options["form"] == "csv":
        for line in filter(None, unread_lines(read, reasons, options["width"](), False)):
            progress.say(line)


def run_waves(flow: Flow, progress: Progress, **options: Any) -> tuple[list[str], int]:
    """Write the waves; return the report and the exit code: 1 if something could not be read.

    Raises `Refused` before anything is read if the folder has waves already.
    """
    # Of every topic: groups that share one which a filter takes would be split without a word.
    filters = filters_of({**options, "topics": (), "exclude_topics": ()})
    pack = packing(options["by"], options["max_groups"])
    folder: Path = options["out_dir"]
    refuse_waves_in(folder)
    with inventory_session(flow, progress, options) as edges:
        read = read_groups(edges.admin, filters, Timer(SystemClock(), progress), with_ends=False)
    moved = groups_to_move(read)
    packed = pack(moved)
    files = write_waves(packed.waves, folder)
    lines = wave_report(read, packed, moved, list(map(str, files)), options["width"], options["colour"])
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


def _described(read: ClusterGroups) -> tuple[ClusterGroups, tuple[DescribedGroup, ...]]:
    # Groups that were not named have been left out by nobody's filter.
    return replace(read, filtered={}), describe_groups(read)


def _listed(inventory: Inventory, options: Mapping[str, Any]) -> Iterator[str]:
    if options["form"] == "json":
        return listing_document(inventory)
    if options["form"] == "csv":
        return listing_csv(inventory)
    return listing_lines(inventory, options["width"](), options["colour"])


def _description(read: ClusterGroups, groups: tuple[DescribedGroup, ...], options: Mapping[str, Any]) -> Iterator[str]:
    if options["form"] == "json":
        return description_document(read, groups)
    if options["form"] == "csv":
        return description_csv(groups)
    return description_lines(read, groups, options["width"](), options["colour"])


def _look(
    flow: Flow,
    progress: LineProgress,
    show: Print,
    options: Mapping[str, Any],
    look: Callable[[InventorySession, Timer], T],
    lines: Callable[[T], Iterator[str]],
) -> T:
    """Look once, or again and again, and print what was seen; return the last of it."""
    clock = SystemClock()
    with inventory_session(flow, progress, options) as edges:
        if not options["watch"]:
            seen = look(edges, Timer(clock, progress))
        else:
            asking = Asking(clock)
            teller = Watcher(lines, show, progress, options)

            def once() -> T:
                with edges.in_use:
                    return look(edges, Timer(clock, asking))

            with teller.screen():
                begin = partial(BackgroundLook, once, asking)
                seen = teller.unless_left(lambda: watch_until_over(begin, options["timeout"], clock, teller))
    if not options["watch"] or (options["on_terminal"] and options["form"] == "table"):
        show(lines(seen))
    return seen


@dataclass
class Watcher(Generic[T]):
    """Shows what a watch sees: on a terminal's screen, else one look after the other; JSON is a document per line.

    `_body` is a look as it was last drawn on the screen, and the width that it was drawn for.
    """

    lines: Callable[[T], Iterator[str]]
    show: Print
    progress: LineProgress
    options: Mapping[str, Any]
    _screen: Screen | None = None
    _last: Glance[T] | None = None
    _body: tuple[T, int, tuple[str, ...]] | None = None

    @contextmanager
    def screen(self) -> Iterator[None]:
        """Take the terminal's screen, if there is one."""
        if not self.options["on_terminal"] or self.options["form"] == "json":
            yield
            return
        with Screen() as self._screen:
            yield
        self._screen = None

    def __call__(self, glance: Glance[T]) -> None:
        """Show the newest look; on a screen also how old it is, every second."""
        self._last = glance
        if self._screen:
            self._screen.draw(self._drawn(glance))
        elif glance.is_tick:
            return
        elif not glance.freshness.is_current:
            self.progress.say(_late_line(glance))
        elif glance.seen is not None:
            whole = self.lines(glance.seen)
            self.show(["".join(whole)] if self.options["form"] == "json" else [*whole, ""])
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
        width = self.options["width"]()
        late = late_text(glance.freshness)
        read = glance.seen is not None
        age = f"Read {duration_text(glance.freshness.age_seconds)} ago." if read else "Looking for the first time."
        shade = Colour.RED if late and self.options["colour"] else None
        yield from wrapped(f"{age} {late}".rstrip(), width, colour=shade)
        if glance.seen is None:
            return
        # Ten thousand groups are not laid out anew every second for the age above them.
        if self._body is None or self._body[0] is not glance.seen or self._body[1] != width:
            self._body = glance.seen, width, tuple(self.lines(glance.seen))
        yield from self._body[2]


def _late_line(glance: Glance[Any]) -> str:
    """Return what a log says of a newer look that does not come."""
    late = late_text(glance.freshness)
    if glance.freshness.waiting is None:
        return glance.note
    age = f"; the last look is {duration_text(glance.freshness.age_seconds)} old" if glance.seen is not None else ""
    return late + age

"""Which groups belong together, and how they are packed into waves. Pure, but for the files of the waves.

Groups that read the same topic belong together, and so do groups that a chain of such topics connects: moved in one
wave, no topic has producers on one side and consumers on both. Each such part goes as a whole. Where one topic holds
too much together, groups may be told apart by the beginnings of their names instead.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from migrate.errors import MigrateError, Refused, UsageError
from migrate.extras.inventory.listing import unread_lines
from migrate.extras.inventory.read import SHARE, ClusterGroups, not_shown, places_of, why_not_assigned
from migrate.model import Failure, Side
from migrate.show.lines import at_most, names, wrapped
from migrate.show.table import Column, Table
from migrate.text import Colour, many, name, paint, safe, shell_word, some

HUBS_TRIED = 5
NO_COMMITS = "no commit is visible, so there is nothing to move"
OTHER_KIND = "share and streams groups are not moved by this tool"
NOT_IN_A_FILE = (
    "a groups file cannot hold its name: it is empty, has a line end or blanks at its ends, or begins with #"
)


@dataclass(frozen=True, slots=True)
class Hub:
    """A topic that holds groups together: how many read it, and how many groups the largest part has without it."""

    topic: str
    readers: int
    largest_without: int


@dataclass(frozen=True, slots=True)
class WavePart:
    """Groups that go together, sorted, and all topics that they read."""

    groups: tuple[str, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OversizedPart:
    """A part with more groups than a wave should have, the number of its wave (from 1), and what holds it together."""

    wave: int
    part: WavePart
    hubs: tuple[Hub, ...]


@dataclass(frozen=True, slots=True)
class Waves:
    """Waves of whole parts, the larger ones first. `across` are the topics that groups of more than one wave read."""

    waves: tuple[tuple[WavePart, ...], ...]
    oversized: tuple[OversizedPart, ...]
    across: tuple[str, ...]


@dataclass(frozen=True)
class GroupsToMove:
    """The topics that each group reads which a plan can move, and the other groups by why they are in no wave.

    `unread` says why something about a group could not be read; some of these are in `reads` all the same.
    """

    reads: Mapping[str, frozenset[str]]
    left_out: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, str]


def groups_to_move(read: ClusterGroups) -> GroupsToMove:
    """Return what is to be packed: every group with a commit that a groups file can name."""
    reads: dict[str, frozenset[str]] = {}
    left_out: dict[str, list[str]] = {}
    unread: dict[str, str] = {}
    for group, listed in read.groups.items():
        commits = read.commits[group]
        if listed.kind in (SHARE, "streams"):
            left_out.setdefault(OTHER_KIND, []).append(group)
            continue
        # What its members are assigned may connect it with more groups than its commits do.
        why = commits if isinstance(commits, Failure) else why_not_assigned(listed) or not_shown(read, group)
        if why is not None:
            unread[group] = str(why)
        if isinstance(commits, Failure) or (not commits and why is not None):
            continue
        if not commits:
            left_out.setdefault(NO_COMMITS, []).append(group)
        elif not _fits_a_line(group):
            left_out.setdefault(NOT_IN_A_FILE, []).append(group)
        else:
            reads[group] = frozenset(place.topic for place in places_of(read, group))
    return GroupsToMove(reads, {reason: tuple(found) for reason, found in left_out.items()}, unread)


def _fits_a_line(group: str) -> bool:
    """True if a groups file that has the name on a line of its own is read as that name."""
    try:
        group.encode()
    except UnicodeEncodeError:
        return False
    return bool(group) and group == group.strip() and not group.startswith("#") and not {"\n", "\r"} & set(group)


def waves_by_topics(reads: Mapping[str, Iterable[str]], max_groups: int) -> Waves:
    """Return waves in which groups that share a topic stay together. `reads` are the topics of each group."""
    return _packed(_parts(reads), reads, max_groups)


def waves_by_prefix(reads: Mapping[str, Iterable[str]], max_groups: int, prefix: re.Pattern[str]) -> Waves:
    """Return waves in which groups stay together whose names begin with the same text that `prefix` matches.

    If the expression has a group in parentheses, the text of the first one counts. A name of
    which nothing matches is a part of its own.
    """
    together: dict[tuple[bool, str], list[str]] = {}
    for group in sorted(reads):
        match = prefix.match(group)
        beginning = "" if match is None else (match[1] if prefix.groups else match[0]) or ""
        # Where nothing was matched, names have nothing in common.
        key = (True, beginning) if beginning else (False, group)
        together.setdefault(key, []).append(group)
    return _packed([_part(groups, reads) for groups in together.values()], reads, max_groups)


def _part(groups: Iterable[str], reads: Mapping[str, Iterable[str]]) -> WavePart:
    named = tuple(sorted(groups))
    return WavePart(named, tuple(sorted({topic for group in named for topic in reads[group]})))


def _parts(reads: Mapping[str, Iterable[str]]) -> list[WavePart]:
    """Return the connected components of groups and topics."""
    readers: dict[str, list[str]] = {}
    for group in sorted(reads):
        for topic in reads[group]:
            readers.setdefault(topic, []).append(group)
    parts, seen = [], set[str]()
    for first in sorted(reads):
        if first in seen:
            continue
        seen.add(first)
        found, open_topics, waiting = [first], set[str](), [first]
        while waiting:
            for topic in reads[waiting.pop()]:
                if topic not in open_topics:
                    open_topics.add(topic)
                    reached = [group for group in readers[topic] if group not in seen]
                    seen.update(reached)
                    found += reached
                    waiting += reached
        parts.append(_part(found, reads))
    return parts


def _packed(parts: Iterable[WavePart], reads: Mapping[str, Iterable[str]], max_groups: int) -> Waves:
    """Pack whole parts, each into the first wave that has room for it, the largest first."""
    waves: list[list[WavePart]] = []
    room: list[int] = []
    oversized = []
    for part in sorted(parts, key=lambda p: (-len(p.groups), p.groups)):
        size = len(part.groups)
        wave = next((number for number, left in enumerate(room) if left >= size), None)
        if wave is None:
            wave = len(waves)
            waves.append([])
            room.append(max_groups)
        waves[wave].append(part)
        room[wave] -= size
        if size > max_groups:
            oversized.append(OversizedPart(wave + 1, part, _hubs(part, reads)))
    return Waves(tuple(map(tuple, waves)), tuple(oversized), _across(waves))


def _hubs(part: WavePart, reads: Mapping[str, Iterable[str]]) -> tuple[Hub, ...]:
    """Return the topics that most groups of a part read, those first without which the rest falls apart most."""
    readers = Counter(topic for group in part.groups for topic in set(reads[group]))
    shared = [topic for topic in sorted(readers, key=lambda t: (-readers[t], t)) if readers[topic] > 1]
    hubs = [
        Hub(topic, readers[topic], _largest({g: [t for t in reads[g] if t != topic] for g in part.groups}))
        for topic in shared[:HUBS_TRIED]
    ]
    return tuple(sorted(hubs, key=lambda hub: (hub.largest_without, -hub.readers, hub.topic)))


def _largest(reads: Mapping[str, Iterable[str]]) -> int:
    return max(len(part.groups) for part in _parts(reads))


def _across(waves: Sequence[Sequence[WavePart]]) -> tuple[str, ...]:
    counted = Counter(topic for wave in waves for topic in {topic for part in wave for topic in part.topics})
    return tuple(sorted(topic for topic, count in counted.items() if count > 1))


WAVE_FILE = re.compile(r"wave[0-9]+\.txt")
TOPICS_NAMED = 10


def refuse_waves_in(folder: Path) -> None:
    """Raise `Refused` if the folder has a wave already, `UsageError` if there is no such folder.

    Any wave counts, not only those that would be written: a wave9.txt of an earlier day beside today's five would be
    taken for one of them.
    """
    try:
        there = sorted(path.name for path in folder.iterdir() if WAVE_FILE.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"There is no folder {folder} to write waves to.", "Create it, or choose --out-dir.") from None
    except OSError as error:
        raise MigrateError(f"{folder} cannot be looked at: {error.strerror}.", "Choose another --out-dir.") from None
    if there:
        raise Refused(
            f"{folder} has waves already ({some(there, 3)}): they are not overwritten.",
            "Move them away, or choose another --out-dir.",
        )


def write_waves(waves: Sequence[Sequence[WavePart]], folder: Path) -> tuple[Path, ...]:
    """Write wave1.txt, wave2.txt and so on, which `--groups-file` reads; return their paths. No file is overwritten.

    Raises as `refuse_waves_in` does, and `MigrateError` where the file system refuses; then none of them is left.
    """
    refuse_waves_in(folder)
    written: list[Path] = []
    try:
        for number, parts in enumerate(waves, 1):
            path = folder / f"wave{number}.txt"
            # Exclusively: what appeared since the folder was looked at is somebody's, too.
            with path.open("x", encoding="utf-8", newline="\n") as file:
                written.append(path)
                file.writelines(f"{line}\n" for line in wave_lines(number, len(waves), parts))
    except BaseException as error:
        # Ctrl-C too: half a list of groups is a groups file like any other.
        for path in written:
            with suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        raise MigrateError(
            f"The waves cannot be written to {folder}: {error.strerror}.", "Fix that, or choose another --out-dir."
        ) from error
    return tuple(written)


def wave_lines(number: int, count: int, parts: Sequence[WavePart]) -> Iterator[str]:
    """Yield the lines of one wave's file: comments, and a group to a line."""
    yield f"# Wave {number} of {count}: {many(sum(len(part.groups) for part in parts), 'group')}"
    for part in parts:
        yield f"# {many(len(part.groups), 'group')} on {some(map(safe, part.topics), TOPICS_NAMED)}"
        yield from part.groups


COLUMNS: tuple[Column[tuple[int, Sequence[WavePart], str]], ...] = (
    Column("WAVE", lambda wave: wave[0], right=True),
    Column("GROUPS", lambda wave: sum(len(part.groups) for part in wave[1]), right=True),
    Column("PARTS", lambda wave: len(wave[1]), right=True),
    Column("TOPICS", lambda wave: len({topic for part in wave[1] for topic in part.topics}), right=True),
    Column("FILE", lambda wave: wave[2], name),
)
SHOWN = 20
NAMED = 10
SPLIT = (
    "If producers and consumers of such a topic may move at different times, tell the groups apart by their names: "
    "--by 'prefix REGEX'."
)


def wave_report(
    read: ClusterGroups, waves: Waves, moved: GroupsToMove, files: Sequence[str], width: int, colour: bool
) -> Iterator[str]:
    """Yield the report. `files` are the paths of the waves, in their order."""
    groups = many(len(moved.reads), "group")
    title = f"{many(len(waves.waves), 'wave')} of {groups} on {name(read.alias)} ({read.side})"
    yield paint(title, Colour.BOLD, colour)
    if waves.waves:
        yield ""
        rows = [(number, *wave) for number, wave in enumerate(zip(waves.waves, files, strict=True), 1)]
        yield from Table(COLUMNS, rows, width).lines(colour)
    for oversized in waves.oversized:
        yield ""
        yield from _oversized(oversized, width, colour)
    if any(oversized.hubs for oversized in waves.oversized):
        yield from wrapped(SPLIT, width)
    if waves.across:
        yield ""
        text = f"Read in more than one wave: {names(waves.across, NAMED)}"
        yield from wrapped(text, width, colour=Colour.YELLOW if colour else None)
    yield from _left_out(read, moved, width, colour)
    if files and read.side is Side.SOURCE:
        yield ""
        yield from wrapped("Next, with the cluster options added:", width)
        yield f"  mm2-migrate plan --groups-file {shell_word(files[0])} --out wave1.plan"


def _oversized(oversized: OversizedPart, width: int, colour: bool) -> Iterator[str]:
    count = len(oversized.part.groups)
    head = f"Wave {oversized.wave} is larger than it should be: its {many(count, 'group')} go together"
    yield from wrapped(head + (", held together by these topics:" if oversized.hubs else "."), width,
                       colour=Colour.YELLOW if colour else None)  # fmt: skip
    yield from at_most([_hub(hub) for hub in oversized.hubs], SHOWN, width)


def _hub(hub: Hub) -> str:
    without = many(hub.largest_without, "group")
    return f"{name(hub.topic)}: read by {many(hub.readers, 'group')}; without it the largest part would have {without}"


def _left_out(read: ClusterGroups, moved: GroupsToMove, width: int, colour: bool) -> Iterator[str]:
    texts = [
        f"{many(len(groups), 'group')}: {why}: {some(map(name, groups), NAMED)}"
        for why, groups in moved.left_out.items()
    ]
    texts += [f"{many(count, 'group')}: by filter {safe(word)}" for word, count in sorted(read.filtered.items())]
    if texts:
        yield ""
        yield "In no wave:"
        yield from at_most(texts, SHOWN, width)
    yield from unread_lines(read, {group: {"commits": why} for group, why in moved.unread.items()}, width, colour)

"""`groups waves` as text: the waves, what is too large for one, and what is in none. Pure."""

from collections.abc import Iterator, Sequence

from migrate.extras.inventory.listing_text import unread_lines
from migrate.extras.inventory.read import ClusterGroups
from migrate.extras.inventory.waves import GroupsToMove, Hub, OversizedPart, WavePart, Waves
from migrate.model import Side
from migrate.show.lines import at_most, names, wrapped
from migrate.show.table import Column, Table
from migrate.text import Colour, many, name, paint, safe, shell_word, some

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

"""Law 2: a commit whose records are not compared stands at a sync, with timestamps as a guard. Pure."""

from collections.abc import Generator

from migrate.match.anchors import Anchors
from migrate.match.partial_log import KnownLog, Missing, needs_of, take_in
from migrate.match.protocol import (
    Matched,
    Needs,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
)
from migrate.model import Side


def guarding(
    question: PartitionQuestion, reason: str, is_bounded: bool
) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
    """Place the commits of a partition whose windows are not read: a few records for each, and a timestamp.

    A conversation as `migrate.match.matcher.matching` holds it. `reason` says why nothing was matched. `is_bounded` is
    False where records cannot tell a proven sync from another: then no place has a bound.
    """
    source = KnownLog(Side.SOURCE, question.source_log, question.match_limit)
    target = KnownLog(Side.TARGET, question.target_log, question.match_limit)
    anchors = Anchors(question, source, target)
    places: dict[int, Matched | Unmatched] = {}
    while True:
        wants: list[Missing] = []
        for g in question.source_committed:
            if g not in places:
                try:
                    places[g] = guarded(g, anchors, source, target, question.equality.keeps_time, reason, is_bounded)
                except Missing as missing:
                    wants.append(missing)
        if not wants:
            break
        supply = yield needs_of(wants, source, target)
        if isinstance(supply, Unreadable):
            for g in question.source_committed:
                places.setdefault(g, Unmatched(f"not-readable: {supply.reason}"))
            break
        take_in(supply, source, target)
    return PartitionAnswer(places, Tail(None), len(source.offsets), len(target.offsets))


def guarded(
    g: int,
    anchors: Anchors,
    source: KnownLog,
    target: KnownLog,
    keeps_time: bool,
    reason: str = "match-limit",
    is_bounded: bool = True,
) -> Matched | Unmatched:
    """Place a commit at the smaller of the proven sync below it and the first target offset of its time."""
    link = anchors.below(g)
    guard = _first_of_its_time(g, source, target) if keeps_time else None
    if link is None or guard is None or not is_bounded:
        return Unmatched(reason, guard, link)
    lowest = link[1] if link[0] == g else link[1] + 1
    offset = min(lowest, guard)
    return Matched(offset, Why.NOT_ALL_READ, target.end - offset, 0, link, None)


def _first_of_its_time(g: int, source: KnownLog, target: KnownLog) -> int:
    """Return the target's first offset for the timestamp of the first source record at or after a commit."""
    width = 1
    g = max(g, source.start)
    while True:
        source.require(g, g + width)
        place = source.index(g)
        if place < len(source.offsets) and source.offsets[place] < g + width:
            return target.first_at(source.times[place])
        if g + width >= source.end:
            return target.end
        width *= 8

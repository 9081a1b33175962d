"""Law 2 for a commit whose window is too long to read: a proven sync, and timestamps as a guard. Pure."""

from migrate.anchors import Anchors
from migrate.knownlog import KnownLog
from migrate.matching import Matched, Unmatched, Why


def guarded(g: int, anchors: Anchors, source: KnownLog, target: KnownLog, keeps_time: bool) -> Matched | Unmatched:
    """Place a commit at the smaller of the proven sync below it and the first target offset of its time."""
    link = anchors.below(g)
    guard = _first_of_its_time(g, source, target) if keeps_time else None
    if link is None or guard is None:
        return Unmatched("match-limit", guard, link)
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

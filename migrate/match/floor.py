"""Law 4's floor: where an owed record has no copy, how far down one may stand in another shape. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from migrate.match.alignment import Alignment
from migrate.match.protocol import Link


@dataclass(frozen=True, slots=True)
class Bounds:
    """A window's ends: its proven syncs, if there are any, and the target offsets read."""

    lower: Link | None
    upper: Link | None
    start_d: int
    top_d: int


def floor(
    first: int,
    place: int,
    aligned: Alignment,
    bounds: Bounds,
    keeps_time: bool,
    source_open: bool,
    may_end_midway: bool = False,
) -> int:
    """Return the first place above the nearest consumed copy that may be an owed record in another shape.

    `first` is the place of the first owed record on the source, `place` that of the row on the target so far, which is
    returned where nothing speaks against it. `may_end_midway`: the target may end in a replay that was stopped. Raises
    `Missing` for what has to be read.
    """
    source, target = aligned.source, aligned.target
    start = aligned.target_low
    if source_open:
        # A record of the open transaction that looks like an older one: its copy is one too many.
        place = aligned.first_surplus(place)
    for i in range(first - 1, aligned.source_low - 1, -1):
        below = aligned.nearest_copy_below(i, place)
        if below is not None:
            start = below + 1
            break
    else:
        lowest = target.start if bounds.lower is None else bounds.lower[1]
        if target.affords(lowest, bounds.top_d):
            target.require(lowest, bounds.top_d)
            start = target.index(lowest)
    lacking = aligned.times_without_copy(first)
    older: set[int] = set()
    # Where all of the source is seen, or nothing of it is found, an unknown record is no older one that is gone there.
    if keeps_time and not source_open and source.has_unseen and aligned.matched(aligned.source_low):
        # Records of one batch often share their timestamp: what an owed one without a copy has excuses nothing.
        older = set(source.times[aligned.source_low : first]) - lacking
    strange = _strange_below_anchor(place, aligned, bounds, keeps_time, lacking)
    if strange is not None:
        return strange
    if may_end_midway:
        # Then older records' copies stand behind what an earlier run wrote.
        strange = aligned.first_unknown(aligned.target_low, start, lambda time: keeps_time and time not in lacking)
        if strange is not None:
            return strange
    unknown = _first_unknown(start, place, aligned, older.__contains__)
    return place if unknown is None else unknown


def _strange_below_anchor(
    place: int, aligned: Alignment, bounds: Bounds, keeps_time: bool, lacking: set[int]
) -> int | None:
    """Return the first place of an older run, below the lower anchor, that may be an owed record in another shape.

    The source is not known there, so only records with the timestamp of an owed one count, and it is read on.
    """
    source, target = aligned.source, aligned.target
    if bounds.lower is None or bounds.start_d >= bounds.lower[1]:
        return None
    known = set(source.prints)
    suspects = [
        j
        for j in range(aligned.target_low, min(target.index(bounds.lower[1]), place))
        if target.prints[j] not in known and (not keeps_time or target.times[j] in lacking)
    ]
    if not suspects:
        return None
    start = source.start
    if keeps_time:
        start = source.first_at(min(target.times[j] for j in suspects))
    if start < bounds.lower[0] and source.affords(start, bounds.lower[0]):
        source.require(start, bounds.lower[0])
    return suspects[0]


def _first_unknown(start: int, place: int, aligned: Alignment, is_older: Callable[[int], bool]) -> int | None:
    if start >= aligned.target_low:
        return aligned.first_unknown(start, place, is_older)
    written = set(aligned.source.prints)
    for j in range(start, place):
        if aligned.target.prints[j] not in written and not is_older(aligned.target.times[j]):
            return j
    return None

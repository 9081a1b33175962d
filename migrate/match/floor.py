"""How far down a copy may be where the records do not show it. Pure.

Law 4's floor: where an owed record has no copy, how far down one may be in another shape. And below the source's log
start: what retention removed there may still be on the target.
"""

from collections.abc import Callable
from dataclasses import dataclass

from migrate.match.alignment import Alignment
from migrate.match.partial_log import KnownLog
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
    source, target = aligned.source.log, aligned.target.log
    start = aligned.target.low
    if source_open:
        # A record of the open transaction that looks like an older one: its copy is one too many.
        place = aligned.first_surplus(place)
    for i in range(first - 1, aligned.source.low - 1, -1):
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
    if keeps_time and not source_open and source.has_unseen and aligned.matched(aligned.source.low):
        # Records of one batch often share their timestamp: what an owed one without a copy has excuses nothing.
        older = set(source.times[aligned.source.low : first]) - lacking
    strange = _strange_below_anchor(place, aligned, bounds, keeps_time, lacking)
    if strange is not None:
        return strange
    if may_end_midway:
        # Then older records' copies stand behind what an earlier run wrote.
        strange = aligned.first_unknown(aligned.target.low, start, lambda time: keeps_time and time not in lacking)
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
    source, target = aligned.source.log, aligned.target.log
    if bounds.lower is None or bounds.start_d >= bounds.lower[1]:
        return None
    known = set(source.prints)
    suspects = [
        j
        for j in range(aligned.target.low, min(target.index(bounds.lower[1]), place))
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
    if start >= aligned.target.low:
        return aligned.first_unknown(start, place, is_older)
    written = set(aligned.source.log.prints)
    for j in range(start, place):
        if aligned.target.log.prints[j] not in written and not is_older(aligned.target.log.times[j]):
            return j
    return None


def counted_place(g: int, link: Link, source: KnownLog, target: KnownLog, target_top: int) -> int | None:
    """Return the place on the target that no removed record at or after `g` has its last copy below, by counting.

    `link` is the nearest sync at or below `g`, unproven as its source record is gone; `target_top` bounds the target
    offsets looked at. MM2 copies in order. So if as many distinct records that the source no longer has stand between
    the sync's copy and the copy of the first source record as there were offsets between the two, none was left out,
    and the n-th of them is the n-th record. None where the count differs, where the sync's copy is gone too, or where
    the copies do not follow each other as those of a mirror that now and then begins anew: then a record that looks
    like another, or one of somebody else's, was counted wrong.
    """
    source_offset, target_offset = link
    if target_offset < target.start:
        return None
    target.require(target_offset, target_top)
    anchor = target.at(target_offset)
    if anchor is None:
        return None
    first = source.index(source.start)
    next_offset, next_print = source.end, None
    if first < len(source.offsets):
        next_offset, next_print = source.offsets[first], source.prints[first]
    written = set(source.prints)
    number: dict[int, int] = {}
    newest: list[int] = []
    is_before = True
    last = -1
    for place in range(anchor, target.index(target_top)):
        fingerprint = target.prints[place]
        is_before &= fingerprint != next_print
        known = number.get(fingerprint)
        if known is None and not (is_before and fingerprint not in written):
            continue
        this = len(newest) if known is None else known
        if this > last + 1:
            return None
        if known is None:
            number[fingerprint] = this
            newest.append(place)
        newest[this] = place
        last = this
    if len(newest) != next_offset - source_offset:
        return None
    return min(newest[g - source_offset :])

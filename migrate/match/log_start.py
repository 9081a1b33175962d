"""Commits below the source's log start: what retention removed there may still stand on the target. Pure."""

from migrate.match.partial_log import KnownLog
from migrate.match.protocol import Link


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

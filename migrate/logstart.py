"""Commits below the source's log start: what retention removed there may still stand on the target. Pure."""

from migrate.knownlog import KnownLog
from migrate.matching import Link


def counted_place(g: int, link: Link, source: KnownLog, target: KnownLog, target_top: int) -> int | None:
    """Return the place on the target that no removed record at or after `g` has its last copy below, by counting.

    `link` is the nearest sync at or below `g`, unproven as its source record is gone; `target_top` bounds the target
    offsets looked at. MM2 copies in order. So if as many distinct records that the source no longer has stand between
    the sync's copy and the copy of the first source record as there were offsets between the two, none was left out,
    and the n-th of them is the n-th record. None where the count differs, or the sync's copy is gone too.
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
    newest: dict[int, int] = {}
    removed: list[int] = []
    is_before = True
    for place in range(anchor, target.index(target_top)):
        fingerprint = target.prints[place]
        is_before &= fingerprint != next_print
        if fingerprint in newest:
            newest[fingerprint] = place
        elif is_before and fingerprint not in written:
            removed.append(fingerprint)
            newest[fingerprint] = place
    if len(removed) != next_offset - source_offset:
        return None
    return min(newest[fingerprint] for fingerprint in removed[g - source_offset :])

"""The end of both logs: has MM2 copied everything ("Drained" of docs/translation.md), and is it plain? Pure."""

from bisect import bisect_left
from dataclasses import dataclass, replace

from migrate.match.anchors import Anchors
from migrate.match.partial_log import LogPair
from migrate.match.protocol import OffsetRange


@dataclass(frozen=True, slots=True)
class TailFacts:
    """The logs behind the last proven pair.

    `is_plain`: the target goes on as the source does, so that no replay hides there, and what is above a proven pair
    needs no reading. `uncopied` counts source records without a copy in order, None if unknown; the newest run has
    passed over `passed_over` of them. From the offset `source_uncopied_from` on nothing was copied. `foreign` counts
    target records that equal none known of the source, `perhaps_copies` those of them that may be copies of source
    records which nobody sees: aborted or compacted ones.
    """

    uncopied: int | None
    is_plain: bool
    source_uncopied_from: int | None = None
    foreign: int = 0
    perhaps_copies: int = 0
    passed_over: int = 0


UNKNOWN = TailFacts(None, False)


def read_tail(anchors: Anchors, logs: LogPair) -> TailFacts:
    """Judge both logs from the last proven pair on; raises `MissingRanges` until they are read."""
    anchors.seek_tail()
    source, target = logs.source, logs.target
    last = anchors.last()
    if last is None:
        return UNKNOWN
    source_offset, target_offset = last
    if not (source.affords(source_offset, source.end) and target.affords(target_offset, target.end)):
        return UNKNOWN
    logs.sections(OffsetRange(source_offset, source.end), OffsetRange(target_offset, target.end))
    facts = _judge(logs, source_offset + 1, target.index(target_offset + 1))
    if not anchors.is_plain_after(last):
        # Unproven syncs that keep another distance are above it: something happened there.
        return replace(facts, is_plain=False)
    return facts


def _judge(logs: LogPair, source_start: int, j: int) -> TailFacts:
    i = logs.source.index(source_start)
    source, written, copied = logs.source, logs.source.prints[i:], logs.target.prints[j:]
    is_distinct = len(set(written)) == len(written)
    if written == copied and is_distinct:
        return TailFacts(0, True)
    if is_distinct and len(copied) < len(written) and written[: len(copied)] == copied:
        first = i + len(copied)
        is_plain = not _copied_before(logs, first)
        return TailFacts(len(written) - len(copied), is_plain, source.offsets[first])
    return _ragged(logs, source_start, i, j)


def _copied_before(logs: LogPair, first: int) -> bool:
    """True if records from `first` on, of which the newest run has no copy, may have one of an older run."""
    if not logs.keeps_time:
        return True
    source, target = logs.source, logs.target
    start = target.first_at(min(source.times[first:]))
    if start >= target.end:
        return False
    if not target.affords(start, target.end):
        return True
    return not set(source.prints[first:]).isdisjoint(target.section(start, target.end).prints)


def _ragged(logs: LogPair, source_start: int, i: int, j: int) -> TailFacts:
    """Judge a tail in which something is missing, repeated, or of unknown origin.

    What is last on the target tells how far the newest run came: after a replay that was stopped midway the
    last source record has a copy, and yet not everything was copied by that run.
    """
    source, written, copied = logs.source, logs.source.prints[i:], logs.target.prints[j:]
    place_of = {fingerprint: at for at, fingerprint in enumerate(written)}
    last_known = next((at for at in range(len(copied) - 1, -1, -1) if copied[at] in place_of), -1)
    older = _copied_again(logs, i, j + last_known + 1)
    known = set(source.prints)
    foreign = sum(fingerprint not in known for fingerprint in copied)
    # An open transaction reaches beyond the end, nobody knows how far: an MM2 that reads uncommitted has copied it.
    unseen = foreign if logs.question.has_open_transaction else source.end - source_start - len(written)
    perhaps_copies = min(foreign, unseen)
    if older is None:
        # Without the source's timestamps these may be copies of records from before what was read.
        return replace(UNKNOWN, foreign=foreign, perhaps_copies=perhaps_copies) if logs.keeps_time else UNKNOWN
    if older:
        return TailFacts(
            len(source.offsets) - older, False, source.offsets[older] if older < len(source.offsets) else None
        )
    newest = place_of[copied[last_known]] if last_known >= 0 else -1
    copies: dict[int, list[int]] = {}
    for at, fingerprint in enumerate(copied):
        copies.setdefault(fingerprint, []).append(at)
    # Of records that equal one another nobody knows which the newest run has reached.
    is_certain = last_known >= 0 and source.prints.count(copied[last_known]) == 1
    position, unmatched = len(copied), 0
    for fingerprint in reversed(written):
        places = copies.get(fingerprint, [])
        below = bisect_left(places, position)
        if below:
            position = places[below - 1]
        else:
            unmatched += 1
            # One that has a copy out of order was not passed over.
            is_certain = is_certain and not places
    behind = len(written) - 1 - newest
    uncopied = max(unmatched, behind)
    passed_over = uncopied - behind if is_certain else 0
    first = source.offsets[i + newest + 1] if newest + 1 < len(written) else None
    return TailFacts(uncopied, False, first, foreign, perhaps_copies, passed_over)


def _copied_again(logs: LogPair, i: int, j: int) -> int | None:
    """Return the index behind the last older source record that is at `j` or later; 0 if none is.

    None where it cannot be told who wrote the records there.
    """
    source, target = logs.source, logs.target
    if j >= len(target.offsets):
        return 0
    if not logs.keeps_time:
        return None
    start, top = source.first_at(min(target.times[j:])), source.offsets[i - 1] if i else source.start
    if start < top:
        if not source.affords(start, top):
            return None
        source.require(start, top)
    copied = set(target.prints[j:])
    next_up = next((at + 1 for at in range(i - 1, -1, -1) if source.prints[at] in copied), 0)
    oldest, before = min(target.times[j:]), target.times[j - 1] if j else 0
    is_older = oldest < before or (oldest == before and source.has_unseen)
    if not next_up and j and (is_older or not copied.isdisjoint(target.prints[:j])):
        # Older than what is before it, or there already: perhaps a replay of what the source has deleted, or never
        # committed.
        return None
    return next_up

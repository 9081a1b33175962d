"""Which target record is the copy of which source record: last copies, and look-alikes told apart by their order. Pure.

The definition does the work (docs/translation.md, "Owed, loss-free, best"): the best offset is the smallest of the
owed records' last copies. Records that look alike are told apart by order only. MM2 writes runs: source records in a
row, from where it (re)started to where it stopped. Between two copies that are unmistakable there is mostly one run or
the joint of two. A copy that only one of these two can have written is known; one that both could have written is in
doubt, and so is one that neither could. Where even that is unclear the lowest candidate counts, and the rows say so.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from migrate.match.partial_log import Section
from migrate.match.protocol import OffsetPair


@dataclass(frozen=True, slots=True)
class Premises:
    """How far the order and the number of copies may be trusted.

    `tells_apart` is False where fingerprints hold too little of a record to tell a second copy from another record.
    `has_open_transaction`: the source has records that readers are not shown yet, whose copies may be on the target.
    `may_end_midway`: a replay that was stopped midway may be at the target's end; a last copy may rightly be out of
    order then. `sync_pairs` are the chain's syncs in the section, as offsets: which copy is whose, in MM2's own words.
    """

    tells_apart: bool = True
    has_open_transaction: bool = False
    may_end_midway: bool = False
    sync_pairs: Sequence[OffsetPair] = ()


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of a source section's records in a target section. Target indexes are those of the target's log.

    `lowest`, `matched` and `sure` have one entry per source record and one for the end, each about the records from
    there on: the index that no last copy of theirs lies below (the section's top if none has a copy), how many have a
    copy, and how many have one that is theirs without doubt. Up to `ambiguous_up_to` (an index into these, -1 for none)
    look-alikes were not copied as often as they were written. `written` counts the source's fingerprints, `indexes` are
    their places on the target, `strangers` the indexes of all other records there. If `is_identical`, records are
    distinct and each is where its original is; `written` and `indexes` are then left empty.
    """

    is_identical: bool
    lowest: Sequence[int]
    matched: Sequence[int]
    sure: Sequence[int]
    ambiguous_up_to: int = -1
    has_replays: bool = False
    has_look_alikes: bool = False
    written: Mapping[int, int] = field(default_factory=dict)
    indexes: Mapping[int, Sequence[int]] = field(default_factory=dict)
    strangers: "array[int]" = field(default_factory=lambda: array("q"))


def copies_of(source: Section, target: Section, premises: Premises) -> Copies:
    """Assign the target's records to the source's."""
    prints = source.prints
    if prints == target.prints and len(set(prints)) == len(prints):
        down = range(len(prints), -1, -1)
        return Copies(True, range(target.low, target.top + 1), down, down)
    return _Assigner(source, target, premises).copies()


class _Assigner:
    """Goes back over the source's records and takes for each its last copy.

    Source indexes are those of the section; target indexes those of the log.
    """

    def __init__(self, source: Section, target: Section, premises: Premises) -> None:
        self._source, self._target, self._premises = source, target, premises
        self._prints = source.prints
        self._written = Counter(self._prints)
        self._indexes: dict[int, list[int]] = {}
        self._strangers = array("q")
        for j, fingerprint in enumerate(target.prints, target.low):
            if fingerprint in self._written:
                self._indexes.setdefault(fingerprint, []).append(j)
            else:
                self._strangers.append(j)
        # Copies of records that are not seen here may be taken for those of others.
        self._is_blurred = premises.has_open_transaction or (source.has_gaps and not premises.tells_apart)
        self._trusts_last = premises.may_end_midway and premises.tells_apart and not source.has_gaps
        self._ambiguous_up_to = -1

    def copies(self) -> Copies:
        pivots = self._pivots()
        interval = list(accumulate(pivot is not None for pivot in pivots))
        below = [self._target.low, *(pivot for pivot in pivots if pivot is not None)]
        in_interval = Counter(zip(interval, self._prints, strict=True))
        runs = self._runs()
        above = context = self._target.top
        lowest, matched, sure = array("q", [context]), array("q", [0]), array("q", [0])
        has_replays = False
        used: Counter[int] = Counter()
        used_in_interval: Counter[int] = Counter()
        for i in range(len(self._prints) - 1, -1, -1):
            fingerprint, copy, is_sure = self._prints[i], pivots[i], True
            copies = self._indexes.get(fingerprint)
            if not copies:
                for column in (lowest, matched, sure):
                    column.append(column[-1])
                continue
            if copy is not None:
                above = copy
                used_in_interval.clear()
            else:
                used_in_interval[fingerprint] += 1
                nth = used_in_interval[fingerprint]
                neighbours = below[interval[i]], above
                copy, is_sure = self._between(copies, neighbours, in_interval[interval[i], fingerprint], nth)
                if not is_sure and runs is not None and (known := runs.last_copy(i)) is not None:
                    copy, is_sure = known + self._target.low, not runs.is_doubtful(i)
                # Of equal records as many must follow as are owed, whichever is which.
                copy = min(copy, copies[max(0, len(copies) - used[fingerprint] - 1)])
                # More copies further up than the source has there: the best index may be one of those.
                is_sure &= len(copies) - bisect_left(copies, above) <= used[fingerprint] + 1 - nth
                if not is_sure:
                    self._ambiguous_up_to = max(self._ambiguous_up_to, i)
            used[fingerprint] += 1
            has_replays |= copy >= context or len(copies) > self._written[fingerprint]
            context = copy
            lowest.append(min(lowest[-1], copy))
            matched.append(matched[-1] + (used[fingerprint] <= len(copies)))
            sure.append(sure[-1] + is_sure)
        for column in (lowest, matched, sure):
            column.reverse()
        return Copies(
            False, lowest, matched, sure, self._ambiguous_up_to, has_replays, self._has_look_alikes,
            self._written, self._indexes, self._strangers,
        )  # fmt: skip

    @property
    def _has_look_alikes(self) -> bool:
        return len(self._written) < len(self._prints)

    def _runs(self) -> "Runs | None":
        """Return what the order of the copies tells of look-alikes; None where there are none, or order tells nothing.

        Where records of the source are not seen here, the copies of others may be taken for theirs.
        """
        is_whole = not self._premises.has_open_transaction and not self._source.has_gaps
        if self._has_look_alikes and is_whole and self._premises.tells_apart:
            return Runs(self._prints, self._target.prints, self._written)
        return None

    def _pivots(self) -> list[int | None]:
        """Return the index of each record's copy, None where it has none or is not the only one of its kind."""
        pivots: list[int | None] = [None] * len(self._prints)
        context = self._target.top
        named = self._named_by_syncs()
        for i in range(len(self._prints) - 1, -1, -1):
            copies = self._indexes.get(self._prints[i])
            if copies and self._written[self._prints[i]] == 1 and (len(copies) == 1 or not self._is_blurred):
                pivots[i] = context = self._last_copy(i, copies, context, named.get(i))
        return pivots

    def _named_by_syncs(self) -> dict[int, int]:
        """Return the copies' indexes by their originals', for each sync whose records are still there.

        Only where the source has gaps: there a second copy and that of an aborted record look the same.
        """
        source, target = self._source, self._target
        named = {}
        for source_offset, target_offset in self._premises.sync_pairs if source.has_gaps else ():
            i, j = source.log.at(source_offset), target.log.index(target_offset)
            if i is not None and j < target.top and target.log.offsets[j] == target_offset:
                named[i - source.low] = j
        return named

    def _last_copy(self, i: int, copies: list[int], context: int, named: int | None) -> int:
        """Return the last copy of a record that is in order, before `context`, the copy of the source's next record.

        One out of order may be that of a record which looks alike and is not seen here: aborted, or beyond the window.
        """
        if self._trusts_last or len(copies) == 1:
            return copies[-1]
        at = max(1, bisect_left(copies, context))
        # What an aborted transaction wrote leaves a gap on the source: its copy is right behind an equal record's.
        # So is a second copy where MM2 began anew with this very record; but then it wrote a sync that says so.
        while (
            self._source.has_gaps
            and at > 1
            and copies[at - 1] != named
            and self._are_all_strange(copies[at - 2] + 1, copies[at - 1])
        ):
            at -= 1
        if at < len(copies):
            self._ambiguous_up_to = max(self._ambiguous_up_to, i)
        return copies[at - 1]

    def _are_all_strange(self, start: int, end: int) -> bool:
        return bisect_left(self._strangers, end) - bisect_left(self._strangers, start) == end - start

    def _between(self, copies: list[int], neighbours: tuple[int, int], written: int, nth: int) -> tuple[int, bool]:
        """Return the copy of a record that looks like others, and whether there is no doubt about it.

        `neighbours` are the copies of its nearest unmistakable neighbours, `written` is how many such records the
        source has between these, and this one is the nth of them from behind.
        """
        low, above = neighbours
        first, last = bisect_left(copies, low), bisect_left(copies, above)
        candidates = copies[first:last] if low <= above else []
        if not self._premises.tells_apart:
            # Of records with one time and key some may be dropped or aborted: their number tells nothing.
            return (copies if self._is_blurred or len(candidates) < written else candidates)[0], False
        if not candidates:
            return (copies[max(0, last - nth)] if last and low <= above else copies[0]), False
        if self._premises.has_open_transaction and above == self._target.top:
            return candidates[0], False
        if len(candidates) == written:
            return candidates[-nth], True
        if len(candidates) < written and first:
            # A replay that stopped midway: which of them it copied nobody knows.
            return copies[max(0, first - nth)], False
        return candidates[0], False


class Runs:
    """The last copies of source records that look like others, as far as the order of the copies tells them apart.

    `originals` are the fingerprints of the source's records in a row, without gaps; `copies` those of the target's.
    `written` counts each fingerprint of `originals`. Places are indexes into `originals` and `copies`.
    """

    def __init__(self, originals: "array[int]", copies: "array[int]", written: Mapping[int, int]) -> None:
        self._originals = originals
        self._last: dict[int, int] = {}
        self._doubts_of_record: dict[int, int] = {}
        self._doubts_of_look: dict[int, int] = {}
        only = {fingerprint: i for i, fingerprint in enumerate(originals) if written[fingerprint] == 1}
        self._prints = copies
        landmarks = [(at, only[fingerprint]) for at, fingerprint in enumerate(copies) if fingerprint in only]
        before: tuple[int, int] | None = None
        for landmark in landmarks:
            self._between(before, landmark)
            before = landmark
        self._between(before, None)

    def last_copy(self, i: int) -> int | None:
        """Return the place of the last copy that is known to be that of record `i`; None if none is."""
        return self._last.get(i)

    def is_doubtful(self, i: int) -> bool:
        """True if a copy behind the last known one may be that of record `i` as well."""
        doubt = max(self._doubts_of_record.get(i, -1), self._doubts_of_look.get(self._originals[i], -1))
        return doubt > self._last.get(i, -1)

    def _between(self, before: tuple[int, int] | None, behind: tuple[int, int] | None) -> None:
        """Tell the copies between two unmistakable ones; each is (index of the copy, index of the record)."""
        low = -1 if before is None else before[0]
        high = len(self._prints) if behind is None else behind[0]
        first = self._reach(before, 1, range(low + 1, high))
        second = self._reach(behind, -1, range(high - 1, low, -1))
        for at in range(low + 1, high):
            names = {
                name[1] + at - name[0] for name, reach in ((before, first), (behind, second)) if name and at in reach
            }
            if len(names) == 1:
                self._last[names.pop()] = at
            elif names:
                self._doubts_of_record.update(dict.fromkeys(names, at))
            else:
                self._doubts_of_look[self._prints[at]] = at

    def _reach(self, landmark: tuple[int, int] | None, step: int, places: Sequence[int]) -> range:
        """Return the copies next to an unmistakable one that continue its run."""
        if landmark is None:
            return range(0)
        at, i = landmark
        while (
            at + step in places
            and 0 <= i + step < len(self._originals)
            and self._prints[at + step] == self._originals[i + step]
        ):
            at, i = at + step, i + step
        return range(min(at, landmark[0]), max(at, landmark[0]) + 1)

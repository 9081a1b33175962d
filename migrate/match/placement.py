"""Law 4: the target offset of one commit in an aligned window, and what keeps it from being exact. Pure.

The row is at the smallest of the owed records' last copies. Where an owed record has no copy, one may be further down
in another shape (the law's floor). Below the source's log start, what retention removed may still be on the target.
"""

from collections.abc import Container

from migrate.match.alignment import Alignment
from migrate.match.anchors import Anchors
from migrate.match.equality import Equality
from migrate.match.partial_log import LogPair, PartialLog
from migrate.match.protocol import Matched, OffsetPair, Why
from migrate.match.tail import TailFacts


class Placement:
    """Places the commits of one window. Raises `MissingRanges` for what has to be read beyond it.

    `lower` and `upper` are the window's proven ends, None at a log's start or end; `aligned` is what lies between.
    """

    def __init__(
        self,
        logs: LogPair,
        anchors: Anchors,
        tail: TailFacts,
        aligned: Alignment,
        lower: OffsetPair | None,
        upper: OffsetPair | None,
    ) -> None:
        self._question, self._logs, self._anchors, self._tail = logs.question, logs, anchors, tail
        self._source, self._target = logs.source, logs.target
        self._aligned, self._lower, self._upper = aligned, lower, upper
        self._is_changed = logs.question.equality is Equality.TIME_AND_KEY

    def place(self, committed: int) -> Matched:
        """Return the best target offset that can be shown for a commit, and the first reason why it may not be best."""
        aligned, question = self._aligned, self._question
        first = aligned.first_owed(committed)
        index = best = aligned.lowest_copy(first)
        missing = aligned.absent(first) if question.source_has_copies else aligned.without_copy(first)
        is_below_start = committed < self._source.start
        if is_below_start:
            counted = self._below_log_start(committed)
            if counted is None:
                return Matched(self._target.start, Why.NOT_ALL_READ, self._target.end - self._target.start)
            index = counted
        elif missing or self._is_changed or (question.has_open_transaction and best == aligned.target.top):
            may_end_midway = not (self._tail.is_plain or self._tail.uncopied == 0)
            floor = _Floor(aligned, self._lower, self._logs, may_end_midway)
            index = min(best, floor.of(first, best))
        uncopied = self._uncopied_before(committed)
        # The first that holds keeps the row from being exact; in quotes the paragraph of Law 4 that says so.
        doubts = (
            (Why.BELOW_LOG_START, is_below_start),  # "Below the source's log start"
            (Why.UNKNOWN_RECORD, index < best),  # "Floor"
            (Why.LOOK_ALIKES, aligned.is_ambiguous(first)),  # "The place"
            (Why.CHANGED_IN_FLIGHT, self._is_changed),  # Law 3
            (Why.RETENTION, self._lost_its_beginning() or self._is_emptied()),  # "Retention while reading"
            # An older record that looks alike may be what is there: the source was not read so far down.
            (Why.LOOK_ALIKES, self._lower is not None and index < self._target.index(self._lower[1])),
            (Why.NOT_COPIED_YET, uncopied > 0),  # "Beyond what is copied"
        )
        why = next((why for why, holds in doubts if holds), Why.PROVEN)
        rereads = max(0, aligned.target.top - index - self._owed_with_copy(first))
        if why in (Why.PROVEN, Why.NOT_COPIED_YET) and self._upper is None and first < aligned.source.top:
            rereads = max(0, rereads - self._never_consumed(first, index))
        if not question.source_has_copies:
            coming = self._still_to_come(first)
            superseded = aligned.superseded(first, coming) if question.compacted else 0
            missing = max(0, missing - superseded - aligned.without_copy(coming))
        offset = self._target.offsets[index] if index < aligned.target.top else aligned.target.end
        return Matched(
            target_offset=offset,
            why=why,
            rereads_at_most=rereads + uncopied,
            missing_on_target=missing,
            lower=self._lower,
            upper=self._upper,
        )

    # What is counted in a row

    def _owed_with_copy(self, first: int) -> int:
        """Count the owed records whose copies are theirs without doubt, and no others' that are still to come."""
        aligned = self._aligned
        count = 0 if self._is_changed else min(aligned.sure(first), aligned.matched(first))
        # A record that is to be copied yet, and seems to have a copy: that is an equal record's, or one more comes.
        return count - min(count, aligned.matched(self._first_uncopied(first)) if aligned.has_look_alikes else 0)

    def _never_consumed(self, first: int, index: int) -> int:
        """Count, between copies in order, the records of unknown origin that are newer than the first owed one.

        They were aborted, compacted since, or written there by others.
        """
        if not self._logs.keeps_time:
            return 0
        return self._aligned.newcomers(index, self._aligned.last_known(index), self._source.times[first])

    def _uncopied_before(self, committed: int) -> int:
        """Count the source records below a commit that MM2 has not copied yet: they arrive behind the row."""
        start = self._tail.source_uncopied_from
        if start is None or start >= committed or self._question.source_has_copies:
            return 0
        return self._source.index(committed) - self._source.index(start)

    def _still_to_come(self, first: int) -> int:
        """Return the index from `first` on from which a source record without a copy is still to be copied.

        What MM2's own position has passed is not to come: the target has lost it, or it was left out on the way.
        """
        position, top, passed = self._question.last_copied_offset, self._aligned.source.top, 0
        if position is not None and position < self._source.end:
            passed = min(top, self._source.index(position + 1))
        return max(self._first_uncopied(first), passed)

    def _first_uncopied(self, first: int) -> int:
        """Return the index of the first source record from `first` on that is not copied yet; the top if none."""
        start, top = self._tail.source_uncopied_from, self._aligned.source.top
        return max(first, top if start is None else min(self._source.index(start), top))

    # What keeps a row from being exact

    def _lost_its_beginning(self) -> bool:
        """True where retention deleted a log's beginning while it was read."""
        question = self._question
        return self._source.start > question.source_log.start or self._target.start > question.target_log.start

    def _is_emptied(self) -> bool:
        """True where retention emptied the source, and nothing tells that MM2 had copied the last record."""
        question, last = self._question, self._question.source_log.end - 1
        if question.source_log.start <= last or last < 0:
            return False
        if question.sync_pairs and question.sync_pairs[-1][0] == last:
            return False
        return question.last_copied_offset is None or question.last_copied_offset < last

    # Below the source's log start

    def _below_log_start(self, committed: int) -> int | None:
        """Return the index of a commit whose next records retention removed from the source.

        Only counting tells which record is which there; else the target's log start, None if that is too far to read.
        """
        aligned, target = self._aligned, self._target
        low, end = aligned.source.low, aligned.target.end
        index = aligned.lowest_copy(low)
        pair = self._anchors.unproven_below(committed)
        # Where retention deleted while it was read, what is known of the source has a hole; so it has where a
        # transaction is open. Gaps, what others wrote, and copies in another shape may add up to the right count.
        can_count = (
            self._source.start == self._question.source_log.start
            and not self._question.has_open_transaction
            and not self._is_changed
            and not aligned.source.has_gaps
            and aligned.without_copy(low) <= aligned.without_copy(self._still_to_come(low))
            and not aligned.unknown(index, aligned.target.top)
        )
        if can_count and pair is not None and target.affords(pair[1], end):
            counted = _counted(committed, pair, self._source, target, end)
            if counted is not None:
                return min(index, counted)
        if not target.affords(target.start, end):
            return None
        return min(index, target.section(target.start, end).low)


class _Floor:
    """How far down an owed record may be in another shape, where it has no copy in the window.

    `may_end_midway`: the target may end in a replay that was stopped.
    """

    def __init__(self, aligned: Alignment, lower: OffsetPair | None, logs: LogPair, may_end_midway: bool) -> None:
        self._aligned, self._lower = aligned, lower
        self._source, self._target, self._keeps_time = logs.source, logs.target, logs.keeps_time
        self._has_open_transaction, self._may_end_midway = logs.question.has_open_transaction, may_end_midway

    def of(self, first: int, index: int) -> int:
        """Return the first index above the nearest consumed copy that may be an owed record in another shape.

        `first` is the first owed record's index on the source, `index` the row's on the target so far: the upper limit.
        """
        aligned, source = self._aligned, self._source
        if self._has_open_transaction:
            # A record of the open transaction that looks like an older one: its copy is one too many.
            index = aligned.first_surplus(index)
        start = self._behind_consumed(first, index)
        lacking = aligned.times_without_copy(first)
        older: set[int] = set()
        # Where all of the source is seen, or nothing of it is found, an unknown record is no older one that is gone.
        if source.has_unseen and not self._has_open_transaction and aligned.matched(aligned.source.low):
            # Records of one batch often share their timestamp: what an owed one without a copy has excuses nothing.
            older = set(source.times[aligned.source.low : first]) - lacking if self._keeps_time else older
        strange = self._strange_below_anchor(index, lacking)
        if strange is None and self._may_end_midway:
            # Then older records' copies are behind what an earlier run wrote.
            strange = aligned.first_unknown(
                aligned.target.low, start, lambda time: self._keeps_time and time not in lacking
            )
        if strange is None:
            strange = self._first_unknown(start, index, older)
        return index if strange is None else strange

    def _behind_consumed(self, first: int, index: int) -> int:
        """Return the index behind the nearest copy of a consumed record, as far as that is read or may be."""
        aligned, target = self._aligned, self._target
        for i in range(first - 1, aligned.source.low - 1, -1):
            below = aligned.nearest_copy_below(i, index)
            if below is not None:
                return below + 1
        lowest = target.start if self._lower is None else self._lower[1]
        if target.affords(lowest, aligned.target.end):
            return target.section(lowest, aligned.target.end).low
        return aligned.target.low

    def _strange_below_anchor(self, index: int, lacking: Container[int]) -> int | None:
        """Return the first index of an older run, below the lower anchor, that may be an owed record in another shape.

        The source is not known there, so only records with the timestamp of an owed one count, and it is read on.
        """
        source, target, lower = self._source, self._target, self._lower
        if lower is None or self._aligned.target.start >= lower[1]:
            return None
        known = set(source.prints)
        suspects = [
            j
            for j in range(self._aligned.target.low, min(target.index(lower[1]), index))
            if target.prints[j] not in known and (not self._keeps_time or target.times[j] in lacking)
        ]
        if not suspects:
            return None
        start = source.first_at(min(target.times[j] for j in suspects)) if self._keeps_time else source.start
        if start < lower[0] and source.affords(start, lower[0]):
            source.require(start, lower[0])
        return suspects[0]

    def _first_unknown(self, start: int, index: int, older: Container[int]) -> int | None:
        if start >= self._aligned.target.low:
            return self._aligned.first_unknown(start, index, older.__contains__)
        written, target = set(self._source.prints), self._target
        return next(
            (j for j in range(start, index) if target.prints[j] not in written and target.times[j] not in older), None
        )


def _counted(committed: int, pair: OffsetPair, source: PartialLog, target: PartialLog, target_end: int) -> int | None:
    """Return the target index that no removed record at or after a commit has its last copy below, by counting.

    `pair` is the nearest sync at or below the commit, unproven as its source record is gone; `target_end` bounds the
    target offsets looked at. MM2 copies in order. So if as many distinct records that the source no longer has are
    between the sync's copy and the copy of the first source record as there were offsets between the two, none was left
    out, and the n-th of them is the n-th record. None where the count differs, where the sync's copy is gone too, or
    where the copies do not follow each other as those of a mirror that now and then begins anew: then a record that
    looks like another, or one of somebody else's, was counted wrong.
    """
    source_offset, target_offset = pair
    if target_offset < target.start:
        return None
    copies = target.section(target_offset, target_end)
    if target.at(target_offset) is None:
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
    for index in range(copies.low, copies.top):
        fingerprint = target.prints[index]
        is_before &= fingerprint != next_print
        if fingerprint not in number:
            if not is_before or fingerprint in written:
                continue
            number[fingerprint] = len(newest)
            newest.append(index)
        this = number[fingerprint]
        if this > last + 1:
            return None
        newest[this] = index
        last = this
    if len(newest) != next_offset - source_offset:
        return None
    return min(newest[committed - source_offset :])

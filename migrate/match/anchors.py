"""Anchors: pairs of an original and its copy that were compared (Laws 1 and 3 of docs/translation.md). Pure.

Most are syncs of the chain. Where syncs are far apart, a record that is unique in a short stretch of either log serves.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

from migrate.match.partial_log import LogPair, MissingRanges, Section
from migrate.match.protocol import OffsetPair, OffsetRange, PartitionQuestion
from migrate.model import Side

# Beyond this many offsets a sync is far: other means bound a search closer.
WIDE = 5_000
# How many offsets are read to find an anchor where no sync is near.
REACH = 512
# How many syncs are tried, in growing batches, before the search goes on without one.
TRIES = 64
# How far a producer's clock may be ahead of a broker's, in ms.
SKEW_MS = 60_000
SOURCE = itemgetter(0)


class Anchors:
    """The chain of one partition, and what comparing its records has shown.

    `pairs` are sorted; anchors that were found without a sync are put in between.
    """

    def __init__(self, question: PartitionQuestion, logs: LogPair) -> None:
        self.pairs = list(question.sync_pairs)
        self._logs = logs
        self._source_has_copies = question.source_has_copies
        self._source, self._target = logs.source, logs.target
        self._proven: dict[OffsetPair, bool] = {}
        self._refuted: set[OffsetPair] = set()
        self._sought: set[int] = set()
        self._same_shift_from = self._first_of_same_shift()

    def last(self) -> OffsetPair | None:
        """Return the last proven pair."""
        return self._nearest(range(len(self.pairs) - 1, -1, -1))

    def below(self, committed: int, widest: int | None = None) -> OffsetPair | None:
        """Return the nearest proven pair at or below a source offset, not more than `widest` offsets below."""
        at = bisect_right(self.pairs, committed, key=SOURCE) - 1
        near = (k for k in range(at, -1, -1) if widest is None or committed - self.pairs[k][0] <= widest)
        return self._nearest(near)

    def unproven_below(self, committed: int) -> OffsetPair | None:
        """Return the nearest pair at or below a source offset, compared or not."""
        at = bisect_right(self.pairs, committed, key=SOURCE) - 1
        return self.pairs[at] if at >= 0 else None

    def is_refuted(self, pair: OffsetPair) -> bool:
        """True if both records of a sync were compared, and differ: it is of another log."""
        return pair in self._refuted

    def between(self, source_start: int, source_end: int) -> Sequence[OffsetPair]:
        """Return the pairs in a range of source offsets, compared or not."""
        first, end = (bisect_left(self.pairs, offset, key=SOURCE) for offset in (source_start, source_end))
        return self.pairs[first:end]

    def above(self, committed: int) -> OffsetPair | None:
        """Return the nearest proven pair above a source offset from which on all pairs keep their distance."""
        self._seek_above(committed)
        first = max(bisect_right(self.pairs, committed, key=SOURCE), self._same_shift_from)
        return self._nearest(range(first, len(self.pairs)))

    def is_plain_after(self, pair: OffsetPair) -> bool:
        """True if every later pair keeps the same distance between the logs as the last."""
        return bisect_left(self.pairs, pair[0], key=SOURCE) >= self._same_shift_from

    def seek_tail(self) -> None:
        """Find an anchor near the ends of the logs, if no sync is there."""
        source, target = self._source, self._target
        if self.pairs and source.end - self.pairs[-1][0] <= WIDE:
            return
        on_source = OffsetRange(max(source.start, source.end - REACH), source.end)
        on_target = OffsetRange(max(target.start, target.end - 2 * REACH), target.end)
        self._seek(*self._logs.sections(on_source, on_target), lowest=True)

    def _seek_above(self, committed: int) -> None:
        """Find an anchor shortly above a commit, if the next sync is far."""
        at = bisect_right(self.pairs, committed, key=SOURCE)
        source, target = self._source, self._target
        next_offset = self.pairs[at][0] if at < len(self.pairs) else source.end
        if committed in self._sought or next_offset - committed <= WIDE or not self._logs.keeps_time:
            return
        owed = max(committed, source.start)
        on_source = source.section(owed, owed + REACH)
        if times := on_source.times:
            start = target.first_at(min(times))
            self._seek(on_source, target.section(start, start + 2 * REACH), lowest=False)
        self._sought.add(committed)

    def _seek(self, source: Section, target: Section, lowest: bool) -> None:
        """Take the lowest or the highest record that is unique in both sections for an anchor, if there is one."""
        originals, copies = source.prints, target.prints
        written, copied = Counter(originals), Counter(copies)
        for fingerprint in originals if lowest else reversed(originals):
            if written[fingerprint] == 1 and copied[fingerprint] == 1:
                i, j = source.low + originals.index(fingerprint), target.low + copies.index(fingerprint)
                if self._can_be_a_copy(source.log.times[i], target.log.times[j]):
                    self._insert((source.log.offsets[i], target.log.offsets[j]))
                    return

    def _can_be_a_copy(self, source_ms: int, target_ms: int) -> bool:
        """False where the copy would be older than its original: then it is the copy of an equal record before.

        A table that is loaded anew each night, most of its rows unchanged, would seem to be copied before it is.
        """
        if self._logs.keeps_time:
            return True
        copy_ms, original_ms = (source_ms, target_ms) if self._source_has_copies else (target_ms, source_ms)
        return copy_ms + SKEW_MS >= original_ms

    def _insert(self, pair: OffsetPair) -> None:
        """Take an anchor into the chain, if it lies in order there."""
        at = bisect_left(self.pairs, pair[0], key=SOURCE)
        below = self.pairs[at - 1] if at else (-1, -1)
        above = self.pairs[at] if at < len(self.pairs) else (self._source.end, self._target.end)
        if below[0] < pair[0] < above[0] and below[1] < pair[1] < above[1]:
            self.pairs.insert(at, pair)
            self._proven[pair] = True
            self._same_shift_from = self._first_of_same_shift()

    def _nearest(self, candidates: Iterable[int]) -> OffsetPair | None:
        """Return the first pair of `candidates` that is proven."""
        untried: Iterator[int] = islice(iter(candidates), TRIES)
        size = 1
        while batch := [self.pairs[k] for k in islice(untried, size)]:
            unknown = [pair for pair in batch if pair not in self._proven]
            if unknown:
                self._compare(unknown)
            for pair in batch:
                if self._proven[pair]:
                    return pair
            size *= 2
        return None

    def _compare(self, pairs: Sequence[OffsetPair]) -> None:
        """Compare the two records of each sync; where one of them is gone, nothing is proven."""
        source, target = self._source, self._target
        on_source: list[OffsetRange] = []
        on_target: list[OffsetRange] = []
        for source_offset, target_offset in pairs:
            if source_offset >= source.start and target_offset >= target.start:
                on_source += source.uncovered(source_offset, source_offset + 1)
                on_target += target.uncovered(target_offset, target_offset + 1)
        if on_source or on_target:
            raise MissingRanges({Side.SOURCE: on_source, Side.TARGET: on_target})
        for pair in pairs:
            self._proven[pair] = self._is_pair(*pair)

    def _is_pair(self, source_offset: int, target_offset: int) -> bool:
        source, target = self._source, self._target
        if source_offset < source.start or target_offset < target.start:
            return False
        i, j = source.known_at(source_offset), target.known_at(target_offset)
        if i is None or j is None:
            return False
        if source.prints[i] != target.prints[j]:
            self._refuted.add((source_offset, target_offset))
            return False
        return True

    def _first_of_same_shift(self) -> int:
        """Return the first pair from which on all keep the same distance: no replay, no gap lies between them."""
        shifts = [target - source for source, target in self.pairs]
        return next((at + 1 for at in range(len(shifts) - 1, -1, -1) if shifts[at] != shifts[-1]), 0)

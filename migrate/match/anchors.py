"""Anchors: pairs of an original and its copy that were compared (Laws 1 and 3 of docs/translation.md). Pure.

Most are syncs of the chain. Where syncs are far apart, a record that is unique in a short stretch of either log serves.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from migrate.match.partial_log import KnownLog, Missing, require_both
from migrate.match.protocol import Link, PartitionQuestion, Range
from migrate.model import Side

# Beyond this many offsets a sync is far: other means bound a search closer.
WIDE = 5_000
# How many offsets are read to find an anchor where no sync is near.
REACH = 512
# How many syncs are tried, in growing batches, before the search goes on without one.
TRIES = 64


class Anchors:
    """The chain of one partition, and what comparing its records has shown.

    `links` are sorted; anchors that were found without a sync are put in between.
    """

    def __init__(self, question: PartitionQuestion, source: KnownLog, target: KnownLog) -> None:
        self.links = list(question.links)
        self._keeps_time = question.equality.keeps_time
        self._source = source
        self._target = target
        self._offsets = [u for u, _ in question.links]
        self._proven: dict[Link, bool] = {}
        self._sought: set[int] = set()
        self._same_shift_from = self._first_of_same_shift()

    def last(self) -> Link | None:
        """Return the last proven link."""
        return self._nearest(range(len(self.links) - 1, -1, -1))

    def below(self, g: int, widest: int | None = None) -> Link | None:
        """Return the nearest proven link at or below a source offset, not more than `widest` offsets below."""
        at = bisect_right(self._offsets, g) - 1
        return self._nearest(k for k in range(at, -1, -1) if widest is None or g - self._offsets[k] <= widest)

    def unproven_below(self, g: int) -> Link | None:
        """Return the nearest link at or below a source offset, compared or not."""
        at = bisect_right(self._offsets, g) - 1
        return self.links[at] if at >= 0 else None

    def between(self, source_start: int, source_end: int) -> list[Link]:
        """Return the links in a range of source offsets, compared or not."""
        return self.links[bisect_left(self._offsets, source_start) : bisect_left(self._offsets, source_end)]

    def above(self, g: int) -> Link | None:
        """Return the nearest proven link above a source offset from which on all links keep their distance."""
        self._seek_above(g)
        first = max(bisect_right(self._offsets, g), self._same_shift_from)
        return self._nearest(range(first, len(self.links)))

    def is_plain_after(self, link: Link) -> bool:
        """True if every later link keeps the same distance between the logs as the last."""
        return self._offsets.index(link[0]) >= self._same_shift_from

    def seek_tail(self) -> None:
        """Find an anchor near the ends of the logs, if no sync stands there."""
        source, target = self._source, self._target
        if self.links and source.end - self.links[-1][0] <= WIDE:
            return
        on_source = Range(max(source.start, source.end - REACH), source.end)
        on_target = Range(max(target.start, target.end - 2 * REACH), target.end)
        require_both(source, on_source, target, on_target)
        self._seek(on_source, on_target, lowest=True)

    def _seek_above(self, g: int) -> None:
        """Find an anchor shortly above a commit, if the next sync is far."""
        at = bisect_right(self._offsets, g)
        source, target = self._source, self._target
        next_offset = self._offsets[at] if at < len(self.links) else source.end
        if g in self._sought or next_offset - g <= WIDE or not self._keeps_time:
            return
        on_source = Range(max(g, source.start), max(g, source.start) + REACH)
        source.require(on_source.start, on_source.end)
        times = source.times[source.index(on_source.start) : source.index(on_source.end)]
        if times:
            start = target.first_at(min(times))
            target.require(start, start + 2 * REACH)
            self._seek(on_source, Range(start, start + 2 * REACH), lowest=False)
        self._sought.add(g)

    def _seek(self, on_source: Range, on_target: Range, lowest: bool) -> None:
        source = range(self._source.index(on_source.start), self._source.index(on_source.end))
        target = range(self._target.index(on_target.start), self._target.index(on_target.end))
        written = Counter(self._source.prints[i] for i in source)
        copies = Counter(self._target.prints[j] for j in target)
        for i in source if lowest else reversed(source):
            fingerprint = self._source.prints[i]
            if written[fingerprint] == 1 and copies[fingerprint] == 1:
                j = next(j for j in target if self._target.prints[j] == fingerprint)
                self._insert((self._source.offsets[i], self._target.offsets[j]))
                return

    def _insert(self, link: Link) -> None:
        """Take an anchor into the chain, if it lies in order there."""
        at = bisect_left(self._offsets, link[0])
        below = self.links[at - 1] if at else (-1, -1)
        above = self.links[at] if at < len(self.links) else (self._source.end, self._target.end)
        if below[0] < link[0] < above[0] and below[1] < link[1] < above[1]:
            self.links.insert(at, link)
            self._offsets.insert(at, link[0])
            self._proven[link] = True
            self._same_shift_from = self._first_of_same_shift()

    def _nearest(self, candidates: Iterable[int]) -> Link | None:
        """Return the first link of `candidates` that is proven."""
        untried: Iterator[int] = islice(iter(candidates), TRIES)
        size = 1
        while batch := [self.links[k] for k in islice(untried, size)]:
            unknown = [link for link in batch if link not in self._proven]
            if unknown:
                self._compare(unknown)
            for link in batch:
                if self._proven[link]:
                    return link
            size *= 2
        return None

    def _compare(self, links: Iterable[Link]) -> None:
        """Compare the two records of each sync; where one of them is gone, nothing is proven."""
        links = list(links)
        source, target = self._source, self._target
        missing: dict[Side, list[Range]] = {Side.SOURCE: [], Side.TARGET: []}
        for u, d in links:
            if u >= source.start and d >= target.start:
                missing[Side.SOURCE] += source.uncovered(u, u + 1)
                missing[Side.TARGET] += target.uncovered(d, d + 1)
        if any(missing.values()):
            raise Missing({side: tuple(ranges) for side, ranges in missing.items()})
        for link in links:
            self._proven[link] = self._is_pair(*link)

    def _is_pair(self, source_offset: int, target_offset: int) -> bool:
        source, target = self._source, self._target
        if source_offset < source.start or target_offset < target.start:
            return False
        i, j = source.at(source_offset), target.at(target_offset)
        return i is not None and j is not None and source.prints[i] == target.prints[j]

    def _first_of_same_shift(self) -> int:
        """Return the first link from which on all keep the same distance: no replay, no gap lies between them."""
        first = len(self.links)
        for k in range(len(self.links) - 1, -1, -1):
            if self.links[k][1] - self.links[k][0] != self.links[-1][1] - self.links[-1][0]:
                break
            first = k
        return first

"""Two stretches laid side by side: where the copy of each source record stands on the target. Pure.

The definition does the work (docs/translation.md, "Owed, loss-free, best"): the best offset is the least of the
owed records' last copies. Records that look alike are told apart by order only: between the copies of their neighbours
that are unmistakable. Where even that is unclear the lowest candidate counts, and the rows say so.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate

from migrate.match.copies import Runs
from migrate.match.partial_log import KnownLog
from migrate.match.protocol import Link


class Alignment:
    """The source's records [source_low, source_top) against the target's [target_low, target_top).

    The four are places in the known logs' arrays, not offsets; `source_width` is the stretch in offsets. Both
    stretches must be fully known. `tells_apart` is False where fingerprints hold too little of a record to tell a
    second copy from another record; `hides` is True where the source has records that readers are not shown yet,
    whose copies may stand on the target. `may_end_midway` is True where a replay that was stopped midway may stand
    at the target's end: then a last copy may rightly stand out of order. `links` are the chain's syncs in the
    stretch, as offsets: which copy is whose, in MM2's own words.
    """

    def __init__(
        self,
        source: KnownLog,
        source_low: int,
        source_top: int,
        source_width: int,
        target: KnownLog,
        target_low: int,
        target_top: int,
        tells_apart: bool = True,
        hides: bool = False,
        may_end_midway: bool = False,
        links: Sequence[Link] = (),
    ) -> None:
        self.source = source
        self.target = target
        self.source_low, self.source_top = source_low, source_top
        self.target_low, self.target_top = target_low, target_top
        wanted = source.prints[source_low:source_top]
        there = target.prints[target_low:target_top]
        self._identical = wanted == there and len(set(wanted)) == len(wanted)
        self.has_replays = False
        self.has_look_alikes = False
        self.has_gaps = source_width > source_top - source_low
        self._tells_apart = tells_apart
        # Copies of records that are not seen here may be taken for those of others.
        self._is_blurred = hides or (self.has_gaps and not tells_apart)
        self._hides = hides
        self._links = links
        self._trusts_last = may_end_midway and not self.has_gaps and tells_apart
        if not self._identical:
            self._align(wanted, there)

    def place(self, source_place: int) -> int:
        """Return the place on the target that no owed record's last copy lies below; target_top if none has one."""
        if self._identical:
            return self.target_low + source_place - self.source_low
        return self._least[source_place - self.source_low]

    def matched(self, source_place: int) -> int:
        """Count the records from `source_place` on that have a copy."""
        if self._identical:
            return self.source_top - source_place
        return self._matched[source_place - self.source_low]

    def sure(self, source_place: int) -> int:
        """Count the records from `source_place` on that have a copy which is theirs without doubt."""
        if self._identical:
            return self.source_top - source_place
        return self._own[source_place - self.source_low]

    def without_copy(self, source_place: int) -> int:
        """Count the records from `source_place` on that have none."""
        return self.source_top - source_place - self.matched(source_place)

    def absent(self, source_place: int) -> int:
        """Count the records from `source_place` on that equal none of the target's, each time they stand there."""
        if self._identical:
            return 0
        prints = self.source.prints
        return sum(prints[i] not in self._copies for i in range(source_place, self.source_top))

    def superseded(self, source_place: int) -> int:
        """Count the records from `source_place` on without a copy that a cleaner may have taken from the target.

        Those are tombstones, and records whose key comes again later in a record of which the same holds, or that has
        its copy. Needs the source's keys.
        """
        if self._identical:
            return 0
        excused, newer = 0, set()
        seen: Counter[int] = Counter()
        for i in range(self.source_top - 1, source_place - 1, -1):
            key, is_tombstone = divmod(self.source.keys[i], 2)
            fingerprint = self.source.prints[i]
            seen[fingerprint] += 1
            if seen[fingerprint] > len(self._copies.get(fingerprint, ())):
                if not is_tombstone and key not in newer:
                    continue
                excused += 1
            newer.add(key)
        return excused

    def is_ambiguous(self, source_place: int) -> bool:
        """True if records that look alike were not copied as often as they were written, from here on."""
        return not self._identical and source_place <= self._ambiguous_up_to

    def _lacks_copies(self, source_place: int) -> bool:
        fingerprint = self.source.prints[source_place]
        return len(self._copies.get(fingerprint, ())) < self._written[fingerprint]

    def nearest_copy_below(self, source_place: int, target_place: int) -> int | None:
        """Return the last copy of a record before a place on the target; None if it has none there.

        After a replay it is the first copy: what an older run wrote may stand between the two.
        """
        if self._identical:
            found = self.place(source_place)
            return found if found < target_place else None
        copies = self._copies.get(self.source.prints[source_place], [])
        at = bisect_left(copies, target_place)
        if not at:
            return None
        return copies[0] if self.has_replays else copies[at - 1]

    def times_without_copy(self, source_place: int) -> set[int]:
        """Return the timestamps of the records from `source_place` on whose copy is not known for sure to be there."""
        if self._identical or (self._tells_apart and not self.without_copy(source_place)):
            return set()
        is_unsure = self._is_blurred and not self._tells_apart
        return {
            self.source.times[i] for i in range(source_place, self.source_top) if is_unsure or self._lacks_copies(i)
        }

    def last_known(self, target_place: int) -> int:
        """Return the place of the last record from a place on that equals a source record; else that place."""
        for j in range(self.target_top - 1, target_place, -1):
            if self._identical or self.target.prints[j] in self._written:
                return j
        return target_place

    def first_surplus(self, target_place: int) -> int:
        """Return the first place below one at which a source record stands more often than it was written."""
        if self._identical:
            return target_place
        extra = (
            copies[self._written[print_]]
            for print_, copies in self._copies.items()
            if len(copies) > self._written[print_]
        )
        return min([target_place, *extra])

    def unknown(self, target_from: int, target_to: int) -> int:
        """Count the target's records in a range of places that equal no record of the source's stretch."""
        if self._identical:
            return 0
        return self._unknown[target_to - self.target_low] - self._unknown[target_from - self.target_low]

    def newcomers(self, target_from: int, target_to: int, since: int) -> int:
        """Count the records of unknown origin in a range of places that are newer than a time (ms).

        Newer by more than the source's timestamps are out of order. Equal ones count once; none count where look-alikes
        or replays blur what is what.
        """
        if self._identical or self.has_replays or self.has_look_alikes:
            return 0
        prints, times = self.target.prints, self.target.times
        places = self._strangers[bisect_left(self._strangers, target_from) : bisect_left(self._strangers, target_to)]
        since += self._disorder() if places else 0
        return len({prints[j] for j in places if times[j] > since})

    def _disorder(self) -> int:
        """Return by how much (ms) a record of the source is older than one before it, at most."""
        times = self.source.times[self.source_low : self.source_top]
        return max((newest - time for newest, time in zip(accumulate(times, max), times, strict=True)), default=0)

    def first_unknown(self, target_from: int, target_to: int, is_older: Callable[[int], bool]) -> int | None:
        """Return the first place in a range whose record is unknown, and has not the timestamp of an older one."""
        if target_from >= target_to or self._identical or not self.unknown(target_from, target_to):
            return None
        for j in range(target_from, target_to):
            if self.target.prints[j] not in self._written and not is_older(self.target.times[j]):
                return j
        return None

    def _align(self, wanted: "array[int]", there: "array[int]") -> None:
        written: dict[int, int] = {}
        for fingerprint in wanted:
            written[fingerprint] = written.get(fingerprint, 0) + 1
        copies: dict[int, list[int]] = {}
        unknown = array("q", [0])
        strangers = 0
        for j, fingerprint in enumerate(there, self.target_low):
            if fingerprint in written:
                copies.setdefault(fingerprint, []).append(j)
            else:
                strangers += 1
            unknown.append(strangers)
        self._written, self._copies, self._unknown = written, copies, unknown
        self._strangers = array("q", (j for j, print_ in enumerate(there, self.target_low) if print_ not in written))
        self.has_look_alikes = any(many > 1 for many in written.values())
        self._named = self._places_of_links() if self.has_gaps else {}
        self._walk(wanted)

    def _places_of_links(self) -> dict[int, int]:
        """Return the copies' places by their originals', for each sync whose records are still there."""
        source, target = self.source, self.target
        places = {}
        for u, d in self._links:
            i, j = source.index(u), target.index(d)
            if i < self.source_top and j < self.target_top and (source.offsets[i], target.offsets[j]) == (u, d):
                places[i] = j
        return places

    def _walk(self, wanted: "array[int]") -> None:
        """Go back over the source's records and take for each its last copy; the running least is a row's place."""
        self._ambiguous_up_to = -1
        size = len(wanted)
        pivots = self._pivots(wanted)
        below = self._nearest_below(pivots)
        in_between = self._counts_between(wanted, pivots)
        runs = self._runs(wanted)
        least = array("q", [self.target_top]) * (size + 1)
        matched = array("q", [0]) * (size + 1)
        own = array("q", [0]) * (size + 1)
        used: dict[int, int] = {}
        lowest, count, sure, above, context = self.target_top, 0, 0, self.target_top, self.target_top
        passed: dict[int, int] = {}
        for i in range(size - 1, -1, -1):
            found = self._copies.get(wanted[i])
            if found:
                here = pivots[i]
                if here is not None:
                    above = here
                    is_sure = True
                    passed = {}
                else:
                    passed[wanted[i]] = passed.get(wanted[i], 0) + 1
                    here, is_sure = self._between(found, below[i], above, in_between[i], passed[wanted[i]])
                    if not is_sure and runs is not None:
                        known = runs.last_copy(i)
                        if known is not None:
                            here, is_sure = known + self.target_low, not runs.is_doubtful(i)
                    # Of equal records as many must follow as are owed, whichever is which.
                    here = min(here, found[max(0, len(found) - used.get(wanted[i], 0) - 1)])
                    # More copies further up than the source has there: the best place may be one of those.
                    later = used.get(wanted[i], 0) + 1 - passed[wanted[i]]
                    is_sure &= len(found) - bisect_left(found, above) <= later
                    if not is_sure:
                        self._ambiguous_up_to = max(self._ambiguous_up_to, self.source_low + i)
                used[wanted[i]] = used.get(wanted[i], 0) + 1
                count += used[wanted[i]] <= len(found)
                sure += is_sure
                self.has_replays |= here >= context or len(found) > self._written[wanted[i]]
                context = here
                lowest = min(lowest, here)
            least[i] = lowest
            matched[i] = count
            own[i] = sure
        self._least, self._matched, self._own = least, matched, own

    def _runs(self, wanted: "array[int]") -> Runs | None:
        """Return what the order of the copies tells of look-alikes; None where there are none, or order tells nothing.

        Where records of the source are not seen here, the copies of others may stand for theirs.
        """
        if not self.has_look_alikes or self._hides or self.has_gaps or not self._tells_apart:
            return None
        return Runs(wanted, self.target.prints[self.target_low : self.target_top], self._written)

    def _pivots(self, wanted: "array[int]") -> list[int | None]:
        """Return the place of each record's copy, None where it has none or is not the only one of its kind."""
        pivots: list[int | None] = [None] * len(wanted)
        context = self.target_top
        for i in range(len(wanted) - 1, -1, -1):
            found = self._copies.get(wanted[i])
            if found and self._written[wanted[i]] == 1 and (len(found) == 1 or not self._is_blurred):
                pivots[i] = context = self._last_copy(found, context, i)
        return pivots

    @staticmethod
    def _nearest_below(pivots: list[int | None]) -> list[int | None]:
        below: list[int | None] = []
        nearest = None
        for pivot in pivots:
            below.append(nearest)
            nearest = nearest if pivot is None else pivot
        return below

    @staticmethod
    def _counts_between(wanted: "array[int]", pivots: list[int | None]) -> list[int]:
        """Return for each record how many equal ones the source has between the same two pivots."""
        interval, intervals = 0, []
        for pivot in pivots:
            interval += pivot is not None
            intervals.append(interval)
        counts = Counter(zip(intervals, wanted, strict=True))
        return [counts[each] for each in zip(intervals, wanted, strict=True)]

    def _last_copy(self, copies: list[int], context: int, i: int) -> int:
        """Return the last copy of a record that stands in order, before the copy of the source's next record.

        One out of order may be that of a record which looks alike and is not seen here: aborted, or beyond the window.
        """
        if self._trusts_last or len(copies) == 1:
            return copies[-1]
        at = max(1, bisect_left(copies, context))
        # What an aborted transaction wrote leaves a gap on the source: its copy stands right behind an equal record's.
        # So does a second copy where MM2 began anew with this very record; but then it wrote a sync that says so.
        named = self._named.get(self.source_low + i)
        while (
            self.has_gaps
            and at > 1
            and copies[at - 1] != named
            and self.unknown(copies[at - 2] + 1, copies[at - 1]) == copies[at - 1] - copies[at - 2] - 1
        ):
            at -= 1
        if at < len(copies):
            self._ambiguous_up_to = max(self._ambiguous_up_to, self.source_low + i)
        return copies[at - 1]

    def _between(
        self, copies: list[int], below: int | None, above: int, written: int, nth_from_last: int
    ) -> tuple[int, bool]:
        """Return the copy of a record that looks like others, and whether there is no doubt about it.

        `below` and `above` are the places of its neighbours' copies, `written` is how many such records the source has
        between the neighbours, and this one is the nth of them from behind.
        """
        low = self.target_low if below is None else below
        first, last = bisect_left(copies, low), bisect_left(copies, above)
        candidates = copies[first:last] if low <= above else []
        if not self._tells_apart:
            # Of records with one time and key some may be dropped or aborted: their number tells nothing.
            return (copies if self._is_blurred or len(candidates) < written else candidates)[0], False
        if not candidates:
            return (copies[max(0, last - nth_from_last)] if last and low <= above else copies[0]), False
        if self._hides and above == self.target_top:
            return candidates[0], False
        if len(candidates) == written:
            return candidates[-nth_from_last], True
        if len(candidates) < written and first:
            # A replay that stopped midway: which of them it copied nobody knows.
            return copies[max(0, first - nth_from_last)], False
        return candidates[0], False

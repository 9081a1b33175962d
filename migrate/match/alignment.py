"""Questions about two aligned sections: what is missing, what is strange, what is there too often. Pure."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

from migrate.match.copies import Premises, copies_of
from migrate.match.partial_log import Section


class Alignment:
    """A section of the source against one of the target; all indexes are those of the two logs' arrays."""

    def __init__(self, source: Section, target: Section, premises: Premises) -> None:
        self.source, self.target = source, target
        self._premises = premises
        self._copies = copies_of(source, target, premises)
        self.has_look_alikes = self._copies.has_look_alikes

    def first_owed(self, committed: int) -> int:
        """Return the index of the first source record at or after a commit, as far as retention left it."""
        source = self.source
        return min(max(source.log.index(max(committed, source.log.start)), source.low), source.top)

    def lowest_copy(self, source_index: int) -> int:
        """Return the index on the target that no owed record's last copy lies below; the top if none has one."""
        return self._copies.lowest[source_index - self.source.low]

    def matched(self, source_index: int) -> int:
        """Count the records from `source_index` on that have a copy."""
        return self._copies.matched[source_index - self.source.low]

    def sure(self, source_index: int) -> int:
        """Count the records from `source_index` on that have a copy which is theirs without doubt."""
        return self._copies.sure[source_index - self.source.low]

    def without_copy(self, source_index: int) -> int:
        """Count the records from `source_index` on that have none."""
        return self.source.top - source_index - self.matched(source_index)

    def absent(self, source_index: int) -> int:
        """Count the records from `source_index` on that equal none of the target's, each time they were written."""
        if not self.without_copy(source_index):
            return 0
        prints = self.source.log.prints
        return sum(prints[i] not in self._copies.indexes for i in range(source_index, self.source.top))

    def superseded(self, source_index: int, coming: int) -> int:
        """Count the records in [source_index, coming) without a copy that a cleaner may have taken from the target.

        Tombstones, and records whose key comes again later in one that counts as well or has its copy. Those from
        `coming` on are still to be copied: what is not there took nobody's place. Needs keys.
        """
        if not self.without_copy(source_index):
            return 0
        log, excused, newer = self.source.log, 0, set()
        met: Counter[int] = Counter()
        for i in range(self.source.top - 1, source_index - 1, -1):
            key, is_tombstone = divmod(log.keys[i], 2)
            met[log.prints[i]] += 1
            if met[log.prints[i]] > len(self._copies.indexes.get(log.prints[i], ())):
                # A tombstone may have been there and gone, also where nobody knows how far MM2 has come.
                if not is_tombstone and (i >= coming or key not in newer):
                    continue
                excused += i < coming
            newer.add(key)
        return excused

    def is_ambiguous(self, source_index: int) -> bool:
        """True if records that look alike were not copied as often as they were written, from here on."""
        return source_index - self.source.low <= self._copies.ambiguous_up_to

    def nearest_copy_below(self, source_index: int, target_index: int) -> int | None:
        """Return the last copy of a record below an index on the target; None if it has none there.

        After a replay it is the first copy: what an older run wrote may be between the two.
        """
        if self._copies.is_identical:
            copy = self.lowest_copy(source_index)
            return copy if copy < target_index else None
        copies = self._copies.indexes.get(self.source.log.prints[source_index], ())
        at = bisect_left(copies, target_index)
        if not at:
            return None
        return copies[0] if self._copies.has_replays else copies[at - 1]

    def times_without_copy(self, source_index: int) -> set[int]:
        """Return the timestamps of the records from `source_index` on whose copy is not known for sure to be there."""
        tells_apart = self._premises.tells_apart
        if self._copies.is_identical or (tells_apart and not self.without_copy(source_index)):
            return set()
        is_unsure = not tells_apart and (self._premises.has_open_transaction or self.source.has_gaps)
        times = self.source.log.times
        return {times[i] for i in range(source_index, self.source.top) if is_unsure or self._lacks_copies(i)}

    def _lacks_copies(self, source_index: int) -> bool:
        fingerprint = self.source.log.prints[source_index]
        return len(self._copies.indexes.get(fingerprint, ())) < self._copies.written[fingerprint]

    def last_known(self, target_index: int) -> int:
        """Return the index of the last record from one on that equals a source record; else that index."""
        last = self.target.top - 1
        for stranger in reversed(self._copies.strangers):
            if stranger < last:
                break
            last -= 1
        return max(last, target_index)

    def first_surplus(self, target_index: int) -> int:
        """Return the first index below one at which a source record was copied more often than it was written."""
        written = self._copies.written
        extra = (copies[written[p]] for p, copies in self._copies.indexes.items() if len(copies) > written[p])
        return min([target_index, *extra])

    def unknown(self, target_from: int, target_to: int) -> int:
        """Count the target's records in a range of indexes that equal no record of the source's section."""
        return len(self._strangers(target_from, target_to))

    def newcomers(self, target_from: int, target_to: int, since: int) -> int:
        """Count the records of unknown origin in a range of indexes that are newer than a time (ms).

        Newer by more than the source's disorder. Equal ones count once, none where look-alikes or replays blur origins.
        """
        strangers = self._strangers(target_from, target_to)
        if not strangers or self._copies.has_replays or self.has_look_alikes:
            return 0
        log, since = self.target.log, since + self._disorder()
        return len({log.prints[j] for j in strangers if log.times[j] > since})

    def _disorder(self) -> int:
        """Return by how much (ms) a record of the source is older than one before it, at most."""
        times = self.source.times
        return max((newest - time for newest, time in zip(accumulate(times, max), times, strict=True)), default=0)

    def first_unknown(self, target_from: int, target_to: int, is_older: Callable[[int], bool]) -> int | None:
        """Return the first index in a range whose record is unknown, and has not the timestamp of an older one."""
        times = self.target.log.times
        return next((j for j in self._strangers(target_from, target_to) if not is_older(times[j])), None)

    def _strangers(self, target_from: int, target_to: int) -> "array[int]":
        strangers = self._copies.strangers
        return strangers[bisect_left(strangers, target_from) : bisect_left(strangers, target_to)]

"""Which source record each copy is, where records look alike: MM2 copies in order, so neighbours tell. Pure.

MM2 writes runs: source records in a row, from where it (re)started to where it stopped. Between two copies that are
unmistakable there is mostly one run or the joint of two. A copy that only one of these two can have written is known;
one that both could have written is in doubt, and so is one that neither could (docs/translation.md, "Look-alikes").
"""

from array import array
from collections.abc import Mapping, Sequence


class Runs:
    """The last copies of source records that look like others, as far as the order of the copies tells them apart.

    `wanted` are the fingerprints of the source's records in a row, without gaps; `there` those of the target's.
    `written` counts each fingerprint of `wanted`. Places are indexes into `wanted` and `there`.
    """

    def __init__(self, wanted: "array[int]", there: "array[int]", written: Mapping[int, int]) -> None:
        self._wanted = wanted
        self._last: dict[int, int] = {}
        self._doubts_of_record: dict[int, int] = {}
        self._doubts_of_look: dict[int, int] = {}
        only = {fingerprint: i for i, fingerprint in enumerate(wanted) if written[fingerprint] == 1}
        self._prints = there
        landmarks = [(at, only[fingerprint]) for at, fingerprint in enumerate(there) if fingerprint in only]
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
        doubt = max(self._doubts_of_record.get(i, -1), self._doubts_of_look.get(self._wanted[i], -1))
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
            and 0 <= i + step < len(self._wanted)
            and self._prints[at + step] == self._wanted[i + step]
        ):
            at, i = at + step, i + step
        return range(min(at, landmark[0]), max(at, landmark[0]) + 1)

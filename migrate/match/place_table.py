"""The places of a partition's commits as columns: they come back from Spark by the million. Pure.

A dictionary of them takes several times the memory, and each of its values is pickled by itself.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from migrate.match.protocol import Matched, Unmatched, Why

_WHYS = tuple(Why)
_CODES = {why: code for code, why in enumerate(_WHYS)}
# In a packed column alone, for a pair that is not there: offsets are never negative.
_NO_OFFSET = -1
_NO_PAIR = (_NO_OFFSET, _NO_OFFSET)


class MatchedColumns(NamedTuple):
    """What records have placed: item n of a column is of the n-th smallest of `committed`, which are distinct.

    `codes` are indices of `Why`, in its order. The offsets of a sync that is not there are -1. The other columns are
    those of `Matched`.
    """

    committed: Sequence[int]
    codes: Sequence[int]
    target_offsets: Sequence[int]
    rereads_at_most: Sequence[int]
    missing_on_target: Sequence[int]
    lower_source: Sequence[int]
    lower_target: Sequence[int]
    upper_source: Sequence[int]
    upper_target: Sequence[int]


# Of the array that holds each of them.
_TYPES = "qbqqqqqqq"


class PlaceTable(Mapping[int, Matched | Unmatched]):
    """The place of each committed offset, in their order; one is made when it is asked for."""

    __slots__ = ("_matched", "_unmatched")

    def __init__(self, places: Mapping[int, Matched | Unmatched]) -> None:
        matched = {committed: place for committed, place in sorted(places.items()) if isinstance(place, Matched)}
        # Without one, there are empty columns all the same.
        columns = list(zip(*map(_numbers, matched.values()), strict=True)) or [()] * 7
        codes = [_CODES[place.why] for place in matched.values()]
        self._matched = MatchedColumns(*map(array, _TYPES, (tuple(matched), codes, *columns)))
        self._unmatched = {committed: place for committed, place in places.items() if isinstance(place, Unmatched)}

    @classmethod
    def of(cls, places: Mapping[int, Matched | Unmatched]) -> "PlaceTable":
        """Return places as a table; one that is a table already is returned as it is."""
        return places if isinstance(places, cls) else cls(places)

    @property
    def matched(self) -> MatchedColumns:
        """What the records place."""
        return self._matched

    def whys(self) -> set[Why]:
        """Return why the matched ones are where they are."""
        return {_WHYS[code] for code in set(self._matched.codes)}

    def __getitem__(self, committed: int) -> Matched | Unmatched:
        offsets, codes, targets, rereads, missing, lower, lower_target, upper, upper_target = self._matched
        at = bisect_left(offsets, committed)
        if at == len(offsets) or offsets[at] != committed:
            return self._unmatched[committed]
        below = None if lower[at] == _NO_OFFSET else (lower[at], lower_target[at])
        above = None if upper[at] == _NO_OFFSET else (upper[at], upper_target[at])
        return Matched(targets[at], _WHYS[codes[at]], rereads[at], missing[at], below, above)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted([*self._matched.committed, *self._unmatched]))

    def __len__(self) -> int:
        return len(self._matched.committed) + len(self._unmatched)

    def __repr__(self) -> str:
        return f"PlaceTable({dict(self)!r})"


def _numbers(place: Matched) -> tuple[int, ...]:
    lower, upper = place.lower or _NO_PAIR, place.upper or _NO_PAIR
    return (place.target_offset, place.rereads_at_most, place.missing_on_target, *lower, *upper)

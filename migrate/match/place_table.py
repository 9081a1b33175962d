"""The places of a partition's commits as columns: they come back from Spark by the million. Pure.

A dictionary of them takes several times the memory, and each of its values is pickled by itself.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

from migrate.match.protocol import Matched, Unmatched, Why

T = TypeVar("T")
_WHYS = tuple(Why)
_CODES = {why: code for code, why in enumerate(_WHYS)}
# In a packed column alone, for a pair that is not there: offsets are never negative.
_NO_PAIR = (-1, -1)


class PlaceTable(Mapping[int, Matched | Unmatched]):
    """The place of each committed offset, in their order; one is made when it is asked for."""

    __slots__ = ("_codes", "_committed", "_numbers", "_unmatched")

    def __init__(self, places: Mapping[int, Matched | Unmatched]) -> None:
        matched = {committed: place for committed, place in sorted(places.items()) if isinstance(place, Matched)}
        self._committed = array("q", matched)
        self._codes = array("b", [_CODES[place.why] for place in matched.values()])
        columns = zip(*map(_numbers, matched.values()), strict=True)
        self._numbers = tuple(array("q", column) for column in columns)
        self._unmatched = {committed: place for committed, place in places.items() if isinstance(place, Unmatched)}

    @classmethod
    def of(cls, places: Mapping[int, Matched | Unmatched]) -> "PlaceTable":
        """Return places as a table; one that is a table already is returned as it is."""
        return places if isinstance(places, cls) else cls(places)

    def is_matched(self, committed: int) -> bool:
        """True if the records place this committed offset."""
        at = bisect_left(self._committed, committed)
        return at < len(self._committed) and self._committed[at] == committed

    @overload
    def get(self, committed: int) -> Matched | Unmatched | None: ...
    @overload
    def get(self, committed: int, default: T) -> Matched | Unmatched | T: ...
    def get(self, committed: int, default: object = None) -> object:
        """Return the place of a committed offset; without a second call for each, as a mapping's own way has."""
        at = bisect_left(self._committed, committed)
        if at == len(self._committed) or self._committed[at] != committed:
            return self._unmatched.get(committed, default)
        targets, rereads, missing, lower, lower_target, upper, upper_target = self._numbers
        below = None if lower[at] == _NO_PAIR[0] else (lower[at], lower_target[at])
        above = None if upper[at] == _NO_PAIR[0] else (upper[at], upper_target[at])
        return Matched(targets[at], _WHYS[self._codes[at]], rereads[at], missing[at], below, above)

    def __getitem__(self, committed: int) -> Matched | Unmatched:
        place = self.get(committed)
        if place is None:
            raise KeyError(committed)
        return place

    def __iter__(self) -> Iterator[int]:
        return iter(sorted([*self._committed, *self._unmatched]))

    def __len__(self) -> int:
        return len(self._committed) + len(self._unmatched)

    def __repr__(self) -> str:
        return f"PlaceTable({dict(self)!r})"


def is_matched(places: Mapping[int, Matched | Unmatched], committed: int) -> bool:
    """True if the records place a committed offset."""
    if isinstance(places, PlaceTable):
        return places.is_matched(committed)
    return isinstance(places.get(committed), Matched)


def _numbers(place: Matched) -> tuple[int, ...]:
    lower, upper = place.lower or _NO_PAIR, place.upper or _NO_PAIR
    return (place.target_offset, place.rereads_at_most, place.missing_on_target, *lower, *upper)

"""Pairs of offsets as two columns: a long chain of syncs in a tenth of the memory of as many tuples. Pure."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from migrate.match.protocol import OffsetPair


class PairTable(Sequence[OffsetPair]):
    """Pairs in their order, as a tuple of them would hold them; `sources` are the source offsets alone, to search in.

    Raises `ValueError` if the columns differ in length.
    """

    __slots__ = ("_targets", "sources")

    def __init__(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        self.sources = array("q", sources)
        self._targets = array("q", targets)
        if len(self.sources) != len(self._targets):
            raise ValueError("the columns of pairs differ in length")

    @classmethod
    def of(cls, pairs: Sequence[OffsetPair]) -> "PairTable":
        """Return a table of its own with these pairs."""
        if isinstance(pairs, cls):
            return cls(pairs.sources, pairs._targets)
        return cls((source for source, _ in pairs), (target for _, target in pairs))

    @property
    def shifts(self) -> Iterator[int]:
        """How far each pair's target offset is beyond its source offset, from the last pair to the first."""
        return (target - source for source, target in zip(reversed(self.sources), reversed(self._targets), strict=True))

    def insert(self, at: int, pair: OffsetPair) -> None:
        """Put a pair before that of an index."""
        self.sources.insert(at, pair[0])
        self._targets.insert(at, pair[1])

    @overload
    def __getitem__(self, at: int) -> OffsetPair: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[OffsetPair, ...]: ...
    def __getitem__(self, at: int | slice) -> OffsetPair | tuple[OffsetPair, ...]:
        if isinstance(at, slice):
            return tuple(zip(self.sources[at], self._targets[at], strict=True))
        return self.sources[at], self._targets[at]

    def __iter__(self) -> Iterator[OffsetPair]:
        return zip(self.sources, self._targets, strict=True)

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        return f"PairTable({tuple(self)!r})"

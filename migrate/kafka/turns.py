"""Calls of a size that the client, or the cluster, takes at once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from migrate.progress import batches

K = TypeVar("K")
V = TypeVar("V")


def in_turns(asked: Iterable[tuple[K, Iterable[V]]], size: int) -> Iterator[Sequence[tuple[K, V]]]:
    """Yield all values with their keys in turns of at most `size`, each of which names a key once."""
    turns: dict[int, list[tuple[K, V]]] = defaultdict(list)
    for key, values in asked:
        for depth, value in enumerate(values):
            turns[depth].append((key, value))
    for turn in turns.values():
        yield from batches(turn, size)

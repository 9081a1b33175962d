"""Calls of a size that the client, or the cluster, takes at once, and the pauses between tries."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Backoff:
    """Pauses between tries: each twice as long as the one before, until `deadline_seconds` from now have passed."""

    def __init__(self, first_seconds: float, longest_seconds: float, deadline_seconds: float = math.inf) -> None:
        self._pause_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._end = time.monotonic() + deadline_seconds

    @property
    def is_over(self) -> bool:
        """True if there is no time for another try."""
        return time.monotonic() >= self._end

    def pause(self) -> None:
        """Wait before another try, at most until the deadline."""
        time.sleep(max(0.0, min(self._pause_seconds, self._end - time.monotonic())))
        self._pause_seconds = min(2 * self._pause_seconds, self._longest_seconds)


def batches(items: Sequence[V], size: int) -> Iterator[Sequence[V]]:
    """Cut a sequence into parts of at most `size`."""
    return (items[i : i + size] for i in range(0, len(items), size))


def in_turns(asked: Iterable[tuple[K, Iterable[V]]], size: int) -> Iterator[Sequence[tuple[K, V]]]:
    """Yield all values with their keys in turns of at most `size`, each of which names a key once."""
    turns: dict[int, list[tuple[K, V]]] = defaultdict(list)
    for key, values in asked:
        for depth, value in enumerate(values):
            turns[depth].append((key, value))
    for turn in turns.values():
        yield from batches(turn, size)

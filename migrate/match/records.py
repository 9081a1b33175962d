"""Records as the matching sees them: offset, timestamp and fingerprint, in stretches of one log. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stretch:
    """Every record that a read_committed reader sees of one log in [start, end), in log order.

    `times` are timestamps in ms, `prints` fingerprints under the topic's equality; all three sequences have the same
    length, and so has `keys` where it was asked for: what a cleaner tells records apart by (`key_mark`).
    `readable_from` is greater than `start` where retention had deleted the beginning by the time it was read.
    """

    start: int
    end: int
    readable_from: int
    offsets: Sequence[int]
    times: Sequence[int]
    prints: Sequence[int]
    keys: Sequence[int] = ()


def key_mark(key: bytes | None, value: bytes | None) -> int:
    """Return a key's hash, with the last bit set for a tombstone (a record without a value). One process's own."""
    return hash(key) & ~1 | (value is None)


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one log, `start` inclusive, `end` exclusive."""

    start: int
    end: int

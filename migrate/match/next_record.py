"""The next record of a log at or after an offset, reduced to what may be shown of it. Pure.

No payload is kept, only a SHA-256 of each part of a record: it tells two records apart, and nothing can be read in it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from migrate.match.equality import ALL_PARTS, Part
from migrate.model import Failure, TopicPartition

SHOWN_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Position:
    """Where to look: the first `most` records at or after `offset` and before `end`."""

    partition: TopicPartition
    offset: int
    end: int
    most: int = 1


@dataclass(frozen=True, slots=True)
class NextRecord:
    """A record as it may be shown: `timestamp` in ms, `size` of key and value in bytes, a SHA-256 by `Part`."""

    offset: int
    timestamp: int
    size: int
    digests: tuple[bytes, bytes, bytes, bytes]

    def differing(self, other: "NextRecord", parts: Collection[Part] = ALL_PARTS) -> tuple[Part, ...]:
        """Return those of `parts` in which two records differ, in their order."""
        pairs = zip(Part, self.digests, other.digests, strict=True)
        return tuple(part for part, mine, others in pairs if part in parts and mine != others)

    @property
    def key(self) -> bytes | None:
        """The digest of its key; None for a record without one, which no cleaner takes."""
        _, key, *_ = self.digests
        return None if key == _NULL else key

    @property
    def is_tombstone(self) -> bool:
        """True for a record with a key and without a value."""
        _, key, value, _ = self.digests
        return value == _NULL != key

    def fingerprint(self, parts: Collection[Part] = ALL_PARTS) -> str:
        """Return the first digits, in hex, of the SHA-256 over the digests of `parts` in their order."""
        pairs = zip(Part, self.digests, strict=True)
        return sha256(b"".join(digest for part, digest in pairs if part in parts)).hexdigest()[:SHOWN_DIGITS]


def next_record(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> NextRecord:
    """Return what may be shown of a record as it was read.

    Null differs from empty, and parts of headers are joined with their lengths: ("ab", "c") is not ("a", "bc").
    """
    named: list[bytes | None] = []
    for name, content in headers:
        named += (name.encode("utf-8", "surrogatepass"), content)
    digests = (
        _digest([timestamp.to_bytes(8, "big", signed=True)]),
        _digest([key]),
        _digest([value]),
        _digest(named),
    )
    return NextRecord(offset, timestamp, len(key or b"") + len(value or b""), digests)


def _digest(parts: Sequence[bytes | None]) -> bytes:
    digest = sha256()
    for part in parts:
        digest.update(b"\xff" * 4 if part is None else len(part).to_bytes(4, "big"))
        digest.update(part or b"")
    return digest.digest()


_NULL = _digest([None])


ReadNext = Callable[[Collection[Position]], Mapping[Position, tuple[NextRecord, ...] | Failure]]
"""Returns what is at each position, as a read_committed consumer finds it, reduced to digests. Reads only.

Fewer records than asked for, or none, where the log ends before. Topics are never created. Raises `ClusterError` if the
cluster cannot be asked at all.
"""

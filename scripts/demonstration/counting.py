"""What a group was owed, what it read, lost, and read twice: pure counting of record identities.

It knows nothing of syncs or of the product. A group is *owed* every record at or after its committed offset that
was committed by its producer; of a compacted topic only the newest of each key, the others are superseded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """A record that was written to the source, under an identity of its own; `committed` False: aborted."""

    offset: int
    identity: str
    key: str
    committed: bool = True


@dataclass(frozen=True, slots=True)
class Copy:
    """A record that a reader finds on the target."""

    offset: int
    identity: str


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of records. `rereads`: had before the cutover, or a further copy of one read since."""

    owed: int = 0
    read: int = 0
    lost: int = 0
    rereads: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            self.owed + other.owed,
            self.read + other.read,
            self.lost + other.lost,
            self.rereads + other.rereads,
        )


def owed(written: Sequence[Written], source_committed: int, compacted: bool) -> frozenset[str]:
    """The identities of what a group is owed that never read a record at or after `source_committed`."""
    records = [record for record in written if record.committed and record.offset >= source_committed]
    if compacted:
        records = list({record.key: record for record in sorted(records, key=lambda r: r.offset)}.values())
    return frozenset(record.identity for record in records)


def tally(written: Sequence[Written], source_committed: int, compacted: bool, read: Iterable[str]) -> Tally:
    """Count one partition: `read` are the identities that a consumer read on the target, in order."""
    wanted = owed(written, source_committed, compacted)
    had = {record.identity for record in written if record.offset < source_committed}
    seen: set[str] = set()
    count = rereads = 0
    for identity in read:
        count += 1
        rereads += identity in had or identity in seen
        seen.add(identity)
    return Tally(len(wanted), count, len(wanted - seen), rereads)


def best(written: Sequence[Written], source_committed: int, compacted: bool, copies: Sequence[Copy]) -> int:
    """The greatest target offset from which a reader gets everything that it is owed."""
    last = {copy.identity: copy.offset for copy in copies}
    wanted = owed(written, source_committed, compacted)
    end = copies[-1].offset + 1 if copies else 0
    return min((offset for identity, offset in last.items() if identity in wanted), default=end)


def replayed(copies: Iterable[Copy]) -> int:
    """How many records are further copies of one before them."""
    identities = [copy.identity for copy in copies]
    return len(identities) - len(set(identities))

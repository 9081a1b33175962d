"""What is true about an offset, by brute force from whole logs. Knows nothing of syncs, laws or the product.

The definitions are docs/translation.md's: a group is *owed* every committed record at or after its committed
source offset that is still on the source, and, where that offset lies below the source's log start, those
that retention removed. What compaction removed is superseded, and not owed. A target offset is *loss-free* if
every owed record that has any copy on the target has one at or after it; the *best* is the greatest such.

Records are told apart by an identity that the scene gave them, never by offset, key, value or time.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """A record that a producer wrote to the source; `committed` is False if its transaction was aborted."""

    offset: int
    identity: str
    committed: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """A record that a read_committed reader finds in a log."""

    offset: int
    identity: str


@dataclass(frozen=True, slots=True)
class Log:
    """A partition's log as it is: `start` inclusive, `end` exclusive, and the records that readers see."""

    start: int
    end: int
    records: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """Everything there is to know of one source partition and its copy."""

    written: tuple[Written, ...]
    source: Log
    target: Log


def owed(truth: Truth, source_committed: int) -> frozenset[str]:
    """Return the identities of the records that a group at `source_committed` is owed."""
    still_there = {record.offset for record in truth.source.records}
    return frozenset(
        record.identity
        for record in truth.written
        if record.committed
        and record.offset >= source_committed
        and (record.offset in still_there or record.offset < truth.source.start)
    )


def copies(truth: Truth, identity: str) -> list[int]:
    """Return the target offsets at which a record stands: several after a replay, none if it was never copied."""
    return [record.offset for record in truth.target.records if record.identity == identity]


def lost(truth: Truth, source_committed: int, target_offset: int) -> frozenset[str]:
    """Return the owed records that are on the target, but only below `target_offset`: they would be skipped."""
    there = {record.identity for record in truth.target.records}
    ahead = {record.identity for record in truth.target.records if record.offset >= target_offset}
    return (owed(truth, source_committed) & there) - ahead


def missing(truth: Truth, source_committed: int) -> frozenset[str]:
    """Return the owed records that have no copy on the target at all: no offset can help them."""
    return owed(truth, source_committed) - {record.identity for record in truth.target.records}


def best(truth: Truth, source_committed: int) -> int:
    """Return the greatest loss-free offset: no owed record's last copy lies below it."""
    last_copy = {record.identity: record.offset for record in sorted(truth.target.records, key=_by_offset)}
    wanted = owed(truth, source_committed)
    return min((offset for identity, offset in last_copy.items() if identity in wanted), default=truth.target.end)


def resumed_with(truth: Truth, source_committed: int, target_offset: int) -> tuple[int, int] | None:
    """Return the first owed record (its source offset, its last copy's) if MM2 resumed with it alone; else None.

    Then the copy at `target_offset` is followed by the last one, with no other copy between them. Where the source has
    gaps that looks like the copy of an aborted record, equal to it, which readers are not shown.
    """
    first = min((r for r in truth.source.records if r.offset >= source_committed), key=_by_offset, default=None)
    if first is None or len(truth.source.records) == truth.source.end - truth.source.start:
        return None
    known = {record.identity for record in truth.source.records}
    there = sorted(
        (r for r in truth.target.records if r.identity in known and r.offset >= target_offset), key=_by_offset
    )
    at_once = there[:2] == [Found(target_offset, first.identity), Found(best(truth, source_committed), first.identity)]
    return (first.offset, there[1].offset) if at_once else None


def rereads(truth: Truth, source_committed: int, target_offset: int) -> int:
    """Count what a group starting at `target_offset` reads though it had it before.

    That is every record from below `source_committed`, and every further copy of a record that was read at
    or after `target_offset` already.
    """
    consumed = {record.identity for record in truth.written if record.offset < source_committed}
    seen: set[str] = set()
    count = 0
    for record in sorted(truth.target.records, key=_by_offset):
        if record.offset < target_offset:
            continue
        if record.identity in consumed or record.identity in seen:
            count += 1
        seen.add(record.identity)
    return count


def replayed(truth: Truth) -> int:
    """Count the target's records that are further copies of one before them."""
    return len(truth.target.records) - len({record.identity for record in truth.target.records})


def contradictions(truth: Truth, compacted: bool = False) -> list[str]:
    """Return what is wrong with the truth itself, as sentences: the judge must not be mistaken.

    A record on the source must be one that was written there and committed; no two written records may share
    an identity or an offset. Every committed record that retention has left must be seen there, unless the topic is
    compacted: what a reader overlooks would count as not owed, and its loss as none.
    """
    by_offset = {record.offset: record for record in truth.written}
    complaints = []
    if len(by_offset) != len(truth.written):
        complaints.append("two written records share an offset")
    if len({record.identity for record in truth.written}) != len(truth.written):
        complaints.append("two written records share an identity")
    for found in truth.source.records:
        record = by_offset.get(found.offset)
        if record is None or record.identity != found.identity:
            complaints.append(f"source offset {found.offset} holds {found.identity}, which was not written there")
        elif not record.committed:
            complaints.append(f"source offset {found.offset} was aborted, and yet a reader sees it")
    seen = {found.offset for found in truth.source.records}
    complaints += [
        f"source offset {record.offset} holds {record.identity}, which is committed, and no reader sees it"
        for record in truth.written
        if not compacted
        and record.committed
        and truth.source.start <= record.offset < truth.source.end
        and record.offset not in seen
    ]
    return complaints + [
        f"the {name}'s record at {record.offset} lies outside its log"
        for name, log in (("source", truth.source), ("target", truth.target))
        for record in _outside(log)
    ]


def _outside(log: Log) -> Iterable[Found]:
    return (record for record in log.records if not log.start <= record.offset < log.end)


def _by_offset(record: Found) -> int:
    return record.offset

"""The oracle for records that look in every part alike: no consumer can tell them apart, and only their number counts.

Here an identity is a look. Where every record has a look of its own, all this comes to the same as `oracle`, which the
unit tests hold. Not for logs that were compacted: what is owed of equal records is then unclear.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.integration.oracle import Found, Log, Truth, Written

Looks = Mapping[str, str]
"""What a record looks like, by its identity; a record that is not named has a look of its own."""


def by_looks(truth: Truth, looks: Looks) -> Truth:
    """The same truth as a consumer sees it."""

    def seen(log: Log) -> Log:
        return replace(log, records=tuple(Found(r.offset, looks.get(r.identity, r.identity)) for r in log.records))

    written = tuple(replace(r, identity=looks.get(r.identity, r.identity)) for r in truth.written)
    return Truth(written, seen(truth.source), seen(truth.target))


def told_apart(written: Sequence[Written], copies: Log, looks: Looks) -> Log:
    """Give each record that was found by its look the identity that its place suggests.

    A mirror copies in order: behind a copy comes that of the next record, and before it that of the one before. Where
    a mirror began anew amid records that look alike, nothing can tell, and the first choice is as good as another.
    """
    names = [record.identity for record in written]
    place = {name: i for i, name in enumerate(names)}
    found = [place.get(record.identity) for record in copies.records]

    def fits(i: int | None, j: int) -> bool:
        return i is not None and 0 <= i < len(names) and looks.get(names[i]) == copies.records[j].identity

    back = list(found)
    for j in range(len(found) - 2, -1, -1):
        after = back[j + 1]
        if back[j] is None and after is not None and fits(after - 1, j):
            back[j] = after - 1
    for j, known in enumerate(found):
        before = found[j - 1] if j else -1
        if known is None and before is not None and fits(before + 1, j):
            found[j] = before + 1
        elif known is None:
            found[j] = back[j] if back[j] is not None else next((i for i in range(len(names)) if fits(i, j)), None)
    records = [r if i is None else Found(r.offset, names[i]) for r, i in zip(copies.records, found, strict=True)]
    return replace(copies, records=tuple(records))


def owed(truth: Truth, source_committed: int) -> Counter[str]:
    """Count by identity the committed records at or after `source_committed`."""
    still_there = {record.offset for record in truth.source.records}
    return Counter(
        record.identity
        for record in truth.written
        if record.committed
        and record.offset >= source_committed
        and (record.offset in still_there or record.offset < truth.source.start)
    )


def lost(truth: Truth, source_committed: int, target_offset: int) -> frozenset[str]:
    """Return identities of which less is read from `target_offset` on than is owed, and could be read."""
    there, ahead = _copies(truth, truth.target.start), _copies(truth, target_offset)
    wanted = owed(truth, source_committed)
    return frozenset(name for name, many in wanted.items() if ahead[name] < min(many, there[name]))


def missing(truth: Truth, source_committed: int) -> frozenset[str]:
    """Return identities of which the target has fewer records than are owed."""
    there = _copies(truth, truth.target.start)
    return frozenset(name for name, many in owed(truth, source_committed).items() if there[name] < many)


def best(truth: Truth, source_committed: int) -> int:
    """Return the greatest offset from which nothing is lost."""
    there, wanted = _copies(truth, truth.target.start), owed(truth, source_committed)
    left = {name: min(many, there[name]) for name, many in wanted.items() if there[name]}
    offset = truth.target.end
    for record in sorted(truth.target.records, key=lambda r: r.offset, reverse=True):
        if not left:
            break
        if left.get(record.identity):
            left[record.identity] -= 1
            offset = record.offset
            if not left[record.identity]:
                del left[record.identity]
    return offset


def rereads(truth: Truth, source_committed: int, target_offset: int) -> int:
    """Count the source's records that are read from `target_offset` on, beyond the number of times that is owed."""
    ours = {record.identity for record in truth.written}
    unread = Counter(record.identity for record in truth.written if record.offset >= source_committed)
    ahead = _copies(truth, target_offset)
    return sum(max(0, many - unread[name]) for name, many in ahead.items() if name in ours)


def _copies(truth: Truth, start: int) -> Counter[str]:
    return Counter(record.identity for record in truth.target.records if record.offset >= start)

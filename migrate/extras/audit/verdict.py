"""What is told of records without a copy, and the verdict that follows. Pure.

A replicator copies a partition in order, and starts again where it has recorded to be, or before. So the copy of a
record stands behind a copy of any record before it, unless it was lost; and what stands behind the last copy, or at
the replicator's own position or beyond, may still come. Both need copies that can be seen: of what the target's
retention, or an open transaction, may hide, nobody can tell whether it was ever copied.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY
from migrate.match.equality import Equality
from migrate.model import LogRange


class Category(StrEnum):
    """What a record is: the first seven are the source's, the others the target's.

    `MAYBE_COPIED` has no copy that can be seen, and may have had one; `NO_ORIGINAL_VISIBLE` has no original that can be
    seen, and may have had one. `OUT_OF_ORDER` are copied, too: behind a later record.
    """

    COPIED = "copied"
    MISSING = "missing"
    NOT_COPIED_YET = "not-copied-yet"
    SUPERSEDED = "superseded"
    CHANGED = "changed-in-flight"
    MAYBE_COPIED = "not-visible"
    REMOVED = "removed-since"
    COPIED_AGAIN = "copied-again"
    ABORTED_COPY = "copy-of-aborted"
    FOREIGN = "foreign"
    NO_ORIGINAL_VISIBLE = "original-not-visible"
    OUT_OF_ORDER = "out-of-order"


# Records that are named, with offset and time.
NAMED = (Category.MISSING, Category.CHANGED, Category.FOREIGN, Category.OUT_OF_ORDER)
# What keeps a topic from being complete, beside what is missing.
_OPEN = {
    Category.NOT_COPIED_YET: "not copied yet",
    Category.CHANGED: "changed in flight (same key and time, another value or headers)",
    Category.MAYBE_COPIED: "without a visible copy: copied and removed, or never copied",
    Category.REMOVED: "removed from the source since they were read: begin a new folder",
}


LACKED = (Category.MISSING, *(c for c in _OPEN if c is not Category.REMOVED))
"""What a record of the source is that a group may lack, and whose offset is known."""


class Verdict(StrEnum):
    """Whether all that was read has its copy."""

    COMPLETE = "COMPLETE"
    INCOMPLETE = "INCOMPLETE"
    NOT_PROVEN = "NOT PROVEN"

    @property
    def exit_code(self) -> int:
        """What a command ends in."""
        return {Verdict.COMPLETE: EXIT_DONE, Verdict.INCOMPLETE: EXIT_FAILED}.get(self, EXIT_PARTLY)


@dataclass(frozen=True)
class PartitionFacts:
    """What is known of a partition and its copy when records without a copy are judged.

    `next_to_copy` is the replicator's own position, the source offset that it copies next; None where it is unknown.
    `first_copied` and `last_copied` are the least and the greatest source offset with a copy that is there now, None
    where none has one. `target_is_open`: a transaction hides the end of the target's log. `is_certain` is False where
    nothing has shown which parts of records survive.
    """

    source: LogRange
    target: LogRange
    next_to_copy: int | None
    first_copied: int | None
    last_copied: int | None
    target_is_open: bool
    is_certain: bool


@dataclass(frozen=True)
class Bounds:
    """Source offsets between which a record without a copy is missing: `visible_from` inclusive, `copied_to` not."""

    visible_from: int
    copied_to: int


def bounds_of(facts: PartitionFacts) -> Bounds:
    """Return between which offsets records without a copy are shown missing."""
    behind_last = 0 if facts.last_copied is None else facts.last_copied + 1
    position = facts.next_to_copy
    if position is not None and position > facts.source.end:  # of a log that was since truncated or created anew
        position = None
    copied_to = behind_last if position is None else position
    if facts.target_is_open:
        copied_to = min(copied_to, behind_last)
    if facts.target == LogRange(0, 0):
        return Bounds(0, copied_to)
    if facts.is_certain and facts.target.start == 0:
        return Bounds(0, copied_to)
    # A replay may just be on its way to records whose first copies are gone: only a position tells how far it is.
    if not facts.is_certain or facts.first_copied is None or position is None or facts.target_is_open:
        return Bounds(facts.source.end, copied_to)
    return Bounds(facts.first_copied, copied_to)


@dataclass(frozen=True)
class Named:
    """A record that is named: where it stands, and its timestamp in ms. `offset` is the source's, unless foreign."""

    category: Category
    partition: int
    offset: int
    time_ms: int


class Lack(NamedTuple):
    """Records that a group which is owed a partition `owed_from` on lacks, or may lack; offsets are the source's."""

    partition: int
    owed_from: int
    category: Category
    records: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class TopicAudit:
    """What was found of one topic: counts, the first of the records that are named, and what was not proven, and why.

    `equality` says in what records had to agree, None where nothing was compared. `lacks` are of a plan's groups.
    """

    topic: str
    target: str
    equality: Equality | None
    counts: Mapping[Category, int] = field(default_factory=dict)
    named: tuple[Named, ...] = ()
    times_ms: tuple[int, int] | None = None
    unproven: tuple[str, ...] = ()
    lacks: tuple[Lack, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why nothing is proven, beside what is missing."""
        counted = (f"{self.counts[c]} {text}" for c, text in _OPEN.items() if self.counts.get(c))
        weak = ("values change on the way: compared by timestamp and key alone",)
        return (*self.unproven, *counted, *(weak if self._is_weak else ()))

    @property
    def is_undecided(self) -> bool:
        """True if something is not proven that no offset of a record limits: it concerns all groups."""
        return bool(self.unproven or self._is_weak or self.counts.get(Category.REMOVED))

    @property
    def _is_weak(self) -> bool:
        return self.equality is Equality.TIME_AND_KEY

    @property
    def verdict(self) -> Verdict:
        """Incomplete only for records that are shown missing, complete only if nothing is left open."""
        if self.counts.get(Category.MISSING):
            return Verdict.INCOMPLETE
        return Verdict.NOT_PROVEN if self.reasons else Verdict.COMPLETE


def verdict_of(topics: Iterable[TopicAudit]) -> Verdict:
    """Return the verdict on all topics; of none nothing is proven."""
    found = {topic.verdict for topic in topics}
    for verdict in (Verdict.INCOMPLETE, Verdict.NOT_PROVEN):
        if verdict in found:
            return verdict
    return Verdict.COMPLETE if found else Verdict.NOT_PROVEN


def total(topics: Iterable[TopicAudit]) -> Counter[Category]:
    """Return the counts of all topics."""
    counts: Counter[Category] = Counter()
    for topic in topics:
        counts.update(topic.counts)
    return counts

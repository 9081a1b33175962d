"""What a comparison of committed offsets says: a verdict for each commit, and what the look rests on. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from migrate.model import CheckResult, Grade, Level, TopicPartition

# Why a row may lose records although it is equal or behind: of what it is owed not all was compared.
NOT_ALL_COMPARED = "not-all-compared"


class CompareVerdict(StrEnum):
    """How a target commit stands to the translation of the source's, the worst first."""

    AHEAD = "ahead"
    UNDECIDED = "undecided"
    MISSING = "missing-on-target"
    UNTRANSLATED = "untranslated"
    ONLY_ON_TARGET = "only-on-target"
    BEHIND = "behind"
    EQUAL = "equal"


class Loss(StrEnum):
    """What a group that starts from its target commit loses: nothing, perhaps something, or records for all that both
    clusters tell.

    It is never more than likely: consumers that ran on the target, and have stopped or were never members, may have
    read there what their commit has passed.
    """

    NONE = "none"
    POSSIBLE = "possible"
    LIKELY = "likely"


class Stretch(NamedTuple):
    """Offsets of one log of the target between a commit and a translation, `end` exclusive."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One commit of a group on either side, or on both.

    `difference` is the target commit less the translated offset: in records where `difference_is_records`, else in
    offsets, of which some may hold no record (markers, aborted, compacted); None where there is nothing to subtract.
    `rereads_at_most` is a proven bound on what the group reads twice from its target commit on; None where none is.
    `source_moved_to` is what the source had committed at the second look, None where nothing moved, or nothing is left.
    `reason` is a code, "" where the verdict says all; `sentence` is never empty. `target_group` is as in a plan's row.
    """

    group: str
    source_topic: str
    target_topic: str
    partition: int
    source_committed: int | None
    target_committed: int | None
    translated: int | None
    difference: int | None
    difference_is_records: bool
    verdict: CompareVerdict
    grade: Grade | None
    loss: Loss
    rereads_at_most: int | None
    source_moved_to: int | None
    reason: str
    sentence: str
    target_group: str = ""

    @property
    def group_on_target(self) -> str:
        """What the group is called on the target."""
        return self.target_group or self.group

    def is_within(self, records: int) -> bool:
        """True if the group is at its place, or behind it by at most so many records, as far as the look goes.

        What it has read on the source meanwhile counts too. Losing is never within.
        """
        if self.loss is not Loss.NONE:
            return False
        if self.verdict is CompareVerdict.EQUAL:
            return True
        if self.verdict is not CompareVerdict.BEHIND or self.difference is None:
            return False
        moved = 0
        if self.source_moved_to is not None and self.source_committed is not None:
            moved = self.source_moved_to - self.source_committed
        return moved - self.difference <= records


@dataclass(frozen=True)
class GroupComparison:
    """All rows, sorted, and what the look rests on: `premises` are checks on it that did not pass.

    `unstable` are groups with transactional offsets pending: of those, what was committed before is compared.
    """

    time_ms: int
    source_alias: str
    target_alias: str
    rows: tuple[ComparedRow, ...]
    premises: tuple[CheckResult, ...]
    unstable: frozenset[str]

    def counts(self) -> Mapping[CompareVerdict, int]:
        """Count rows by verdict."""
        return Counter(row.verdict for row in self.rows)

    def beyond(self, within: int) -> tuple[ComparedRow, ...]:
        """Return the rows that are not equal, and not behind by at most so many records."""
        return tuple(row for row in self.rows if not row.is_within(within))

    def is_good(self, within: int) -> bool:
        """True if something was compared, no row is beyond, and nothing is known that may hide a row or move one."""
        return bool(self.rows) and not (self.beyond(within) or self.blocks or self.unstable)

    @property
    def blocks(self) -> tuple[CheckResult, ...]:
        """The premises that do not hold: rows may be missing, or be about other logs."""
        return tuple(result for result in self.premises if result.counts_as is Level.BLOCK)

"""What was not to be written, and what a journal says of the rows that were: the other half of a verification. Pure.

Offsets alone cannot tell a row that apply set from one that somebody else moved to the same place or beyond it.
"""

from dataclasses import dataclass
from enum import StrEnum

from migrate.apply.history import FAILED, REMOVED, SET, JournalState
from migrate.model import CheckResult, Decision, Row, TopicPartition
from migrate.plan.plan import Plan


class Noted(StrEnum):
    """What the journal says of one row; NOTHING where there is no journal, or nothing was to be written.

    READ_BACK is the only proof that the row was at its planned offset: a fresh client read its whole group back as
    planned, rows that were there already included.
    """

    NOTHING = ""
    READ_BACK = "set and read back"
    NOT_READ_BACK = "set, but not read back as planned"
    FAILED = "not set"
    UNKNOWN = "perhaps set"
    NOT_REACHED = "saved, but not written"
    NO_WRITE = "no write"


WORDS = {
    Noted.NOTHING: "no journal of this plan is beside it",
    Noted.READ_BACK: "the journal says that it was set and read back",
    Noted.NOT_READ_BACK: "the journal says that it was set, but not that its group was read back as planned",
    Noted.FAILED: "the journal says that it could not be set",
    Noted.UNKNOWN: "the journal has no certain answer to the write of it",
    Noted.NOT_REACHED: "the journal says that apply ended before it wrote this group",
    Noted.NO_WRITE: "the journal tells of no write to it",
}


def noted(row: Row, journal: JournalState) -> Noted:
    """Return what the journal says of a row that was to be written."""
    if not journal.events or row.decision not in (Decision.SET, Decision.REMOVE):
        return Noted.NOTHING
    trace = journal.applied.get(row.group)
    if trace is None:
        return Noted.NOT_REACHED if row.group in journal.prior else Noted.NO_WRITE
    if trace.read_back:
        return Noted.READ_BACK
    if row.target_partition not in trace.planned:
        return Noted.NO_WRITE
    result = trace.results.get(row.target_partition)
    if result in (SET, REMOVED):
        return Noted.NOT_READ_BACK
    return Noted.FAILED if result == FAILED else Noted.UNKNOWN


class WhyNotWritten(StrEnum):
    """Why a row was not written: by the plan, by a reviewer's choice, or because apply left its group out."""

    BLOCKED = "blocked"
    SKIPPED = "skipped"
    LEFT_OUT = "left-out"


NOT_WRITTEN = {Decision.BLOCK: WhyNotWritten.BLOCKED, Decision.SKIP: WhyNotWritten.SKIPPED}


@dataclass(frozen=True, slots=True)
class NotWritten:
    """One row that nobody was to write, so that nothing can be verified. `reason` is the plan's code, or ""."""

    key: tuple[str, str, int]
    target_partition: TopicPartition
    why: WhyNotWritten
    reason: str
    sentence: str

    @property
    def group(self) -> str:
        """The row's group."""
        return self.key[0]


def by_plan(row: Row) -> NotWritten | None:
    """Return a row that the plan itself does not write; None for one that it sets, removes or keeps."""
    why = NOT_WRITTEN.get(row.decision)
    return None if why is None else NotWritten(row.key, row.target_partition, why, row.reason, row.sentence)


def left_out(row: Row, offset: int | None) -> NotWritten:
    """Return a row whose group apply left out; `offset` is the target's offset, which is what it was before."""
    where = "it has no committed offset, as before" if offset is None else f"it is at {offset}, as before"
    return NotWritten(row.key, row.target_partition, WhyNotWritten.LEFT_OUT, "", f"{WORDS[Noted.NO_WRITE]}: {where}")


def blocks_without_rows(plan: Plan) -> tuple[CheckResult, ...]:
    """Return the open blocks that no blocked row shows: a group without a commit, a misspelt name, a share group."""
    return (*(() if plan.blocked_groups() else plan.cluster_blocks()), *plan.blocks_without_rows())

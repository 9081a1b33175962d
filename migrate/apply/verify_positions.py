"""Whether a Spark query on the target goes on from where the plan says: its checkpoint folder beside the plan's rows.

The folder is read by `migrate.survey.positions.PositionReader`; what it says is compared here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, MigrateError, UsageError
from migrate.model import Decision, Row
from migrate.plan.plan import Plan
from migrate.survey.positions import CheckpointAsked, PositionReader, PositionsRead
from migrate.text import many, name, some


class PositionStanding(StrEnum):
    """Where a checkpoint stands against the plan: at its offset, beyond it, before it, or without the partition.

    `LEFT_OUT` is what the plan gives no offset to set, so that nothing can be said of it.
    """

    EQUAL = "equal"
    MOVED_ON = "moved-on"
    BEHIND = "behind"
    ABSENT = "absent"
    LEFT_OUT = "left-out"


@dataclass(frozen=True, slots=True)
class PositionFinding:
    """One planned position and what a folder has in its place; `seen` is None where it has none."""

    row: Row
    origin: str
    batch: int | None
    seen: int | None

    @property
    def standing(self) -> PositionStanding:
        """How the two compare."""
        if self.row.decision is not Decision.MANUAL or self.row.target_offset is None:
            return PositionStanding.LEFT_OUT
        if self.seen is None:
            return PositionStanding.ABSENT
        planned = self.row.target_offset or 0
        if self.seen == planned:
            return PositionStanding.EQUAL
        return PositionStanding.MOVED_ON if self.seen > planned else PositionStanding.BEHIND

    @property
    def sentence(self) -> str:
        """What is seen, in a sentence."""
        planned, where = self.row.target_offset or 0, f"batch {self.batch}"
        match self.standing:
            case PositionStanding.EQUAL:
                return f"{where} has next offset {planned}, as planned"
            case PositionStanding.MOVED_ON:
                return f"{where} has next offset {self.seen}, moved on by {many((self.seen or 0) - planned, 'offset')}"
            case PositionStanding.BEHIND:
                return f"{where} has next offset {self.seen}, {planned - (self.seen or 0)} before the planned {planned}"
            case PositionStanding.LEFT_OUT:
                return f"the plan gives it no offset to set ({self.row.decision}, {self.row.reason})"
            case PositionStanding.ABSENT:
                return f"{where} has no such partition: Spark would read it from its beginning; planned is {planned}"

    @property
    def is_good(self) -> bool:
        """True if nothing is read that the plan says is done: a query only ever moves on."""
        return self.standing in (PositionStanding.EQUAL, PositionStanding.MOVED_ON)


@dataclass(frozen=True, slots=True)
class UnreadCheckpoint:
    """A checkpoint folder that was named and could not be read: nothing is known of its holder's positions."""

    holder: str
    origin: str
    why: str


@dataclass(frozen=True, slots=True)
class PositionVerification:
    """What the folders that were named say, in the plan's order, and which of them could not be read."""

    findings: tuple[PositionFinding, ...] = ()
    unread: tuple[UnreadCheckpoint, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a position is behind or absent, or a folder was not read; 4 if the plan gave some no offset; else 0."""
        standings = counted(self.findings)
        if self.unread or standings[PositionStanding.BEHIND] or standings[PositionStanding.ABSENT]:
            return EXIT_FAILED
        return EXIT_PARTLY if standings[PositionStanding.LEFT_OUT] else EXIT_DONE


def read_checkpoints(
    asked: Iterable[CheckpointAsked], reader: PositionReader
) -> Iterator[PositionsRead | UnreadCheckpoint]:
    """Yield what each folder holds. One that cannot be read costs neither the others nor what is known of groups."""
    for checkpoint in asked:
        try:
            yield reader.checkpoint(checkpoint)
        except Exception as error:
            yield unread(checkpoint, error)


def unread(asked: CheckpointAsked, error: Exception) -> UnreadCheckpoint:
    """Return a folder as one that was not read, and why."""
    why = str(error) if isinstance(error, MigrateError) else f"{type(error).__name__}: {error}"
    return UnreadCheckpoint(asked.holder, asked.url, why)


def verify_positions(plan: Plan, reads: Iterable[PositionsRead | UnreadCheckpoint]) -> PositionVerification:
    """Compare folders with the positions of the holders of their names; raises `UsageError` for a name of no holder."""
    found: list[PositionFinding] = []
    unread: list[UnreadCheckpoint] = []
    for read in reads:
        refuse_unknown_holders(plan, [read.holder])
        if isinstance(read, UnreadCheckpoint):
            unread.append(read)
            continue
        seen = {(p.topic, p.partition): p.source_next for p in read.positions}
        found += [
            PositionFinding(row, read.origin, read.batch, seen.get((row.target_topic, row.partition)))
            for row in plan.holders()[read.holder]
        ]
    return PositionVerification(tuple(found), tuple(unread))


def refuse_unknown_holders(plan: Plan, holders: Iterable[str]) -> None:
    """Raise `UsageError` for a name that no holder of the plan has."""
    for holder in holders:
        if holder not in plan.holders():
            raise UsageError(
                f"--spark-checkpoint {name(holder)}: the plan has no holder of that name.",
                f"Holders: {some(map(name, plan.holders()), 5) or 'none'}.",
            )


def counted(findings: Iterable[PositionFinding]) -> Counter[PositionStanding]:
    """Count findings by how they stand."""
    return Counter(finding.standing for finding in findings)

"""Whether a Spark query on the target goes on from where the plan says: its checkpoint folder beside the plan's rows.

The folder is read by `migrate.survey.positions.PositionReader`; what it says is compared here. Pure.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, UsageError
from migrate.model import Decision, Row
from migrate.plan.plan import Plan
from migrate.survey.positions import PositionsRead
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
                return f"{where} stands at {planned}, as planned"
            case PositionStanding.MOVED_ON:
                return f"{where} stands at {self.seen}, moved on by {many((self.seen or 0) - planned, 'offset')}"
            case PositionStanding.BEHIND:
                return f"{where} stands at {self.seen}, {planned - (self.seen or 0)} before the planned {planned}"
            case PositionStanding.LEFT_OUT:
                return f"the plan gives it no offset to set ({self.row.decision}, {self.row.reason})"
            case PositionStanding.ABSENT:
                return f"{where} has no such partition: Spark would read it from its beginning; planned is {planned}"

    @property
    def is_good(self) -> bool:
        """True if nothing is read that the plan says is done: a query only ever moves on."""
        return self.standing in (PositionStanding.EQUAL, PositionStanding.MOVED_ON)


def verify_positions(plan: Plan, reads: Iterable[PositionsRead]) -> tuple[PositionFinding, ...]:
    """Compare folders with the positions of the holders of their names; raises `UsageError` for a name of no holder."""
    found: list[PositionFinding] = []
    for read in reads:
        refuse_unknown_holders(plan, [read.holder])
        seen = {(p.topic, p.partition): p.source_next for p in read.positions}
        found += [
            PositionFinding(row, read.origin, read.batch, seen.get((row.target_topic, row.partition)))
            for row in plan.holders()[read.holder]
        ]
    return tuple(found)


def refuse_unknown_holders(plan: Plan, holders: Iterable[str]) -> None:
    """Raise `UsageError` for a name that no holder of the plan has."""
    for holder in holders:
        if holder not in plan.holders():
            raise UsageError(
                f"--spark-checkpoint {name(holder)}: the plan has no holder of that name.",
                f"Holders: {some(map(name, plan.holders()), 5) or 'none'}.",
            )


def exit_code_of(findings: Iterable[PositionFinding]) -> int:
    """Return 1 if a position is behind or absent, 4 if the plan gave some no offset, else 0."""
    standings = {finding.standing for finding in findings}
    if standings & {PositionStanding.BEHIND, PositionStanding.ABSENT}:
        return EXIT_FAILED
    return EXIT_PARTLY if PositionStanding.LEFT_OUT in standings else EXIT_DONE


def counted(findings: Iterable[PositionFinding]) -> Counter[PositionStanding]:
    """Count findings by how they stand."""
    return Counter(finding.standing for finding in findings)

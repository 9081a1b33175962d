"""Whether a Spark query on the target goes on from where the plan says: its checkpoint folder beside the plan's rows.

The folder is read by a `PositionReader`; what it says is compared here, and told.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, MigrateError, UsageError
from migrate.extras.positions.held import CheckpointAsked, PositionReader, PositionsRead
from migrate.extras.positions.plan import PositionPlan
from migrate.model import Decision, Row
from migrate.show.lines import at_most, wrapped
from migrate.text import Colour, many, name, paint, some

SHOWN = 200


class PositionStanding(StrEnum):
    """Where a checkpoint stands against the plan: at its offset, beyond it, before it, or without the partition.

    What is beyond has `MOVED_ON` only from the plan's offset or one before it: a query that began later (`SKIPPED`)
    never reads what lies between. Where the folder no longer says where it began, that is not visible. `LEFT_OUT` is
    what the plan gives no offset to set, so that nothing can be said of it.
    """

    EQUAL = "equal"
    MOVED_ON = "moved-on"
    SKIPPED = "skipped"
    BEHIND = "behind"
    ABSENT = "absent"
    NOT_VISIBLE = "not-visible"
    LEFT_OUT = "left-out"


NOT_AS_PLANNED = (PositionStanding.SKIPPED, PositionStanding.BEHIND, PositionStanding.ABSENT)
NOT_KNOWN = (PositionStanding.NOT_VISIBLE, PositionStanding.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class PositionFinding:
    """One planned position and what a folder has in its place; `seen` is None where it has none.

    `began` is where the query went on from on the target, None where the folder does not say.
    """

    row: Row
    origin: str
    batch: int | None
    seen: int | None
    began: int | None = None

    @property
    def standing(self) -> PositionStanding:
        """How the two compare."""
        if self.row.decision is not Decision.SET or self.row.target_offset is None:
            return PositionStanding.LEFT_OUT
        if self.seen is None:
            return PositionStanding.ABSENT
        planned = self.row.target_offset
        if self.seen <= planned:
            return PositionStanding.EQUAL if self.seen == planned else PositionStanding.BEHIND
        if self.began is None:
            return PositionStanding.NOT_VISIBLE
        return PositionStanding.MOVED_ON if self.began <= planned else PositionStanding.SKIPPED

    @property
    def sentence(self) -> str:
        """What is seen, in a sentence."""
        planned, where = self.row.target_offset or 0, f"batch {self.batch}"
        match self.standing:
            case PositionStanding.EQUAL:
                return f"{where} has next offset {planned}, as planned"
            case PositionStanding.MOVED_ON:
                return f"{where} has next offset {self.seen}, moved on by {many((self.seen or 0) - planned, 'offset')}"
            case PositionStanding.SKIPPED:
                began = self.began or 0
                return (
                    f"{where} has next offset {self.seen}, and the query began at {began}, "
                    f"{many(began - planned, 'offset')} beyond the planned {planned}: what lies between is never read"
                )
            case PositionStanding.NOT_VISIBLE:
                beyond = many((self.seen or 0) - planned, "offset")
                return (
                    f"{where} has next offset {self.seen}, {beyond} beyond the planned {planned}; where the query "
                    "began is not visible any more"
                )
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

    def holders(self) -> set[str]:
        """Return those of which a folder was named."""
        return {finding.row.group for finding in self.findings} | {unread.holder for unread in self.unread}

    @property
    def exit_code(self) -> int:
        """1 if a position is not as planned, or a folder was not read; 4 if one cannot be told; else 0."""
        standings = counted(self.findings)
        if self.unread or any(standings[standing] for standing in NOT_AS_PLANNED):
            return EXIT_FAILED
        return EXIT_PARTLY if any(standings[standing] for standing in NOT_KNOWN) else EXIT_DONE


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


def verify_positions(plan: PositionPlan, reads: Iterable[PositionsRead | UnreadCheckpoint]) -> PositionVerification:
    """Compare folders with the positions of the holders of their names, which are holders of the plan."""
    found: list[PositionFinding] = []
    unread: list[UnreadCheckpoint] = []
    for read in reads:
        if isinstance(read, UnreadCheckpoint):
            unread.append(read)
            continue
        seen, began, copied = (
            {(p.topic, p.partition): p.source_next for p in positions}
            for positions in (read.positions, read.began, read.asked_batch)
        )
        origin = plan.checkpoint(read.holder)
        batch = None if origin is None else origin.batch
        # A copy goes on from the batch that was translated; in time, a new folder reaches that number too.
        may_be_copied = batch is not None and read.batch is not None and read.batch >= batch
        for row in plan.holders()[read.holder]:
            place = row.target_topic, row.partition
            start = _start(row, began.get(place), copied.get(place), may_be_copied)
            found.append(PositionFinding(row, read.origin, read.batch, seen.get(place), start))
    return PositionVerification(tuple(found), tuple(unread))


def _start(row: Row, began: int | None, copied: int | None, may_be_copied: bool) -> int | None:
    """Return where a query went on from on the target, None where that cannot be told.

    `began` is where a new checkpoint begins, `copied` what the planned batch has in the folder, if it is still there;
    `may_be_copied` is False for a folder that has not come so far.
    """
    if copied is not None and copied == row.target_offset:
        return copied
    if not may_be_copied or row.source_topic != row.target_topic:
        return began
    # Both sides have one name: what a copy began at are the source's offsets. One whose batch was not replaced by the
    # rewritten one went on from the source's; a folder with another batch of that number is a new one.
    if copied is not None:
        return copied if copied == row.source_committed else began
    return None


def asked_of(plan: PositionPlan, checkpoints: Iterable[CheckpointAsked]) -> list[CheckpointAsked]:
    """Return the folders with the batch that the plan translated, which a copy has at the planned offsets.

    Raises `UsageError` for a name that no holder of the plan has, and for the folder that was translated itself.
    """
    asked = []
    for checkpoint in checkpoints:
        if checkpoint.holder not in plan.holders():
            raise UsageError(
                f"--spark-checkpoint {name(checkpoint.holder)}: the plan has no holder of that name.",
                f"Holders: {some(map(name, plan.holders()), 5)}.",
            )
        origin = plan.checkpoint(checkpoint.holder)
        if origin is not None and origin.origin == checkpoint.url:
            raise UsageError(
                f"--spark-checkpoint {name(checkpoint.holder)}: {checkpoint.url} is the folder of the query on the "
                "source, which was translated.",
                "Name the folder of the query on the target.",
            )
        asked.append(replace(checkpoint, batch=None if origin is None else origin.batch))
    return asked


def not_looked_at(plan: PositionPlan, verified: PositionVerification) -> tuple[str, ...]:
    """Return the holders of the plan that no folder was named of, in its order."""
    return tuple(holder for holder in plan.holders() if holder not in verified.holders())


def counted(findings: Iterable[PositionFinding]) -> Counter[PositionStanding]:
    """Count findings by how they stand."""
    return Counter(finding.standing for finding in findings)


def verify_lines(plan: PositionPlan, verified: PositionVerification, width: int, colour: bool) -> Iterator[str]:
    """Yield how checkpoints stand: a verdict, what is not as planned or has moved on, who was not looked at."""
    for one in verified.unread:
        yield from wrapped(paint(f"CHECKPOINT NOT READ: {name(one.holder)}: {one.why}", Colour.RED, colour), width)
    if verified.findings or not verified.unread:
        yield from _finding_lines(verified, width, colour)
    if holders := not_looked_at(plan, verified):
        count = many(sum(len(plan.holders()[holder]) for holder in holders), "position")
        told = f"{count} of {many(len(holders), 'holder')} not looked at: {some(map(name, holders), 5)}."
        yield from wrapped(told, width)


def _finding_lines(verified: PositionVerification, width: int, colour: bool) -> Iterator[str]:
    findings, counts = verified.findings, counted(verified.findings)
    bad = [finding for finding in findings if not finding.is_good]
    wrong = sum(counts[standing] for standing in NOT_AS_PLANNED)
    good, total = len(findings) - len(bad), many(len(findings), "position")
    if wrong:
        text, tone = f"POSITIONS NOT AS PLANNED: {wrong} of {total}", Colour.RED
    elif bad or verified.unread:
        text, tone = f"POSITIONS VERIFIED IN PART: {good} of {total}", Colour.YELLOW
    else:
        text, tone = f"POSITIONS VERIFIED: {total}", Colour.GREEN
    yield from wrapped(paint(text, tone, colour), width)
    yield from wrapped(", ".join(f"{counts[s]} {s}" for s in PositionStanding if counts[s]) or "none", width)
    moved = [finding for finding in findings if finding.standing is PositionStanding.MOVED_ON]
    told = [f"{name(f.row.group)} {name(f.row.target_topic)}:{f.row.partition}: {f.sentence}" for f in (*bad, *moved)]
    yield from at_most(told, SHOWN, width)

"""The records themselves as proof: what each group reads next on one side beside what it reads next on the other.

For every row with an offset: the source's next record at or after the committed offset, and the target's next
record at or after the planned one. Records are read through ports and come as digests. What the plan pinned
bounds the look: what was written since is nobody's proof.

An exact row stands on the very copy of the source's next record. Other rows may start earlier, to be safe: then
the source's record is looked for among the target's next ones, as far as the plan's re-reads reach.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.equality import Equality
from migrate.errors import EXIT_DONE, EXIT_FAILED
from migrate.model import Decision, Failure, Grade, LogRange, Row, TopicPartition
from migrate.nextrecord import ALL_PARTS, NextRecord, Part, Position, parts_of
from migrate.ports import ClusterAdmin, NextRecordReader, Progress
from migrate.terminal import many

# How far a record is looked for beyond what the plan says is read twice, and at most.
LOOK_AHEAD = 100
LOOK_AHEAD_AT_MOST = 1000

Place = tuple[TopicPartition, int]


class Verdict(StrEnum):
    """What the two records say of a row."""

    EQUAL = "equal"
    AT_END = "at-end"
    EARLIER = "earlier"
    ALIKE = "alike"
    REMOVED = "removed"
    NOT_FOUND = "not-found"
    CHOSEN = "chosen"
    DIFFERENT = "different"
    UNREADABLE = "unreadable"


FAILED = frozenset({Verdict.DIFFERENT, Verdict.UNREADABLE})


@dataclass(frozen=True, slots=True)
class Next:
    """One side of a row: the offset looked from, the log's start now, and the record there; None at the end."""

    offset: int
    log_start: int
    record: NextRecord | None


@dataclass(frozen=True, slots=True)
class RowProof:
    """One row's two records and the verdict on them. A side that could not be read is a `Failure`.

    `parts` are what had to agree, `differing` those of them that do not. `found_at` is where on the target a
    record equal to the source's stands, `records_before` how many records the target has before it.
    """

    row: Row
    source: Next | Failure
    target: Next | Failure
    parts: frozenset[Part]
    differing: tuple[Part, ...]
    verdict: Verdict
    sentence: str
    found_at: int | None = None
    records_before: int | None = None


@dataclass(frozen=True, slots=True)
class RecordProof:
    """The proofs of rows in the plan's order; `left_out` is how many rows with an offset `--limit` left out."""

    rows: tuple[RowProof, ...]
    left_out: int = 0

    @property
    def exit_code(self) -> int:
        """1 if the records of an exact row differ, or a log could not be read; else 0."""
        return EXIT_FAILED if any(proof.verdict in FAILED for proof in self.rows) else EXIT_DONE

    def counts(self) -> Counter[Verdict]:
        """Count rows by verdict."""
        return Counter(proof.verdict for proof in self.rows)


@dataclass(frozen=True, slots=True)
class LogSide:
    """One cluster to look at: its admin, for log ranges, and the reader of its records."""

    admin: ClusterAdmin
    reader: NextRecordReader


def prove(
    rows: Iterable[Row], source: LogSide, target: LogSide, progress: Progress, limit: int | None = None
) -> RecordProof:
    """Read the next records of every row with an offset, and compare them; writes nothing.

    Raises `ClusterError` if a cluster does not answer at all; a log that can not be read is a verdict.
    """
    every = [row for row in rows if standing_offset(row) is not None and row.source_committed is not None]
    proved = every if limit is None else every[:limit]
    there = _Log(source, {_source_place(row)[0]: row.source_log_end for row in proved}, progress)
    here = _Log(target, {_target_place(row)[0]: row.target_log_end for row in proved}, progress)
    theirs = there.next([_source_place(row) for row in proved])
    ours = here.next([_target_place(row) for row in proved])
    depths: dict[Place, int] = {}
    for row in proved:
        place = _target_place(row)
        if _may_stand_further_on(row, theirs[_source_place(row)], ours[place]):
            depths[place] = max(depths.get(place, 0), look_ahead(row))
    ahead = here.read(depths)
    judged = (
        judge(row, theirs[_source_place(row)], ours[_target_place(row)], ahead.get(_target_place(row), ()))
        for row in proved
    )
    return RecordProof(tuple(judged), len(every) - len(proved))


def standing_offset(row: Row) -> int | None:
    """Return the target offset that the group stands on after the apply; None for a row that sets none."""
    if row.decision is Decision.KEEP:
        return row.target_prior
    return row.target_offset if row.decision is Decision.SET else None


def look_ahead(row: Row) -> int:
    """Return how many records of the target are looked through for the source's next one."""
    known = row.rereads_at_most if row.rereads_at_most is not None else row.rereads_estimate
    return min((known or 0) + LOOK_AHEAD, LOOK_AHEAD_AT_MOST)


def judge(
    row: Row, source: Next | Failure, target: Next | Failure, ahead: Sequence[NextRecord] | Failure = ()
) -> RowProof:
    """Return the proof of one row; `ahead` are the target's next records, where they were looked through."""
    parts = _parts(row)

    def told(
        verdict: Verdict,
        sentence: str,
        differing: tuple[Part, ...] = (),
        found_at: int | None = None,
        records_before: int | None = None,
    ) -> RowProof:
        return RowProof(row, source, target, parts, differing, verdict, sentence, found_at, records_before)

    for side, seen in (("source", source), ("target", target), ("target", ahead)):
        if isinstance(seen, Failure):
            return told(Verdict.UNREADABLE, f"The {side}'s log could not be read: {seen.code}: {seen.message}.")
    assert isinstance(source, Next) and isinstance(target, Next) and not isinstance(ahead, Failure)
    theirs, ours = source.record, target.record
    if theirs is None and ours is None:
        return told(Verdict.AT_END, "Nothing is left to read on either side.")
    differing = ours.differing(theirs, parts) if theirs and ours else ()
    if theirs and ours and not differing:
        return told(Verdict.EQUAL, "The same record.")
    if _was_chosen(row):
        return told(Verdict.CHOSEN, "This offset is a reviewer's choice and no translation.", differing)
    removed = _removed(source, target)
    if removed:
        return told(Verdict.REMOVED, removed, differing)
    exact = row.grade is Grade.EXACT
    if theirs is None:
        verdict = Verdict.DIFFERENT if exact else Verdict.EARLIER
        return told(verdict, "The source has no record left, the target has: it starts earlier.")
    if ours is None:
        verdict = Verdict.DIFFERENT if exact else Verdict.NOT_FOUND
        return told(verdict, "The target has no record left, the source has: it is not copied there.")
    before = next((i for i, record in enumerate(ahead) if not record.differing(theirs, parts)), None)
    if before is not None:
        place = ahead[before].offset
        sentence = f"The source's record stands at {place} on the target, {many(before, 'record')} further on."
        verdict = Verdict.DIFFERENT if exact else Verdict.EARLIER
        if exact and theirs.offset > source.offset:
            # Compaction takes the record that the group wants next, and leaves its copy.
            verdict, sentence = Verdict.REMOVED, f"The source has no record at {source.offset} any more. {sentence}"
        return told(verdict, sentence, differing, place, before)
    searched = f"None of the target's next {many(len(ahead), 'record')} equals the source's."
    if not row.equality and not ours.differing(theirs, _CONTENT):
        changed = " and ".join(differing)
        return told(Verdict.ALIKE, f"Key and value are the same, {changed} not: changed on the way.", differing)
    if exact and row.missing_on_target:
        missing = f"The plan counted {many(row.missing_on_target, 'record')} without a copy on the target."
        return told(Verdict.NOT_FOUND, f"{searched} {missing}", differing)
    if exact and ours.offset > target.offset:
        sentence = f"The target has no record at {target.offset} any more. {searched}"
        return told(Verdict.REMOVED, sentence, differing)
    return told(Verdict.DIFFERENT if exact else Verdict.NOT_FOUND, searched, differing)


_CONTENT = frozenset({Part.KEY, Part.VALUE})


def _parts(row: Row) -> frozenset[Part]:
    return parts_of(Equality(row.equality)) if row.equality else ALL_PARTS


def _was_chosen(row: Row) -> bool:
    return row.grade is None or standing_offset(row) != row.target_offset


def _removed(source: Next, target: Next) -> str:
    for side, seen in (("source", source), ("target", target)):
        if seen.log_start > seen.offset:
            return (
                f"Retention has removed the {side}'s records from {seen.offset} on: its log starts at {seen.log_start}."
            )
    return ""


def _may_stand_further_on(row: Row, source: Next | Failure, target: Next | Failure) -> bool:
    if isinstance(source, Failure) or isinstance(target, Failure) or not source.record or not target.record:
        return False
    if _was_chosen(row) or _removed(source, target):
        return False
    return bool(target.record.differing(source.record, _parts(row)))


def _source_place(row: Row) -> Place:
    assert row.source_committed is not None
    return TopicPartition(row.source_topic, row.partition), row.source_committed


def _target_place(row: Row) -> Place:
    offset = standing_offset(row)
    assert offset is not None
    return row.target_partition, offset


class _Log:
    """One side's logs, up to the ends that the plan pinned."""

    def __init__(self, side: LogSide, pinned: Mapping[TopicPartition, int | None], progress: Progress) -> None:
        self._side = side
        self._pinned = pinned
        self._progress = progress
        self._ranges = side.admin.log_ranges(list(pinned)) if pinned else {}

    def next(self, places: Collection[Place]) -> Mapping[Place, Next | Failure]:
        """Return what stands at each place."""
        found: dict[Place, Next | Failure] = {}
        for place, records in self.read(dict.fromkeys(places, 1)).items():
            log = self._ranges[place[0]]
            if isinstance(records, Failure) or isinstance(log, Failure):
                found[place] = records if isinstance(records, Failure) else _no_log(log)
            else:
                found[place] = Next(place[1], log.start, records[0] if records else None)
        return found

    def read(self, depths: Mapping[Place, int]) -> Mapping[Place, Sequence[NextRecord] | Failure]:
        """Return up to so many records from each place on."""
        found: dict[Place, Sequence[NextRecord] | Failure] = {}
        positions: dict[Place, Position] = {}
        for place, most in depths.items():
            partition, offset = place
            log = self._ranges.get(partition)
            if not isinstance(log, LogRange):
                found[place] = _no_log(log)
                continue
            pinned = self._pinned[partition]
            end = log.end if pinned is None else min(pinned, log.end)
            if offset < end:
                positions[place] = Position(partition, max(offset, log.start), end, most)
            else:
                found[place] = ()
        if positions:
            side, alias = self._side.admin.side, self._side.admin.alias
            self._progress.step(f"reading the next records at {many(len(positions), 'place')} on {side} {alias}")
            answers = self._side.reader.next_records(set(positions.values()))
            nothing = Failure("NO_ANSWER", "the place is missing from the answer")
            found |= {place: answers.get(position, nothing) for place, position in positions.items()}
        return found


def _no_log(log: object) -> Failure:
    return log if isinstance(log, Failure) else Failure("NO_ANSWER", "the cluster did not tell this log's range")

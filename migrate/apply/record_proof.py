"""The records themselves as proof: what each group reads next on one side beside what it reads next on the other.

For every row with an offset: the source's next record at or after its committed offset, and the target's next record
at or after the offset that is committed there now, whatever the plan says; where that is not the planned one, the
planned one's record is read as well. Records are read through ports and come as digests. What the plan pinned bounds
the look: what was written since is nobody's proof.

An exact row's offset is that of the very copy of the source's next record. Other rows may start earlier, to be safe:
then the source's record is looked for among the target's next ones, as far as the plan's re-reads reach. Where
consumers have moved on, the planned offset is what they started from, so its record is the one that is compared."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from migrate.apply.verify import Standing, VerifyFinding
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY
from migrate.match.equality import ALL_PARTS, Equality, Part
from migrate.match.next_record import NextRecord, Position, ReadNext
from migrate.model import Decision, Failure, Grade, LogRange, Row, TopicPartition
from migrate.ports import Progress
from migrate.survey.cluster import ClusterAdmin
from migrate.text import capital, many

Place = tuple[TopicPartition, int]
_NO_RANGE = Failure("NO_ANSWER", "the cluster did not return this log's range")


@dataclass(frozen=True, slots=True)
class Next:
    """One side of a row: the offset looked from, the log's range now, and the record there; None at the end."""

    offset: int
    log_start: int
    log_end: int
    record: NextRecord | None


@dataclass(frozen=True, slots=True)
class LogSide:
    """One cluster to look at: its admin, for log ranges, and what reads its records."""

    admin: ClusterAdmin
    next_records: ReadNext


class PinnedLogs:
    """One side's logs, up to the ends that the plan pinned (`pinned`; None for no end)."""

    def __init__(self, side: LogSide, pinned: Mapping[TopicPartition, int | None], progress: Progress) -> None:
        self._side = side
        self._pinned = pinned
        self._progress = progress
        self._ranges: Mapping[TopicPartition, LogRange | Failure] = {}
        if pinned:
            progress.step(f"reading the ends of {many(len(pinned), 'log')} on {side.admin.side} {side.admin.alias}")
            self._ranges = side.admin.log_ranges(list(pinned))

    def next(self, places: Collection[Place], pinned: bool = True) -> Mapping[Place, Next | Failure]:
        """Return what is at each place; beyond the ends that the plan pinned only where `pinned` is False."""
        ranges = {partition: log for partition, log in self._ranges.items() if isinstance(log, LogRange)}
        return {
            (partition, offset): records
            if isinstance(records, Failure)
            else Next(offset, ranges[partition].start, ranges[partition].end, records[0] if records else None)
            for (partition, offset), records in self.read(dict.fromkeys(places, 1), pinned).items()
        }

    def read(self, depths: Mapping[Place, int], pinned: bool = True) -> Mapping[Place, Sequence[NextRecord] | Failure]:
        """Return up to so many records from each place on."""
        records: dict[Place, Sequence[NextRecord] | Failure] = {}
        positions: dict[Place, Position] = {}
        for place, most in depths.items():
            partition, offset = place
            log = self._ranges.get(partition, _NO_RANGE)
            if isinstance(log, Failure):
                records[place] = log
                continue
            planned_end = self._pinned[partition] if pinned else None
            end = log.end if planned_end is None else min(planned_end, log.end)
            if offset < end:
                positions[place] = Position(partition, max(offset, log.start), end, most)
            else:
                records[place] = ()
        if positions:
            side, alias = self._side.admin.side, self._side.admin.alias
            self._progress.step(f"reading the next records at {many(len(positions), 'place')} on {side} {alias}")
            answers = self._side.next_records(set(positions.values()))
            nothing = Failure("NO_ANSWER", "the place is missing from the answer")
            records |= {place: answers.get(position, nothing) for place, position in positions.items()}
        return records


# How many records of a log are looked through for one that is not where it was expected.
LOOK_AHEAD = 1000


class RecordVerdict(StrEnum):
    """What the two records say of a row."""

    EQUAL = "equal"
    AT_END = "at-end"
    EARLIER = "earlier"
    ALIKE = "alike"
    REMOVED = "removed"
    NOT_FOUND = "not-found"
    CHOSEN = "chosen"
    MOVED_ON = "moved-on"
    BEYOND = "beyond"
    UNCOMMITTED = "uncommitted"
    DIFFERENT = "different"
    NOTHING_LEFT = "nothing-left"
    UNREADABLE = "unreadable"


FAILED = frozenset(
    {
        RecordVerdict.BEYOND,
        RecordVerdict.UNCOMMITTED,
        RecordVerdict.DIFFERENT,
        RecordVerdict.NOTHING_LEFT,
        RecordVerdict.UNREADABLE,
    }
)
# These prove nothing: the source's next record was not found on the target, and need not be.
UNPROVEN = frozenset({RecordVerdict.REMOVED, RecordVerdict.NOT_FOUND, RecordVerdict.CHOSEN})
_NOTHING = Failure("NOT_COMMITTED", "the group has no committed offset there")


@dataclass(frozen=True, slots=True)
class RowProof:
    """One row's two records and the verdict on them. A side that could not be read is a `Failure`.

    `target` is looked at from the offset that is committed now; where that is not the planned one, `planned` is looked
    at from there, and None where the two are one.
    `parts` are what had to agree, `differing` those of them that do not. `found_at` is where on the target a
    record equal to the source's is, `records_before` how many records the target has before it.
    """

    row: Row
    source: Next | Failure
    target: Next | Failure
    parts: frozenset[Part]
    verdict: RecordVerdict
    sentence: str
    differing: tuple[Part, ...] = ()
    found_at: int | None = None
    records_before: int | None = None
    planned: Next | Failure | None = None


@dataclass(frozen=True, slots=True)
class RecordProof:
    """The proofs of rows in the plan's order; `left_out` is how many rows with an offset `--limit` left out.

    Rows that nobody was to write, and that apply left out, are not among them: a `Verification` names those.
    """

    rows: tuple[RowProof, ...]
    left_out: int = 0

    @property
    def exit_code(self) -> int:
        """1 if a verdict is one of `FAILED`; else 4 if there are rows, and none of them is proven; else 0."""
        verdicts = {proof.verdict for proof in self.rows}
        if not FAILED.isdisjoint(verdicts):
            return EXIT_FAILED
        return EXIT_PARTLY if verdicts and verdicts <= UNPROVEN else EXIT_DONE

    def counts(self) -> Counter[RecordVerdict]:
        """Count rows by verdict."""
        return Counter(proof.verdict for proof in self.rows)


def prove(
    rows: Iterable[Row],
    findings: Iterable[VerifyFinding],
    source: LogSide,
    target: LogSide,
    progress: Progress,
    limit: int | None = None,
    still_copied: Collection[str] = (),
) -> RecordProof:
    """Read the next records of every row with an offset, and compare them; writes nothing.

    `findings` are what is committed on the target now; a row without one was not to be written. Of the source topics
    `still_copied` the plan did not say that all was copied. Raises `ClusterError`
    if a cluster does not answer at all; a log that cannot be read is a verdict.
    """
    by_key = {finding.key: finding for finding in findings}
    every = [
        (row, by_key[row.key])
        for row in rows
        if standing_offset(row) is not None and row.source_committed is not None and row.key in by_key
    ]
    proved = every[:limit]
    source_logs = PinnedLogs(source, {_source_place(row)[0]: row.source_log_end for row, _ in proved}, progress)
    target_logs = PinnedLogs(target, {_planned_place(row)[0]: row.target_log_end for row, _ in proved}, progress)
    theirs = source_logs.next([_source_place(row) for row, _ in proved])
    compared = [(row, finding, _compared_place(row, finding)) for row, finding in proved]
    ours = target_logs.next({place for row, _, place in compared} | {_planned_place(row) for row, _ in proved})
    # Consumers may have read beyond what the plan pinned: there the record is shown, and compared with nothing.
    now = target_logs.next({_committed_place(f) for _, f in proved if _has_moved_on(f)}, pinned=False)
    further = [(row, p) for row, _, p in compared if _may_be_further_on(row, theirs[_source_place(row)], ours[p])]
    # Of an exact row the source's records tell, too, what a cleaner has taken on the target alone.
    exact = [_source_place(row) for row, _ in further if row.grade is Grade.EXACT and not row.missing_on_target]
    ahead = target_logs.read({place: LOOK_AHEAD for _, place in further})
    source_ahead = source_logs.read(dict.fromkeys(exact, LOOK_AHEAD))
    judged = []
    for row, finding, place in compared:
        there = source_ahead.get(_source_place(row), ())
        source_next, all_copied = theirs[_source_place(row)], row.source_topic not in still_copied
        proof = judge(row, source_next, ours[place], ahead.get(place, ()), there, all_copied)
        planned = ours[_planned_place(row)]
        if finding.seen is not None and _has_moved_on(finding):
            judged.append(_moved_on(proof, finding.seen, now[_committed_place(finding)]))
        else:
            judged.append(_held(proof, finding, planned))
    return RecordProof(tuple(judged), len(every) - len(proved))


def _has_moved_on(finding: VerifyFinding) -> bool:
    """True if consumers account for an offset beyond the planned one."""
    return finding.is_good and finding.seen != finding.expected


def _compared_place(row: Row, finding: VerifyFinding) -> Place:
    return _planned_place(row) if finding.seen is None or _has_moved_on(finding) else _committed_place(finding)


def _committed_place(finding: VerifyFinding) -> Place:
    assert finding.seen is not None
    return finding.target_partition, finding.seen


def _moved_on(proof: RowProof, seen: int, now: Next | Failure) -> RowProof:
    """Return the proof of where the group's consumers began, beside the record that they are at now."""
    sentence = f"Consumers have moved on to {seen}. At the planned offset: {proof.sentence}"
    verdict = proof.verdict if proof.verdict in FAILED else RecordVerdict.MOVED_ON
    return replace(proof, target=now, planned=proof.target, verdict=verdict, sentence=sentence)


def _held(proof: RowProof, finding: VerifyFinding, planned: Next | Failure) -> RowProof:
    """Return the proof at the committed offset, with the planned one's record where that is another."""
    seen, expected = finding.seen, finding.expected
    if seen == expected:
        return proof
    if seen is None or expected is None:
        # Also where it could not be read: what is not seen is no proof.
        missing = finding.standing is Standing.MISSING
        verdict = RecordVerdict.UNCOMMITTED if missing else RecordVerdict.UNREADABLE
        target = _NOTHING if missing else Failure("UNREADABLE", finding.sentence)
        unread = (("source", proof.source), ("target", planned))
        logs = [f" {_unread_log(side, log)}" for side, log in unread if isinstance(log, Failure)]
        sentence = f"{capital(finding.sentence)}.{''.join(logs)}"
        return RowProof(proof.row, proof.source, target, proof.parts, verdict, sentence, planned=planned)
    proof = replace(proof, planned=planned)
    if seen < expected or proof.verdict is RecordVerdict.UNREADABLE:
        return proof
    sentence = (
        f"The committed offset is {seen - expected} beyond the planned {expected}, and no consumer accounts for it."
    )
    return replace(proof, verdict=RecordVerdict.BEYOND, sentence=sentence, found_at=None, records_before=None)


def standing_offset(row: Row) -> int | None:
    """Return the target offset that the group is at after the apply; None for a row that sets none."""
    if row.decision is Decision.KEEP:
        return row.target_prior
    return row.target_offset if row.decision is Decision.SET else None


def _unread_log(side: str, failure: Failure) -> str:
    return f"The {side}'s log could not be read: {failure}."


def judge(  # noqa: C901, PLR0911, PLR0912 - one verdict after another, in the order that decides
    row: Row,
    source: Next | Failure,
    target: Next | Failure,
    ahead: Sequence[NextRecord] | Failure = (),
    source_ahead: Sequence[NextRecord] | Failure = (),
    all_copied: bool = False,
) -> RowProof:
    """Return the proof of one row; `ahead` and `source_ahead` are a log's next records, where they were looked through.

    `all_copied` says that the plan takes all of the topic to be copied.

    `source_ahead` tells what a log cleaner had taken on the target alone when the plan was made.
    """
    parts = _parts(row)
    proof = partial(RowProof, row, source, target, parts)
    for side, log in (("source", source), ("target", target), ("target", ahead), ("source", source_ahead)):
        if isinstance(log, Failure):
            return proof(RecordVerdict.UNREADABLE, _unread_log(side, log))
    assert isinstance(source, Next) and isinstance(target, Next)
    assert not isinstance(ahead, Failure) and not isinstance(source_ahead, Failure)
    if cut := _cut(row, source, target):
        return proof(RecordVerdict.UNREADABLE, cut)
    theirs, ours = source.record, target.record
    differing = ours.differing(theirs, parts) if theirs and ours else ()
    removed = _removed(row, source, target)
    if theirs and ours and not differing and (not removed or target.log_start <= target.offset):
        return proof(RecordVerdict.EQUAL, "The same record.")
    if theirs is None and ours is None and not removed:
        return proof(RecordVerdict.AT_END, "Nothing is left to read on either side.")
    if _was_chosen(row) and (theirs or ours):
        return proof(RecordVerdict.CHOSEN, "This offset is a reviewer's choice and no translation.", differing)
    if removed:
        return proof(RecordVerdict.REMOVED, removed, differing)
    if theirs is None or ours is None:
        return proof(*_one_at_end(row, source, target, all_copied))
    exact = row.grade is Grade.EXACT
    before = next((i for i, record in enumerate(ahead) if not record.differing(theirs, parts)), None)
    if before is not None:
        place = ahead[before].offset
        sentence = f"The source's record is at {place} on the target, {many(before, 'record')} further on."
        verdict = RecordVerdict.DIFFERENT if exact else RecordVerdict.EARLIER
        if exact and (taken := _taken_before(row, source, target, ahead[:before])):
            verdict, sentence = RecordVerdict.REMOVED, f"{taken} {sentence}"
        return proof(verdict, sentence, differing, place, before)
    searched = f"None of the target's next {many(len(ahead), 'record')} equals the source's."
    if not row.equality and not ours.differing(theirs, _CONTENT):
        changed = " and ".join(differing)
        return proof(RecordVerdict.ALIKE, f"Key and value are the same, {changed} not: changed on the way.", differing)
    if not exact:
        return proof(RecordVerdict.NOT_FOUND, searched, differing)
    if row.missing_on_target:
        return proof(RecordVerdict.NOT_FOUND, f"{searched} {_counted(row)}", differing)
    if _planned_record_is_gone(row, target):
        return proof(RecordVerdict.REMOVED, f"{_gone(target, 'target')} {searched}", differing)
    if _taken_on_source(row, source) >= LOOK_AHEAD <= len(ahead):
        return proof(RecordVerdict.REMOVED, f"{_gone(source, 'source')} {searched}", differing)
    verdict, sentence = _without_copy(source_ahead, ours, parts)
    return proof(verdict, sentence or searched, differing)


def _cut(row: Row, source: Next, target: Next) -> str:
    """Return which log ends before the offset looked from, or before the end that the plan saw; "" for none."""
    for side, log, pinned in (("source", source, row.source_log_end), ("target", target, row.target_log_end)):
        if log.log_end < (least := max(log.offset, pinned or 0)):
            return f"The {side}'s log ends at {log.log_end}, before {least}: it was cut or re-created."
    return ""


def _one_at_end(row: Row, source: Next, target: Next, all_copied: bool) -> tuple[RecordVerdict, str]:
    """Return the verdict where one log has no record left up to the end that the plan saw, and the other has."""
    exact, left = row.grade is Grade.EXACT, source.record or target.record
    # A cleaner takes a record that has a key once a newer one has it, which may lie beyond what the plan saw.
    may_be_taken = exact and left is not None and left.key is not None
    if source.record is None:
        if may_be_taken and source.offset < (row.source_log_end or 0):
            return RecordVerdict.REMOVED, "The source has no record left, the target has: compaction may have taken it."
        verdict = RecordVerdict.DIFFERENT if exact else RecordVerdict.EARLIER
        return verdict, "The source has no record left, the target has: it starts earlier."
    sentence = "The target has no record left, the source has: it is not copied there."
    if row.missing_on_target:
        return RecordVerdict.NOT_FOUND, f"{sentence} {_counted(row)}"
    if not exact and all_copied and target.log_start == target.log_end:
        # A cleaner leaves the newest record of a log: one that is empty was created anew, or lost all of it.
        return RecordVerdict.NOTHING_LEFT, f"{sentence} Its log is empty."
    if not exact or target.offset >= (row.target_log_end or 0):
        return RecordVerdict.NOT_FOUND, sentence
    if may_be_taken and target.offset == standing_offset(row):
        return RecordVerdict.REMOVED, "The target has no record left, the source has: compaction may have taken it."
    return RecordVerdict.DIFFERENT, sentence


def _counted(row: Row) -> str:
    return f"The plan counted {many(row.missing_on_target or 0, 'record')} without a copy on the target."


def _planned_record_is_gone(row: Row, target: Next) -> bool:
    """True if the target has a record left, and none at the planned offset, where it had one."""
    assert target.record is not None
    return target.offset == standing_offset(row) and target.record.offset > target.offset


def _gone(log: Next, side: str) -> str:
    return f"The {side} has no record at {log.offset} any more."


def _taken_before(row: Row, source: Next, target: Next, passed: Sequence[NextRecord]) -> str:
    """Return how compaction explains that an exact row's record is behind the `passed` ones; "" where it does not.

    They may be copies of what the source has lost, if they are no more than its missing offsets, and all have a key.
    A transaction's marker is such an offset too, where nothing was lost.
    """
    if 0 < len(passed) <= _taken_on_source(row, source) and all(record.key is not None for record in passed):
        return _gone(source, "source")
    return _gone(target, "target") if _planned_record_is_gone(row, target) else ""


def _taken_on_source(row: Row, source: Next | Failure) -> int:
    """Return over how many offsets an exact row's source has no record any more: so many copies may still be there."""
    if row.grade is not Grade.EXACT or isinstance(source, Failure) or source.record is None:
        return 0
    return source.record.offset - source.offset


def _without_copy(
    source_ahead: Sequence[NextRecord], ours: NextRecord, parts: Collection[Part]
) -> tuple[RecordVerdict, str]:
    """Judge an exact row by the source's records that come before the target's: a cleaner may have taken their copies.

    It takes tombstones, and records whose key comes again; what has no key, and the last of its key, stays.
    """
    at = next((i for i, record in enumerate(source_ahead) if not record.differing(ours, parts)), None)
    passed = source_ahead[:at]
    if any(record.key is None for record in passed):
        return RecordVerdict.DIFFERENT, ""
    newest = {record.key: i for i, record in enumerate(source_ahead)}
    last = [i for i, record in enumerate(passed) if not record.is_tombstone and newest[record.key] == i]
    if passed and at is not None and not last:
        return RecordVerdict.REMOVED, (
            f"The source's next {'record has' if at == 1 else f'{at} records have'} no copy, as compaction leaves it: "
            "each is a tombstone, or its key comes again. What follows is the same record."
        )
    if len(source_ahead) >= LOOK_AHEAD:
        return RecordVerdict.NOT_FOUND, (
            f"The source's next records have no copy; in {many(len(source_ahead), 'record')} from there on not all of "
            "their keys come again, so that compaction may have taken them, or not."
        )
    return RecordVerdict.DIFFERENT, ""


_CONTENT = frozenset({Part.KEY, Part.VALUE})


def _parts(row: Row) -> frozenset[Part]:
    return Equality(row.equality).parts if row.equality else ALL_PARTS


def _was_chosen(row: Row) -> bool:
    return row.grade is None or standing_offset(row) != row.target_offset


def _removed(row: Row, source: Next, target: Next) -> str:
    """Return from which log retention has removed what was left to read when the plan was made; "" for neither."""
    for side, log, pinned in (("source", source, row.source_log_end), ("target", target, row.target_log_end)):
        if log.log_start > log.offset and (pinned is None or log.offset < pinned):
            return (
                f"Retention has removed the {side}'s records from {log.offset} on: its log starts at {log.log_start}."
            )
    return ""


def _may_be_further_on(row: Row, source: Next | Failure, target: Next | Failure) -> bool:
    if isinstance(source, Failure) or isinstance(target, Failure) or not source.record or not target.record:
        return False
    if _was_chosen(row) or _removed(row, source, target):
        return False
    return bool(target.record.differing(source.record, _parts(row)))


def _source_place(row: Row) -> Place:
    assert row.source_committed is not None
    return row.source_partition, row.source_committed


def _planned_place(row: Row) -> Place:
    offset = standing_offset(row)
    assert offset is not None
    return row.target_partition, offset

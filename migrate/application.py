"""The engine that `apply` and `rollback` share: assess, save, write, read back.

Invariants:
- Without `execute` all is assessed and nothing written, no journal either.
- Nothing is written while a group is refused, unless `allow_partial`; a refused group is left out whole.
- Prior commits of every group to be written are on disk before the first write, an intent before each write.
- A row is reported as set only if a fresh client read it back at its planned offset.
- The same command again writes what is missing, or nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.assessment import Assessment, Fate, assess
from migrate.clock import Clock
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused
from migrate.history import APPLY
from migrate.journal import Journal, JournalWriter
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.plan import Plan
from migrate.ports import ClusterAdmin, Progress
from migrate.writing import Answer, GroupWriter, read_commits

MAX_CONCURRENCY = 100


class RowStatus(StrEnum):
    """What happened to a row. `planned`: would be written, or was not written because others refused."""

    SET = "set"
    REMOVED = "removed"
    ALREADY = "already"
    FAILED = "failed"
    UNKNOWN = "unknown"
    LEFT_OUT = "left-out"
    PLANNED = "planned"
    KEPT = "kept"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row's end. `seen_offset` is the target's committed offset as last read, None for none or unread."""

    key: tuple[str, str, int]
    target_partition: TopicPartition
    status: RowStatus
    error: str = ""
    seen_offset: int | None = None


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What was found, what was done, and the exit code that says so. `trouble` is what ended a run early."""

    exit_code: int
    executed: bool
    assessment: Assessment
    rows: tuple[RowResult, ...]
    trouble: str = ""

    def counts(self) -> Counter[RowStatus]:
        """Count rows by status."""
        return Counter(row.status for row in self.rows)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The choices of one run. `details` go into the journal's `begin`, such as what was approved and who signed."""

    execute: bool = False
    allow_partial: bool = False
    concurrency: int = MAX_CONCURRENCY
    group_timeout_seconds: float = 120.0
    details: Mapping[str, object] | None = None


def apply_plan(
    plan: Plan,
    target: ClusterAdmin,
    source: ClusterAdmin | None,
    journal: Journal,
    clock: Clock,
    progress: Progress,
    options: ApplyOptions,
    command: str = APPLY,
    review: Callable[[Assessment], None] = lambda assessment: None,
    spends: Journal | None = None,
) -> ApplyResult:
    """Assess a plan and, with `options.execute`, write what is left of it to the target.

    `command` is "apply" or "rollback": an undo plan goes into the journal of the plan that it undoes.
    `review` is called with the assessment before anything is written. `spends` is the journal of another plan
    that this one undoes. Raises `Refused` for a spent plan or one that is being applied, `ClusterError` where
    the target cannot be read; what goes wrong after the first write is in the result.
    """
    state = journal.read()
    if command == APPLY and state.is_spent:
        raise Refused(
            f"Plan {plan.short_fingerprint} is spent: it was rolled back. Nothing was written.",
            "Make a new plan of the world as it is now.",
        )
    assessment = assess(plan, target, source, state, state.traces(command), progress)
    review(assessment)
    proceed = _may_write(assessment, options.allow_partial)
    if not options.execute or not proceed or not assessment.writable:
        rows = _results(assessment, {}, {}, proceed)
        return ApplyResult(_exit_code(assessment, rows, options), False, assessment, rows)
    details = {"plan": plan.fingerprint, **(options.details or {})}
    with journal.open(command, details, state.events) as writer:
        if spends is not None:
            with spends.open(APPLY, {"plan": plan.fingerprint}) as other:
                other.spent(plan.fingerprint)
        rows, trouble = _execute(assessment, target, writer, clock, progress, options)
        code = _exit_code(assessment, rows, options)
        if not trouble:
            writer.end(code, {str(status): count for status, count in Counter(r.status for r in rows).items()})
    return ApplyResult(code, True, assessment, rows, trouble)


def _may_write(assessment: Assessment, allow_partial: bool) -> bool:
    return not assessment.refusals and (allow_partial or not assessment.refused)


def _execute(
    assessment: Assessment,
    target: ClusterAdmin,
    journal: JournalWriter,
    clock: Clock,
    progress: Progress,
    options: ApplyOptions,
) -> tuple[tuple[RowResult, ...], str]:
    groups = assessment.writable
    rows = {g.group: g.pending for g in groups}
    progress.step(f"saving the prior offsets of {len(groups)} groups")
    try:
        journal.backup(
            {group: assessment.target_commits[group] for group in rows},
            {group: [row.target_partition for row in pending] for group, pending in rows.items()},
        )
    except OSError as error:
        raise MigrateError(
            f"The prior offsets could not be saved to the journal: {error.strerror}. Nothing was written.",
            "Make room for the journal beside the plan, then run the same command again.",
        ) from error
    progress.step(f"writing {len(groups)} groups on {target.side} {target.alias}")
    writer = GroupWriter(target, journal, clock, options.group_timeout_seconds)
    answers: dict[str, dict[TopicPartition, Answer]] = {}
    names = list(rows)
    size = max(1, min(options.concurrency, MAX_CONCURRENCY))
    trouble = ""
    for batch in _batches(names, size):
        try:
            answers |= writer.write({g: rows[g] for g in batch}, assessment.target_commits)
        except OSError as error:
            # Without its journal a write could not be undone: none more is made, and what the last ones did is read.
            trouble = f"the journal can not be written any more ({error.strerror}): stopped before all groups were set"
            lost = Failure("JOURNAL_LOST", trouble, outcome_unknown=True)
            answers |= {g: {row.target_partition: lost for row in rows[g]} for g in batch}
            break
        progress.advance(len(answers), len(names))
    progress.step(f"reading {len(groups)} groups back from {target.side} {target.alias}")
    seen: dict[str, Commits | Failure] = {}
    for batch in _batches(names, size):
        seen |= read_commits(target, batch, clock, options.group_timeout_seconds)
        progress.advance(len(seen), len(names))
    results = _results(assessment, answers, seen, True)
    if not trouble:
        _note_read_back(journal, results, seen)
    return results, trouble


def _note_read_back(
    journal: JournalWriter, results: Iterable[RowResult], seen: Mapping[str, Commits | Failure]
) -> None:
    by_group: dict[str, list[RowResult]] = {}
    for result in results:
        by_group.setdefault(result.key[0], []).append(result)
    written = (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY)
    for group, commits in seen.items():
        if isinstance(commits, Failure):
            continue
        mine = [r for r in by_group[group] if r.status not in (RowStatus.KEPT, RowStatus.SKIPPED)]
        offsets = {r.target_partition: r.seen_offset for r in mine}
        journal.read_back(group, all(r.status in written for r in mine), offsets)


def _results(
    assessment: Assessment,
    answers: Mapping[str, Mapping[TopicPartition, Answer]],
    seen: Mapping[str, Commits | Failure],
    proceed: bool,
) -> tuple[RowResult, ...]:
    """Return one result for each row of the plan, in its order."""
    fates = {g.group: g for g in assessment.groups}
    pending = {row.key for g in assessment.groups for row in g.pending}
    results = []
    for row in assessment.plan.rows:
        fate = fates[row.group].fate
        before = assessment.target_commits.get(row.group, {}).get(row.target_partition)
        now = None if before is None else before.offset
        if row.decision is Decision.KEEP:
            status = RowStatus.KEPT
        elif row.decision is Decision.SKIP:
            status = RowStatus.SKIPPED
        elif fate in (Fate.BLOCKED, Fate.DRIFTED, Fate.NOT_UNDOABLE):
            status = RowStatus.LEFT_OUT
        elif row.key not in pending:
            status = RowStatus.ALREADY
        elif row.group not in answers:
            status = RowStatus.PLANNED
        else:
            answer = answers[row.group].get(row.target_partition)
            results.append(_judge(row, answer, seen.get(row.group)))
            continue
        error = "" if proceed or status is not RowStatus.PLANNED else "not written: other groups are refused"
        if status is RowStatus.LEFT_OUT:
            error = "; ".join(_own_reasons(row, fates[row.group].reasons))
        results.append(RowResult(row.key, row.target_partition, status, error, now))
    return tuple(results)


def _own_reasons(row: Row, reasons: Sequence[str]) -> Sequence[str]:
    """Return the reasons that name this row, or the first of its group's where none does."""
    names = (row.subject, str(row.target_partition))
    own = [reason for reason in reasons if any(reason.startswith((f"{n}:", f"{n} ")) for n in names)]
    return own or reasons[:1]


def _judge(row: Row, answer: Answer | None, commits: Commits | Failure | None) -> RowResult:
    """Return what became of a row that was written, from the answer and the read-back together."""

    def result(status: RowStatus, error: str = "", seen: int | None = None) -> RowResult:
        return RowResult(row.key, row.target_partition, status, error, seen)

    if isinstance(answer, Failure) and not answer.outcome_unknown:
        told = f"{answer.code}: {answer.message}"
    elif answer is None or isinstance(answer, Failure):
        told = f"no certain answer ({answer.code}: {answer.message})" if answer else "no answer"
    else:
        told = ""
    failed = isinstance(answer, Failure) and not answer.outcome_unknown
    if commits is None or isinstance(commits, Failure):
        why = f"{commits.code}: {commits.message}" if isinstance(commits, Failure) else "not asked"
        if failed:
            return result(RowStatus.FAILED, told)
        return result(RowStatus.UNKNOWN, f"{told or 'written'}, but it could not be read back: {why}")
    commit = commits.get(row.target_partition)
    seen = None if commit is None else commit.offset
    done = RowStatus.REMOVED if row.decision is Decision.REMOVE else RowStatus.SET
    if seen == row.target_offset:
        return result(RowStatus.ALREADY if failed else done, "", seen)
    if failed:
        return result(RowStatus.FAILED, told, seen)
    where = "no offset" if seen is None else str(seen)
    if told:
        return result(RowStatus.UNKNOWN, f"{told}; read back {where}: run the same command again", seen)
    wanted = "none" if row.target_offset is None else str(row.target_offset)
    error = f"written, but read back {where} instead of {wanted}: something else commits to this group"
    return result(RowStatus.FAILED, error, seen)


def _exit_code(assessment: Assessment, rows: Sequence[RowResult], options: ApplyOptions) -> int:
    fates = {g.fate for g in assessment.groups}
    if not _may_write(assessment, options.allow_partial):
        return EXIT_REFUSED
    if assessment.refused and not fates & {Fate.WRITE, Fate.DONE}:
        return EXIT_REFUSED
    statuses = {row.status for row in rows}
    if options.execute and RowStatus.PLANNED in statuses:
        # A run that ended early: what it did not reach is still to be done.
        return EXIT_PARTLY
    if statuses & {RowStatus.FAILED, RowStatus.UNKNOWN}:
        # Unknown counts as written here: "nothing was written" must not be said of what may have been.
        partly = statuses & {RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.UNKNOWN}
        return EXIT_PARTLY if partly else EXIT_FAILED
    return EXIT_PARTLY if assessment.refused else EXIT_DONE


def _batches(items: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (items[i : i + size] for i in range(0, len(items), size))

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
from migrate.drift import stands, to_write
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused
from migrate.groupfacts import GroupFactsReader
from migrate.groupsurvey import ExpiryWatch
from migrate.history import APPLY, REMOVED, SET, GroupTrace
from migrate.journal import Journal, JournalWriter
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.plan import Plan
from migrate.ports import ClusterAdmin, Progress
from migrate.survey import Timer
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
    """The choices of one run. `details` go into the journal's `begin`, such as what was approved and who signed.

    `synced` are the groups whose offsets MM2 writes as well, by its configuration as it is now.
    """

    execute: bool = False
    allow_partial: bool = False
    concurrency: int = MAX_CONCURRENCY
    group_timeout_seconds: float = 120.0
    details: Mapping[str, object] | None = None
    synced: frozenset[str] = frozenset()


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
    target_groups: GroupFactsReader | None = None,
) -> ApplyResult:
    """Assess a plan and, with `options.execute`, write what is left of it to the target.

    `command` is "apply" or "rollback": an undo plan goes into the journal of the plan that it undoes.
    `review` is called with the assessment before anything is written. `spends` is the journal of another plan
    that this one undoes. `target_groups` tells when offsets expire, None where that is not to be asked.
    Raises `Refused` for a spent plan or one that is being applied, `ClusterError` where the target cannot be read;
    what goes wrong after the first write is in the result.
    """
    state = journal.read()
    if command == APPLY and state.is_spent:
        raise Refused(
            f"Plan {plan.short_fingerprint} is spent: it was rolled back. Nothing was written.",
            "Make a new plan of the world as it is now.",
        )
    watch = ExpiryWatch(target_groups, target.alias, Timer(clock, progress), clock.now_ms()) if target_groups else None
    assessment = assess(plan, target, source, state, state.traces(command), progress, watch, options.synced)
    review(assessment)
    proceed = _may_write(assessment, options.allow_partial)
    found = _found_done(assessment, state.traces(command))
    if not options.execute or not proceed or not (assessment.writable or found):
        rows = _results(assessment, {}, {}, proceed)
        return ApplyResult(_exit_code(assessment, rows, options), False, assessment, rows)
    details = {"plan": plan.fingerprint, **(options.details or {})}
    with journal.open(command, details, state.events) as writer:
        if spends is not None:
            with spends.open(APPLY, {"plan": plan.fingerprint}) as other:
                other.spent(plan.fingerprint)
        for group, answers in found.items():
            writer.outcome(group, answers)
            writer.read_back(group, True, _seen(assessment.target_commits[group], answers))
        writer.sync()
        rows, trouble = _results(assessment, {}, {}, True), ""
        if assessment.writable:
            writing_target = target.holding(writer.lock)
            try:
                rows, trouble = _execute(assessment, writing_target, writer, clock, progress, options)
            finally:
                writing_target.close()
        code = _exit_code(assessment, rows, options)
        if trouble and code == EXIT_DONE:
            # All stands, but the journal does not say so: the same command again finds that out.
            code = EXIT_PARTLY
        if not trouble:
            writer.end(code, {str(status): count for status, count in Counter(r.status for r in rows).items()})
    return ApplyResult(code, True, assessment, rows, trouble)


def _found_done(assessment: Assessment, traces: Mapping[str, GroupTrace]) -> dict[str, dict[TopicPartition, Answer]]:
    """Return what stands as planned of groups that an earlier run began and did not live to read back.

    It belongs into the journal: consumers that move on from there must not look like somebody else's commits.
    """
    found: dict[str, dict[TopicPartition, Answer]] = {}
    rows = assessment.plan.groups()
    for done in (g.group for g in assessment.groups if g.fate is Fate.DONE):
        trace, commits = traces.get(done), assessment.target_commits[done]
        if trace is None or trace.read_back:
            continue
        found[done] = {
            row.target_partition: REMOVED if row.decision is Decision.REMOVE else SET
            for row in to_write(rows[done])
            if row.target_partition in trace.planned and stands(row, commits)
        }
    return found


def _seen(commits: Commits, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
    return {p: None if (commit := commits.get(p)) is None else commit.offset for p in partitions}


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
    total, concurrency = len(groups), max(1, min(options.concurrency, MAX_CONCURRENCY))

    def tell(done: int) -> None:
        progress.advance(done, total)

    timeout = options.group_timeout_seconds
    written = GroupWriter(target, journal, clock, timeout, concurrency, tell).write(rows, assessment.target_commits)
    progress.step(f"reading {len(written.answers)} groups back from {target.side} {target.alias}")
    seen = read_commits(target, list(written.answers), clock, timeout, tell)
    results = _results(assessment, written.answers, seen, True)
    if not written.journal_lost:
        _note_read_back(journal, results, seen)
        journal.sync()
    return results, written.trouble


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
    if stands(row, commits):
        return result(RowStatus.ALREADY if failed else done, "", seen)
    if failed:
        return result(RowStatus.FAILED, told, seen)
    where = "no offset" if seen is None else str(seen)
    if seen is not None and seen == row.target_offset:
        where += " with other metadata"
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

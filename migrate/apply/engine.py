"""The engine that `apply` and `rollback` share: assess, save, write, read back.

Invariants:
- Without `execute` all is assessed and nothing written, no journal either.
- Nothing is written while a group is refused, unless `allow_partial`; a refused group is left out whole.
- Prior commits of every group to be written are on disk before the first write, an intent before each write.
- A row is reported as set only if a fresh client read it back at its planned offset, as kept only if it has not moved.
- What was done is reported whatever becomes of the journal after the first write.
- The same command again writes what is missing, or nothing.

From `apply PLAN --execute` to the first byte that changes a broker; each step may refuse:

1. `cli.apply`: where the clusters are; the plan's file, fingerprint and kind; a failback's sides change places;
   `--approve`; signatures; a journal that lies beside the plan under another name.
2. `session.clusters.apply_session`: the clients, and a JVM where a row carries metadata.
3. `apply_plan`: the journal (a spent plan, an undo made from another state of it); `assess` looks at both clusters and
   compares (`drift`); `_may_write` decides. Until here nothing is written anywhere.
4. `Journal.open`: the file, its lock, `begin`. `_begun`: is the file still this plan? An undo marks its plan as spent.
5. `_before_writing`: what an earlier run did not live to confirm. `holding`: a client process that inherits the lock.
6. `_execute`: every prior commit is on disk (`backup`).
7. `GroupWriter`, by chunks: its intents are on disk (`intend`); groups whose look is old are looked at again (`moved`);
   and `alter` commits: `kafka.admin.ConfluentAdmin`, or `spark.java_admin` for groups with metadata.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from migrate.apply.assess import MAX_CONCURRENCY, ApplyClusters, Assessment, Fate, RunOptions, assess
from migrate.apply.drift import compared
from migrate.apply.history import APPLY, ROLLBACK, GroupTrace
from migrate.apply.journal import Journal, JournalLost, JournalWriter
from migrate.apply.outcome import Answer, RowOutcome, RowStatus, committed
from migrate.apply.read_back import found_outcomes, note_read_back, proven_by, reading
from migrate.apply.restore import GroupRestorer
from migrate.apply.undo import refuse_stale
from migrate.apply.write import GroupWriter, PendingRows
from migrate.clock import Clock
from migrate.errors import EXIT_DONE, EXIT_FAILED, EXIT_PARTLY, EXIT_REFUSED, MigrateError, Refused
from migrate.model import Decision, TopicPartition
from migrate.plan.plan import UNDO, Plan
from migrate.ports import Progress
from migrate.progress import Timer
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import ExpiryWatch
from migrate.survey.renamed import TargetNames
from migrate.text import many


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """What was found, what was done, and the exit code that says so.

    `trouble` is what ended a run early, `journal_gap` which part of the journal is missing and why; "" if nothing.
    """

    exit_code: int
    executed: bool
    assessment: Assessment
    rows: tuple[RowOutcome, ...]
    trouble: str = ""
    journal_gap: str = ""

    def counts(self) -> Counter[RowStatus]:
        """Count rows by status."""
        return Counter(row.status for row in self.rows)


def apply_plan(
    plan: Plan, clusters: ApplyClusters, journal: Journal, clock: Clock, progress: Progress, options: RunOptions
) -> ApplyResult:
    """Assess a plan and, with `options.execute`, write what is left of it to the target.

    Raises `Refused` for a spent plan or one that is being applied, and for an undo that was made from another state
    of the journal than there is now, `ClusterError` where the target cannot be read;
    what goes wrong after the first write is in the result.
    """
    state, command, spends = journal.read(), options.command, options.spends
    if command == APPLY and state.is_spent:
        raise Refused(
            f"Plan {plan.short_fingerprint} is spent: a rollback of it has begun. Nothing was written.",
            "Make a new plan of the world as it is now.",
        )
    undone = spends.read() if spends is not None else state
    if plan.header.kind == UNDO:
        refuse_stale(plan, undone)
    traces, target = state.traces(command), clusters.target
    # An undo with a journal of its own: what a rollback tried before may still become visible.
    earlier = undone.traces(ROLLBACK) if spends is not None else {}
    watch = None
    if clusters.watches_expiry:
        watch = ExpiryWatch(target, Timer(clock, progress), clock.now_ms())
    looked_at = clock.monotonic()
    assessment = replace(assess(plan, clusters, state, progress, options, watch), looked_at=looked_at)
    proceed = _may_write(assessment, options.allow_partial)
    done = _found_done(assessment, traces)
    if not options.execute or not proceed or not (assessment.writable or done):
        rows = found_outcomes(assessment, proceed)
        return ApplyResult(_exit_code(assessment, rows, options), False, assessment, rows)
    unseen = {"source_not_seen": assessment.source_unseen} if assessment.source_unseen else {}
    details = {"plan": plan.fingerprint, **(options.details or {}), **unseen}
    called = TargetNames(plan.rows.renamed()).on_target
    with journal.open(command, details, state.events, called) as writer, _begun(writer, options, plan, undone.events):
        _before_writing(assessment, done, writer)
        trouble = gap = ""
        if not assessment.writable:
            rows = found_outcomes(assessment, True)
        else:
            writing_target = target.holding(writer.lock)
            try:
                rows, trouble, gap = _execute(
                    assessment, (traces, earlier), writing_target, writer, clock, progress, options
                )
            finally:
                writing_target.close()
        code = _exit_code(assessment, rows, options)
        if (trouble or gap) and code == EXIT_DONE:
            # All is written, but the journal does not say so: the same command again finds that out.
            code = EXIT_PARTLY
        result = ApplyResult(code, True, assessment, rows, trouble, gap)
        if not trouble and not gap:
            try:
                writer.end(code, {str(status): n for status, n in result.counts().items()})
            except JournalLost as error:
                gap = f"how this run ended ({error})"
                result = replace(result, exit_code=code or EXIT_PARTLY, journal_gap=gap)
    return result


def _before_writing(
    assessment: Assessment, done: Mapping[str, Mapping[TopicPartition, Answer]], writer: JournalWriter
) -> None:
    """Note what an earlier run wrote and did not live to confirm."""
    try:
        rows = assessment.plan.groups()
        for group, answers in done.items():
            if answers:
                writer.outcome(group, answers)
            commits, held = assessment.target_commits[group], compared(rows[group])
            writer.read_back(group, True, {row.target_partition: committed(row, commits) for row in held})
        writer.sync()
    except JournalLost as error:
        raise nothing_written(error) from error


def nothing_written(error: JournalLost) -> MigrateError:
    """Return the error of a journal that was lost before the first write."""
    return MigrateError(
        f"The journal could not be written: {error}. Nothing was written to the target.",
        "Make room for the journal beside the plan, then run the same command again.",
    )


@contextmanager
def _begun(writer: JournalWriter, options: RunOptions, undo: Plan, events: int) -> Iterator[None]:
    """Ask whether to go on; then mark the plan that `undo` undoes as spent, and keep all other runs from its journal.

    Raises `Refused` if that journal does not hold `events` any more, and what `options.begun` does.
    """
    try:
        options.begun()
    except MigrateError as error:
        with suppress(JournalLost):
            writer.end(error.exit_code, {})
        raise
    if (spends := options.spends) is None:
        yield
        return
    with spends.open(APPLY, {"plan": undo.fingerprint}, events) as other:
        try:
            other.spent(undo.fingerprint)
        except JournalLost as error:
            raise nothing_written(error) from error
        yield


def _found_done(assessment: Assessment, traces: Mapping[str, GroupTrace]) -> dict[str, dict[TopicPartition, Answer]]:
    """Return the groups that need no writing and that no run has read back yet, with what was in doubt and is in place.

    It belongs into the journal: consumers that move on from there must not look like somebody else's commits. What no
    earlier run may have written is not in it, wherever it is now: a rollback would take back somebody else's commit.
    A journal is begun for what the plan only finds right, too: the way back of who set it must not take it from under
    this plan.
    """
    groups = _unconfirmed(assessment, traces)
    if not assessment.journal.events and assessment.writable:
        groups = []
    rows, commits = assessment.plan.groups(), assessment.target_commits
    return {group: proven_by(rows[group], {}, traces.get(group), commits[group]) for group in groups}


def _may_write(assessment: Assessment, allow_partial: bool) -> bool:
    return not assessment.refusals and (allow_partial or assessment.is_whole)


def _execute(
    assessment: Assessment,
    histories: Sequence[Mapping[str, GroupTrace]],
    target: ClusterAdmin,
    journal: JournalWriter,
    clock: Clock,
    progress: Progress,
    options: RunOptions,
) -> tuple[tuple[RowOutcome, ...], str, str]:
    """Save, write and read back; return the rows, what ended the run early, and the gap in the journal ("" if none).

    `histories` are what this journal tells of earlier runs, and what the undone plan's tells of rollbacks.
    """
    groups, traces = assessment.writable, histories[0]
    rows = {g.group: g.pending for g in groups}
    progress.step(f"saving the prior offsets of {many(len(groups), 'group')}")
    try:
        journal.backup(
            {group: assessment.target_commits[group] for group in rows},
            {group: PendingRows(pending) for group, pending in rows.items()},
        )
    except JournalLost as error:
        raise nothing_written(error) from error
    progress.step(f"writing {many(len(groups), 'group')} on {target.side} {target.alias}")
    total, concurrency = len(groups), max(1, min(options.concurrency, MAX_CONCURRENCY))

    def advance(done: int) -> None:
        progress.advance(done, total)

    timeout = options.group_timeout_seconds
    judged = rows, assessment.target_commits, assessment.looked_at
    if assessment.plan.header.kind == UNDO:
        written = GroupRestorer(target, journal, clock, timeout, concurrency, advance).restore(*judged)
    else:
        written = GroupWriter(target, journal, clock, timeout, concurrency, advance).write_offsets(*judged)
    # Those that the journal confirms already were read just now.
    others = _unconfirmed(assessment, traces) if not assessment.journal.events else []
    read_again = [*written.answers, *others]
    progress.step(f"reading {many(len(read_again), 'group')} back from {target.side} {target.alias}")
    reads = reading(target, read_again, clock, timeout, advance)
    rows_now, gap = note_read_back(assessment, written, reads, histories, journal)
    return rows_now, written.trouble, gap


def _unconfirmed(assessment: Assessment, traces: Mapping[str, GroupTrace]) -> list[str]:
    """Return the groups that need no writing, and that no earlier run has read back: these are read back too."""
    kept = {g for g, rows in assessment.plan.groups().items() if Decision.KEEP in rows.column("decision")}
    untouched = [
        g.group for g in assessment.groups if g.fate is Fate.DONE or (g.fate is Fate.NOTHING and g.group in kept)
    ]
    return [group for group in untouched if (trace := traces.get(group)) is None or not trace.read_back]


def _exit_code(assessment: Assessment, rows: Sequence[RowOutcome], options: RunOptions) -> int:
    fates = {g.fate for g in assessment.groups}
    if not _may_write(assessment, options.allow_partial):
        return EXIT_REFUSED
    if assessment.refused and not fates & {Fate.WRITE, Fate.DONE}:
        return EXIT_REFUSED
    statuses = {row.status for row in rows}
    # A run that ended early leaves rows as planned: they are still to be written.
    ended_early = options.execute and RowStatus.PLANNED in statuses
    if ended_early or statuses & {RowStatus.FAILED, RowStatus.UNKNOWN}:
        # Unknown counts as written here: "nothing was written" must not be said of what may have been.
        partly = statuses & {RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.MOVED_ON, RowStatus.UNKNOWN}
        return EXIT_PARTLY if partly or any(row.acknowledged for row in rows) else EXIT_FAILED
    return EXIT_DONE if assessment.is_whole else EXIT_PARTLY

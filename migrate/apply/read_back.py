"""Reads groups back after they were written, judges each row by what is there, and notes it in the journal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from migrate.apply.assess import REFUSED, Assessment, GroupAssessment
from migrate.apply.history import REMOVED, SET, GroupTrace
from migrate.apply.journal import JournalLost, JournalWriter
from migrate.apply.outcome import (
    Answer,
    RowOutcome,
    RowStatus,
    State,
    found_at,
    offset_of,
    state_of,
    untouched,
    written,
)
from migrate.apply.write import PAUSE_SECONDS, Interruption, is_passing, no_answer
from migrate.clock import Backoff, Clock
from migrate.commit_table import commits_at
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.progress import batches
from migrate.row_table import GroupRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import answer_of_each

READ_CHUNK = 500
_NOT_ASKED = Failure("NOT_READ", "it was not asked for")
CommitAnswers = Mapping[str, Commits | Failure]
_GOOD = (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.KEPT, RowStatus.MOVED_ON)


def read_commits(
    admin: ClusterAdmin,
    groups: Sequence[str],
    clock: Clock,
    timeout_seconds: float,
    tell: Callable[[int], None] = lambda done: None,
    take: Callable[[CommitAnswers], None] = lambda answers: None,
) -> dict[str, Commits | Failure]:
    """Read groups with a fresh client, and again what failed in passing.

    `tell` is called with how many groups are read; `take` with the final answers of some groups, each group's once,
    while others are still being read.

    Never raises because a client or cluster is gone: what was written before must be reported. An interrupt ends it
    after the reading that is under way.
    """
    answers: dict[str, Commits | Failure] = {}
    left = list(groups)
    backoff = None
    with Interruption() as interrupted:
        while True:
            for read in _one_pass(admin, left):
                if isinstance(read, Failure):
                    # Why a single group could not be read says more than that the client broke later.
                    answers = {**dict.fromkeys(left, read), **answers}
                    break
                answers |= read
                tell(len(answers))
                take({group: answer for group, answer in read.items() if not is_passing(answer)})
            left = [group for group in left if is_passing(answers[group])]
            backoff = backoff or Backoff(clock, *PAUSE_SECONDS, timeout_seconds)
            if not left or backoff.is_over or interrupted:
                take({group: answers[group] for group in left})
                return answers
            backoff.pause()


def _one_pass(admin: ClusterAdmin, groups: Sequence[str]) -> Iterator[CommitAnswers | Failure]:
    """Yield the answers of a chunk at a time; a `Failure` of all others ends it."""
    try:
        admin = admin.renewed()
        for chunk in batches(groups, READ_CHUNK):
            yield answer_of_each(chunk, admin.commits(chunk))
    except Exception as error:
        # Whatever broke: what was written before must be reported.
        yield Failure("NO_ANSWER", no_answer(error).message, retriable=True)


class ReadBack:
    """Judges what is read back of the groups of one run, and notes it in the journal.

    `answers` are the cluster's to what was written; `histories` are what this journal tells of earlier runs, and what
    the undone plan's tells of rollbacks. `journal_gap` says which part of the journal is missing already, "" for none:
    then nothing more is noted.
    """

    def __init__(
        self,
        assessment: Assessment,
        answers: Mapping[str, Mapping[TopicPartition, Answer]],
        histories: Sequence[Mapping[str, GroupTrace]],
        journal: JournalWriter,
        journal_gap: str,
    ) -> None:
        self._assessment = assessment
        self._groups = {group.group: group for group in assessment.groups}
        self._answers = answers
        self._histories = histories
        self._journal = journal
        self._gap = journal_gap
        self._outcomes: dict[str, tuple[RowOutcome, ...]] = {}

    def take(self, read: CommitAnswers) -> None:
        """Judge and note what was read of some groups."""
        for group, commits in read.items():
            outcomes = self._outcomes[group] = self._judged(group, commits)
            if isinstance(commits, Failure) or self._gap:
                continue
            try:
                self._note(group, commits, outcomes)
            except JournalLost as error:
                self._lost(error)

    def outcomes(self) -> tuple[RowOutcome, ...]:
        """Return one outcome for each row of the plan, in its order; call it when all is taken."""
        judged = (self._outcomes.get(group) or self._judged(group, None) for group in self._groups)
        return tuple(chain.from_iterable(judged))

    def finish(self) -> str:
        """Return when all that was noted is on disk, with which part of the journal is missing; "" for none."""
        if not self._gap:
            try:
                self._journal.sync()
            except JournalLost as error:
                self._lost(error)
        return self._gap

    def _lost(self, error: JournalLost) -> None:
        self._gap = f"what was read back, and how this run ended ({error})"

    def _judged(self, group: str, commits: Commits | Failure | None) -> tuple[RowOutcome, ...]:
        traces = [traces[group] for traces in self._histories if group in traces]
        return group_outcomes(self._assessment, self._groups[group], self._answers.get(group), commits, traces)

    def _note(self, group: str, commits: Commits, outcomes: Sequence[RowOutcome]) -> None:
        rows, trace = self._assessment.plan.groups()[group], self._histories[0].get(group)
        if proven := proven_by(rows, self._answers.get(group, {}), trace, commits):
            self._journal.outcome(group, proven)
        compared = [outcome for outcome in outcomes if outcome.status is not RowStatus.SKIPPED]
        offsets = {outcome.target_partition: outcome.seen for outcome in compared}
        self._journal.read_back(group, all(outcome.status in _GOOD for outcome in compared), offsets)


def found_outcomes(assessment: Assessment, proceed: bool) -> tuple[RowOutcome, ...]:
    """Return one outcome for each row of a plan of which nothing is written; `proceed` is False where groups refuse."""
    found = (group_outcomes(assessment, group, None, None, (), proceed) for group in assessment.groups)
    return tuple(chain.from_iterable(found))


def group_outcomes(
    assessment: Assessment,
    group: GroupAssessment,
    answers: Mapping[TopicPartition, Answer] | None,
    after: Commits | Failure | None,
    traces: Sequence[GroupTrace],
    proceed: bool = True,
) -> tuple[RowOutcome, ...]:
    """Return one outcome for each row of a group, in the plan's order.

    `answers` are the cluster's, None where nothing was sent; `after` is what was read back, None where nothing was.
    `traces` tell of earlier runs. `proceed` is False where other groups are refused, so that this one was not written.
    """
    rows, commits = assessment.plan.groups()[group.group], assessment.target_commits.get(group.group, {})
    pending = set(GroupRows.of(group.pending).target_partitions()) if group.pending else ()
    in_doubt = {partition for trace in traces for partition in trace.planned if trace.is_in_doubt(partition)}
    partitions = rows.target_partitions()
    befores = commits_at(commits, partitions)
    afters = found_at(_NOT_ASKED if after is None else after, partitions)
    outcomes: list[RowOutcome] = []
    for row, partition, before, later in zip(rows, partitions, befores, afters, strict=True):
        if answers is not None and partition in pending:
            outcomes.append(written(row, answers.get(partition), partition in in_doubt, later))
        elif row.decision is Decision.SKIP:
            outcomes.append(RowOutcome(row.key, partition, RowStatus.SKIPPED, "", offset_of(before)))
        elif group.fate in REFUSED:
            detail = "; ".join(_own_reasons(row, group.reasons))
            outcomes.append(RowOutcome(row.key, partition, RowStatus.LEFT_OUT, detail, offset_of(before)))
        elif partition in pending:
            detail = "" if proceed else "not written: other groups are refused"
            outcomes.append(RowOutcome(row.key, partition, RowStatus.PLANNED, detail, offset_of(before)))
        else:
            outcomes.append(untouched(row, before, before if after is None else later))
    return tuple(outcomes)


def _own_reasons(row: Row, reasons: Sequence[str]) -> Sequence[str]:
    """Return the reasons that name this row, or the first of its group's where none does."""
    names = (row.subject, str(row.target_partition))
    own = [reason for reason in reasons if any(reason.startswith((f"{n}:", f"{n} ")) for n in names)]
    return own or reasons[:1]


def proven_by(
    rows: GroupRows, answers: Mapping[TopicPartition, Answer], trace: GroupTrace | None, commits: Commits
) -> dict[TopicPartition, Answer]:
    """Return what a reading shows in place of the rows that this run or an earlier one had no certain answer for."""
    if trace is None and not any(isinstance(answer, Failure) for answer in answers.values()):
        return {}
    proven: dict[TopicPartition, Answer] = {}
    for row, commit in zip(rows, commits_at(commits, rows.target_partitions()), strict=True):
        answer, partition = answers.get(row.target_partition), row.target_partition
        earlier = trace is not None and trace.is_in_doubt(partition)
        unknown = answer.outcome_unknown or earlier if isinstance(answer, Failure) else answer is None and earlier
        if unknown and row.decision is not Decision.KEEP and state_of(row, None, commit) is State.AS_PLANNED:
            proven[partition] = REMOVED if row.decision is Decision.REMOVE else SET
    return proven

"""Reads groups back after they were written, judges each row by what is there, and notes it in the journal.

While one chunk of groups is being read, the chunk before it is judged and noted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import chain

from migrate.apply.assess import Assessment
from migrate.apply.attempt import Answer, no_answer
from migrate.apply.drift import is_committed_as_planned, to_write
from migrate.apply.history import REMOVED, SET, GroupTrace
from migrate.apply.journal import JournalLost, JournalWriter
from migrate.apply.row_results import RowResult, RowStatus, group_results
from migrate.apply.write import PAUSE_SECONDS, Interruption, is_passing
from migrate.clock import Backoff, Clock
from migrate.model import Commits, Decision, Failure, TopicPartition
from migrate.progress import batches, in_background
from migrate.row_table import GroupRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import answer_of_each

READ_CHUNK = 500
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
    """Yield the answers of a chunk at a time, while the next is being read; a `Failure` of all others ends it."""
    under_way: Future[CommitAnswers] | None = None
    try:
        admin = admin.renewed()
        for chunk in batches(groups, READ_CHUNK):
            read = under_way.result() if under_way else None
            under_way = in_background(partial(_read, admin, chunk), "reading back")
            if read is not None:
                yield read
        if under_way:
            yield under_way.result()
    except Exception as error:
        # Whatever broke: what was written before must be reported.
        yield Failure("NO_ANSWER", no_answer(error).message, retriable=True)


def _read(admin: ClusterAdmin, groups: Sequence[str]) -> CommitAnswers:
    return answer_of_each(groups, admin.commits(groups))


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
        self._results: dict[str, tuple[RowResult, ...]] = {}

    def take(self, read: CommitAnswers) -> None:
        """Judge and note what was read of some groups."""
        for group, commits in read.items():
            results = self._results[group] = self._judged(group, commits)
            if isinstance(commits, Failure) or self._gap:
                continue
            try:
                self._note(group, commits, results)
            except JournalLost as error:
                self._lost(error)

    def results(self) -> tuple[RowResult, ...]:
        """Return one result for each row of the plan, in its order; call it when all is taken."""
        judged = (self._results.get(group) or self._judged(group, None) for group in self._groups)
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

    def _judged(self, group: str, commits: Commits | Failure | None) -> tuple[RowResult, ...]:
        answers = self._answers.get(group)
        if answers is not None:
            answers = _with_doubt(answers, [traces[group] for traces in self._histories if group in traces])
        return tuple(group_results(self._assessment, self._groups[group], answers, commits, True))

    def _note(self, group: str, commits: Commits, results: Sequence[RowResult]) -> None:
        rows, traces = self._assessment.plan.groups()[group], self._histories[0]
        if proven := proven_by(rows, self._answers.get(group, {}), traces.get(group), commits):
            self._journal.outcome(group, proven)
        compared = [result for result in results if result.status is not RowStatus.SKIPPED]
        offsets = {result.target_partition: result.seen_offset for result in compared}
        self._journal.read_back(group, all(result.status in _GOOD for result in compared), offsets)


def proven_by(
    rows: GroupRows, answers: Mapping[TopicPartition, Answer], trace: GroupTrace | None, commits: Commits
) -> dict[TopicPartition, Answer]:
    """Return what a reading shows in place of the rows that this run or an earlier one had no certain answer for."""
    if trace is None and not any(isinstance(answer, Failure) for answer in answers.values()):
        return {}
    proven: dict[TopicPartition, Answer] = {}
    for row in to_write(rows):
        answer, partition = answers.get(row.target_partition), row.target_partition
        earlier = trace is not None and trace.is_in_doubt(partition)
        unknown = answer.outcome_unknown or earlier if isinstance(answer, Failure) else answer is None and earlier
        if unknown and is_committed_as_planned(row, commits) and not row.needs_acknowledgement:
            proven[partition] = REMOVED if row.decision is Decision.REMOVE else SET
    return proven


def _with_doubt(
    answers: Mapping[TopicPartition, Answer], traces: Sequence[GroupTrace]
) -> Mapping[TopicPartition, Answer]:
    """Return the answers; a failure for sure is unknown where an earlier run's try may have been written."""
    if not traces:
        return answers
    return {
        partition: replace(answer, outcome_unknown=True)
        if isinstance(answer, Failure) and any(trace.is_in_doubt(partition) for trace in traces)
        else answer
        for partition, answer in answers.items()
    }

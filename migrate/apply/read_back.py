"""Reads groups back after they were written, judges each row by what is there, and notes it in the journal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from migrate.apply.write import PAUSE_SECONDS, Interruption, Written, is_passing, no_answer
from migrate.clock import Backoff, Clock
from migrate.commit_table import commits_at
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.progress import batches
from migrate.row_table import GroupRows
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.groups import answer_of_each

READ_CHUNK = 500
_NOT_ASKED = Failure("NOT_READ", "it was not asked for")
_GOOD = (RowStatus.SET, RowStatus.REMOVED, RowStatus.ALREADY, RowStatus.KEPT, RowStatus.MOVED_ON)


def read_commits(
    admin: ClusterAdmin,
    groups: Sequence[str],
    clock: Clock,
    timeout_seconds: float,
    advance: Callable[[int], None] = lambda done: None,
) -> dict[str, Commits | Failure]:
    """Read groups as `reading` does, and return all answers."""
    return dict(chain.from_iterable(read.items() for read in reading(admin, groups, clock, timeout_seconds, advance)))


def reading(
    admin: ClusterAdmin,
    groups: Sequence[str],
    clock: Clock,
    timeout_seconds: float,
    advance: Callable[[int], None] = lambda done: None,
) -> Iterator[dict[str, Commits | Failure]]:
    """Read groups with a fresh client, and again what failed in passing; yield what is read, each group once.

    `advance` is called with how many are read. Never raises because a client or cluster is gone: what was written
    before must be reported. An interrupt ends it after the reading that is under way.
    """
    failures: dict[str, Failure] = {}
    left = list(groups)
    backoff = None
    with Interruption() as interrupted:
        while True:
            try:
                reader = admin.renewed()
                for chunk in batches(left, READ_CHUNK):
                    answers = answer_of_each(chunk, reader.commits(chunk))
                    failures |= {g: a for g, a in answers.items() if isinstance(a, Failure) and is_passing(a)}
                    read = {group: answer for group, answer in answers.items() if answer is not failures.get(group)}
                    left = [group for group in left if group not in read]
                    advance(len(groups) - len(left))
                    yield read
            except Exception as error:
                lost = Failure("NO_ANSWER", no_answer(error).message, retriable=True)
                # Why a single group could not be read says more than that the client broke later.
                failures = {**dict.fromkeys(left, lost), **failures}
            backoff = backoff or Backoff(clock, *PAUSE_SECONDS, timeout_seconds)
            if not left or backoff.is_over or interrupted:
                yield {group: failures[group] for group in left}
                return
            backoff.pause()


def note_read_back(
    assessment: Assessment,
    written: Written,
    reads: Iterable[Mapping[str, Commits | Failure]],
    histories: Sequence[Mapping[str, GroupTrace]],
    journal: JournalWriter,
) -> tuple[tuple[RowOutcome, ...], str]:
    """Judge each row by what was read of its group, and note it in the journal, as soon as the group was read.

    A run that is killed while it waits for the last groups has the others on disk as read back. Returns one outcome for
    each row of the plan, in its order, and which part of the journal is missing, "" for none. `histories` are what this
    journal tells of earlier runs, and what the undone plan's tells of rollbacks.
    """
    assessed = {group.group: group for group in assessment.groups}
    outcomes: dict[str, tuple[RowOutcome, ...]] = {}
    gap = written.journal_gap

    def judged(name: str, commits: Commits | Failure | None) -> tuple[RowOutcome, ...]:
        traces = [traces[name] for traces in histories if name in traces]
        return group_outcomes(assessment, assessed[name], written.answers.get(name), commits, traces)

    for read in reads:
        outcomes |= {name: judged(name, commits) for name, commits in read.items()}
        whole = {name: commits for name, commits in read.items() if not isinstance(commits, Failure)}
        try:
            for name, commits in whole.items() if not gap else ():
                answers = written.answers.get(name, {})
                if proven := proven_by(assessment.plan.groups()[name], answers, histories[0].get(name), commits):
                    journal.outcome(name, proven)
                compared = [outcome for outcome in outcomes[name] if outcome.status is not RowStatus.SKIPPED]
                offsets = {outcome.target_partition: outcome.seen for outcome in compared}
                journal.read_back(name, all(outcome.status in _GOOD for outcome in compared), offsets)
            if not gap:
                journal.sync()
        except JournalLost as error:
            gap = f"what was read back, and how this run ended ({error})"
    return tuple(chain.from_iterable(outcomes.get(name) or judged(name, None) for name in assessed)), gap


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

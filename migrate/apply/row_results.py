"""What became of each row of a plan: from what was found, what the cluster answered, and what was read back. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from migrate.apply.assess import REFUSED, Assessment, GroupAssessment
from migrate.apply.attempt import Answer
from migrate.apply.drift import committed, is_committed_as_planned, offset_text
from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN
from migrate.apply.outcome import is_as_before, is_as_planned
from migrate.model import Commits, Decision, Failure, Row, TopicPartition
from migrate.row_table import GroupRows


class RowStatus(StrEnum):
    """What happened to a row. `planned`: would be written, or was not written because others refused.

    `moved-on`: an earlier run set and read it back, and it is elsewhere now; `verify` says whether consumers did that.
    """

    SET = "set"
    REMOVED = "removed"
    ALREADY = "already"
    MOVED_ON = "moved-on"
    FAILED = "failed"
    UNKNOWN = "unknown"
    LEFT_OUT = "left-out"
    PLANNED = "planned"
    KEPT = "kept"
    SKIPPED = "skipped"


class RowResult(NamedTuple):
    """One row's end. `seen_offset` is the target's committed offset as last read, None for none or unread.

    `acknowledged` says that the cluster answered this run's write with success, whatever is committed now. A tuple: a
    run has as many as its plan has rows.
    """

    key: tuple[str, str, int]
    target_partition: TopicPartition
    status: RowStatus
    error: str = ""
    seen_offset: int | None = None
    acknowledged: bool = False


def results_of(
    assessment: Assessment,
    answers: Mapping[str, Mapping[TopicPartition, Answer]],
    read_back: Mapping[str, Commits | Failure],
    proceed: bool,
) -> tuple[RowResult, ...]:
    """Return one result for each row of the plan, in its order."""
    return tuple(
        result
        for group in assessment.groups
        for result in group_results(assessment, group, answers.get(group.group), read_back.get(group.group), proceed)
    )


def group_results(
    assessment: Assessment,
    group: GroupAssessment,
    answers: Mapping[TopicPartition, Answer] | None,
    after: Commits | Failure | None,
    proceed: bool,
) -> Iterable[RowResult]:
    """Return one result for each row of a group, in the plan's order.

    `answers` are the cluster's, None where nothing was sent; `after` is what was read back, None where nothing was.
    `proceed` is False where other groups are refused, so that this one was not written.
    """
    rows, commits = assessment.plan.groups()[group.group], assessment.target_commits.get(group.group, {})
    pending = set(GroupRows.of(group.pending).target_partitions()) if group.pending else ()

    def result(row: Row) -> RowResult:
        if answers is not None and row.target_partition in pending:
            return _judge(row, answers.get(row.target_partition), after)
        now = committed(row, commits)
        if row.decision is Decision.SKIP:
            return RowResult(row.key, row.target_partition, RowStatus.SKIPPED, "", now)
        if group.fate in REFUSED:
            error = "; ".join(_own_reasons(row, group.reasons))
            return RowResult(row.key, row.target_partition, RowStatus.LEFT_OUT, error, now)
        if row.decision is Decision.KEEP:
            return _judge_untouched(row, RowStatus.KEPT, now, after)
        if row.target_partition in pending:
            error = "" if proceed else "not written: other groups are refused"
            return RowResult(row.key, row.target_partition, RowStatus.PLANNED, error, now)
        status = RowStatus.ALREADY if is_committed_as_planned(row, commits) else RowStatus.MOVED_ON
        return _judge_untouched(row, status, now, after)

    return map(result, rows)


def _judge_untouched(row: Row, status: RowStatus, before: int | None, commits: Commits | Failure | None) -> RowResult:
    """Return what became of a row that was not written: as found before (`status`), unless the read-back differs."""
    error, now = "", before
    if isinstance(commits, Failure):
        error, now = f"{status}, but it could not be read back: {commits}", None
        status = RowStatus.UNKNOWN
    elif commits is not None:
        commit = commits.get(row.target_partition)
        now = None if commit is None else commit.offset
        # `before` is what was found just now: a consumer that has moved on since the plan was judged by then.
        as_planned = is_as_before(row, commit) if row.decision is Decision.KEEP else is_as_planned(row, commit)
        if not as_planned and now != before:
            had, has = ("no offset" if offset is None else str(offset) for offset in (before, now))
            where = {RowStatus.KEPT: "to be kept", RowStatus.MOVED_ON: "moved on"}.get(status, "already")
            error = f"was {where} at {had}, and was read back at {has}: something else commits to this group"
            status = RowStatus.FAILED
    return RowResult(row.key, row.target_partition, status, error, now)


def _own_reasons(row: Row, reasons: Sequence[str]) -> Sequence[str]:
    """Return the reasons that name this row, or the first of its group's where none does."""
    names = (row.subject, str(row.target_partition))
    own = [reason for reason in reasons if any(reason.startswith((f"{n}:", f"{n} ")) for n in names)]
    return own or reasons[:1]


def what_became(row: Row, answer: str, is_as_planned: bool | None) -> RowStatus:
    """Return what became of a row that was written: in this run, or as a journal records it.

    `answer` is the cluster's, in the journal's words (`history.SET`, `REMOVED`, `FAILED` for sure, `UNKNOWN`).
    `is_as_planned` says whether what was read back is what the row plans, None where it was not read back. Of a row
    that needs an acknowledgement no reading is proof: an earlier write may still become visible.
    """
    is_acknowledged = answer in (SET, REMOVED)
    unproven = RowStatus.FAILED if answer == FAILED else RowStatus.UNKNOWN
    if is_as_planned is None or (row.needs_acknowledgement and not is_acknowledged):
        return unproven
    if is_as_planned:
        done = RowStatus.REMOVED if row.decision is Decision.REMOVE else RowStatus.SET
        return RowStatus.ALREADY if answer == FAILED else done
    return RowStatus.FAILED if is_acknowledged else unproven


def _judge(row: Row, answer: Answer | None, commits: Commits | Failure | None) -> RowResult:
    """Return what became of a row that was written, from the answer and the read-back together."""
    word, trouble = SET, ""
    if isinstance(answer, Failure) and not answer.outcome_unknown:
        word, trouble = FAILED, str(answer)
    elif not isinstance(answer, str):
        word, trouble = UNKNOWN, f"no certain answer ({answer})" if answer else "no answer"
    now, error = None, trouble
    if commits is None or isinstance(commits, Failure):
        status = what_became(row, word, None)
        if status is RowStatus.UNKNOWN:
            error = f"{trouble or 'written'}, but it could not be read back: {commits or 'not asked'}"
    else:
        commit = commits.get(row.target_partition)
        now, as_planned = None if commit is None else commit.offset, is_as_planned(row, commit)
        status = what_became(row, word, as_planned)
        if as_planned and not (row.needs_acknowledgement and trouble):
            error = ""
        elif row.needs_acknowledgement and trouble:
            why = f"read back {offset_text(now)}, which does not prove it: an earlier write may still become visible"
            error = f"{trouble}; {why}. Run the same command again"
        elif not trouble:
            where = f"{_where(row, now)} instead of {offset_text(row.target_offset)}"
            error = f"written, but read back {where}: something else commits to this group"
        elif word == UNKNOWN:
            error = f"{trouble}; read back {_where(row, now)}: run the same command again"
    return RowResult(row.key, row.target_partition, status, error, now, isinstance(answer, str))


def _where(row: Row, now: int | None) -> str:
    if now is None:
        return "no offset"
    return f"{now} with other metadata" if now == row.target_offset else str(now)

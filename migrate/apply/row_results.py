"""What became of each row of a plan: from what was found, what the cluster answered, and what was read back. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrate.apply.assess import REFUSED, Assessment
from migrate.apply.drift import committed, is_kept, stands
from migrate.apply.write import Answer
from migrate.model import Commits, Decision, Failure, Row, TopicPartition


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


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row's end. `seen_offset` is the target's committed offset as last read, None for none or unread.

    `acknowledged` says that the cluster answered this run's write with success, whatever is committed now.
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
        if row.decision is Decision.SKIP:
            status = RowStatus.SKIPPED
        elif fate in REFUSED:
            status = RowStatus.LEFT_OUT
        elif row.decision is Decision.KEEP:
            results.append(_judge_untouched(row, RowStatus.KEPT, now, seen.get(row.group)))
            continue
        elif row.key not in pending:
            found = assessment.target_commits.get(row.group, {})
            status = RowStatus.ALREADY if stands(row, found) else RowStatus.MOVED_ON
            results.append(_judge_untouched(row, status, now, seen.get(row.group)))
            continue
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


def _judge_untouched(row: Row, status: RowStatus, before: int | None, commits: Commits | Failure | None) -> RowResult:
    """Return what became of a row that was not written: as found before (`status`), unless the read-back differs."""

    def result(status: RowStatus, error: str, seen: int | None) -> RowResult:
        return RowResult(row.key, row.target_partition, status, error, seen)

    if commits is None:
        return result(status, "", before)
    if isinstance(commits, Failure):
        why = f"{commits.code}: {commits.message}"
        return result(RowStatus.UNKNOWN, f"{status}, but it could not be read back: {why}", None)
    now = committed(row, commits)
    # `before` is what was found just now: a consumer that has moved on since the plan was judged by then.
    as_planned = is_kept(row, commits) if row.decision is Decision.KEEP else stands(row, commits)
    if as_planned or now == before:
        return result(status, "", now)
    had, has = ("no offset" if offset is None else str(offset) for offset in (before, now))
    where = {RowStatus.KEPT: "to be kept", RowStatus.MOVED_ON: "moved on"}.get(status, "already")
    error = f"was {where} at {had}, and was read back at {has}"
    return result(RowStatus.FAILED, f"{error}: something else commits to this group", now)


def _own_reasons(row: Row, reasons: Sequence[str]) -> Sequence[str]:
    """Return the reasons that name this row, or the first of its group's where none does."""
    names = (row.subject, str(row.target_partition))
    own = [reason for reason in reasons if any(reason.startswith((f"{n}:", f"{n} ")) for n in names)]
    return own or reasons[:1]


def _judge(row: Row, answer: Answer | None, commits: Commits | Failure | None) -> RowResult:
    """Return what became of a row that was written, from the answer and the read-back together."""

    def result(status: RowStatus, error: str = "", seen: int | None = None) -> RowResult:
        return RowResult(row.key, row.target_partition, status, error, seen, isinstance(answer, str))

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
    if row.needs_acknowledgement and told:
        where = "none" if seen is None else str(seen)
        why = f"{told}; read back {where}, which does not prove it: an earlier write may still become visible"
        return result(RowStatus.FAILED if failed else RowStatus.UNKNOWN, f"{why}. Run the same command again", seen)
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

"""What became of an offset: from its row, what the journal says of it, and what is committed now. Pure.

`state_of` is the one place where these three are put together. What a command prints is a word for a state: `RowStatus`
of an apply or a rollback, and of the report on it; `migrate.apply.verify.Standing` of a verification.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN, GroupTrace, JournalState
from migrate.commit_table import commits_at
from migrate.model import Commit, Commits, Decision, Failure, Row, TopicPartition

Answer = str | Failure

_SET, _REMOVE, _KEEP = Decision.SET, Decision.REMOVE, Decision.KEEP


class State(StrEnum):
    """Where a row of a plan is.

    `as-planned`: just what the plan sets, removes or keeps is committed. `moved-on`: an earlier run read its group back
    as planned, and it is elsewhere now. `pending`: what stood there when the plan was made still does. `changed`: it is
    anywhere else. `unknown`: it could not be read, or a write that nobody acknowledged may still become visible.
    `not-held`: the plan writes and keeps nothing there.
    """

    AS_PLANNED = "as-planned"
    MOVED_ON = "moved-on"
    PENDING = "pending"
    CHANGED = "changed"
    UNKNOWN = "unknown"
    NOT_HELD = "not-held"


def state_of(row: Row, trace: GroupTrace | None, commit: Commit | Failure | None) -> State:
    """Return where a row is; `trace` is what its command did to the group, `commit` what is committed for it now.

    Without a record of our own read-back, an offset beyond the planned one is somebody else's.
    """
    decision = row.decision
    if decision is _KEEP:
        planned, metadata = row.target_prior, row.target_prior_metadata
    elif decision is _SET or decision is _REMOVE:
        planned, metadata = row.target_offset, row.target_metadata
    else:
        return State.NOT_HELD
    if isinstance(commit, Failure):
        return State.UNKNOWN
    if row.needs_acknowledgement and not (trace and trace.is_certain(row.target_partition)):
        # What is committed now may be what an earlier, unanswered write has not replaced yet.
        return State.UNKNOWN
    offset = None if commit is None else commit.offset
    if offset == planned and (commit is None or commit.metadata == metadata):
        return State.AS_PLANNED
    if trace is not None and trace.read_back and _has_moved_on(row, trace, planned, offset):
        return State.MOVED_ON
    return State.PENDING if is_as_before(row, commit) else State.CHANGED


def _has_moved_on(row: Row, trace: GroupTrace, planned: int | None, offset: int | None) -> bool:
    """True if what was read back once, and is not there any more, may be a consumer's or a later plan's doing."""
    if row.decision is not _KEEP and row.target_partition not in trace.planned:
        return False
    if row.decision is _REMOVE:
        # It was removed and read back: what is there now is a later plan's, or a consumer's.
        return trace.results.get(row.target_partition) == REMOVED
    # At the offset with other metadata: a consumer that has started since commits where it is.
    return offset is not None and planned is not None and offset >= planned


class Noted(StrEnum):
    """What the journal says of one row; NOTHING where there is no journal, or nothing was to be written.

    READ_BACK is the only proof that the row was at its planned offset: a fresh client read its whole group back as
    planned, rows that were there already included.
    """

    NOTHING = ""
    READ_BACK = "set and read back"
    NOT_READ_BACK = "not read back as planned"
    NO_WRITE = "no write"


NOTED_WORDS = {
    Noted.NOTHING: "no journal of this plan is beside it",
    Noted.READ_BACK: "the journal says that it was set and read back",
    Noted.NOT_READ_BACK: "the journal does not say that it was read back as planned",
    Noted.NO_WRITE: "the journal holds no write to it",
}


def noted(row: Row, trace: GroupTrace | None, journal: JournalState) -> Noted:
    """Return what the journal says of a row that was to be written; `trace` is what it tells of an apply to its group.

    Offsets alone cannot tell a row that apply set from one that another client moved to the same place or beyond it.
    """
    if not journal.events or not (row.decision is _SET or row.decision is _REMOVE):
        return Noted.NOTHING
    if trace is not None and trace.read_back:
        return Noted.READ_BACK
    # A group that was saved and not reached is one that apply was to write.
    is_begun = row.group in journal.prior if trace is None else row.target_partition in trace.planned
    return Noted.NOT_READ_BACK if is_begun else Noted.NO_WRITE


def found_at(commits: Commits | Failure, partitions: Sequence[TopicPartition]) -> Sequence[Commit | Failure | None]:
    """Return what is committed on each of these partitions; the failure for each where the group was not read."""
    return [commits] * len(partitions) if isinstance(commits, Failure) else commits_at(commits, partitions)


def is_as_planned(row: Row, commit: Commit | None) -> bool:
    """True if a commit is just what the row plans: offset and metadata (not the leader epoch), or None for nothing."""
    if commit is None or row.target_offset is None:
        return commit is None and row.target_offset is None
    return commit.offset == row.target_offset and commit.metadata == row.target_metadata


def committed(row: Row, commits: Commits) -> int | None:
    """Return what the target has committed for a row now; None for nothing."""
    commit = commits.get(row.target_partition)
    return None if commit is None else commit.offset


def is_committed_as_planned(row: Row, commits: Commits) -> bool:
    """True if what is committed for a row is just what it plans."""
    return is_as_planned(row, commits.get(row.target_partition))


def is_as_before(row: Row, commit: Commit | None) -> bool:
    """True if a commit is just what the plan found there, or None for nothing."""
    if commit is None or row.target_prior is None:
        return commit is None and row.target_prior is None
    return commit.offset == row.target_prior and commit.metadata == row.target_prior_metadata


class RowStatus(StrEnum):
    """The word for a row's state after a run (`status_of`), or for what became of it by its journal.

    `planned`: would be written, or was not written because others refused. `moved-on`: an earlier run set and read it
    back, and it is elsewhere now; `verify` says whether consumers did that. The last four are a report's alone:
    `not-written` is what the journal tells nothing of, the others are rows that a rollback takes back.
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
    NOT_WRITTEN = "not-written"
    RESTORED = "restored"
    NOT_RESTORED = "not-restored"
    UNDO_UNKNOWN = "undo-unknown"


_WORDS = {State.PENDING: RowStatus.PLANNED, State.MOVED_ON: RowStatus.MOVED_ON, State.CHANGED: RowStatus.FAILED}


def status_of(row: Row, state: State, answer: str | None) -> RowStatus:
    """Return the word for a row's state.

    `answer` is the cluster's to the last write of the row, in the journal's words (`history.SET`, `REMOVED`, `FAILED`
    for sure, `UNKNOWN`); None where it was not written. A write that is not read back as planned has failed, whatever
    is there, unless nobody knows what became of it.
    """
    if state is State.NOT_HELD:
        return RowStatus.SKIPPED if row.decision is Decision.SKIP else RowStatus.LEFT_OUT
    if row.decision is _KEEP and state in (State.AS_PLANNED, State.MOVED_ON):
        return RowStatus.KEPT
    if state is State.AS_PLANNED:
        if answer is None or answer == FAILED:
            return RowStatus.ALREADY
        return RowStatus.REMOVED if row.decision is _REMOVE else RowStatus.SET
    if state is State.UNKNOWN:
        return RowStatus.FAILED if answer == FAILED else RowStatus.UNKNOWN
    if answer is None:
        return _WORDS[state]
    return RowStatus.UNKNOWN if answer == UNKNOWN else RowStatus.FAILED


class RowOutcome(NamedTuple):
    """One row's end. `seen` is the target's committed offset as last read, None for none or unread.

    `detail` says why it is not as planned, "" where it is. `acknowledged` says that the cluster answered this run's
    write with success, whatever is committed now. A tuple: a run has as many as its plan has rows.
    """

    key: tuple[str, str, int]
    target_partition: TopicPartition
    status: RowStatus
    detail: str = ""
    seen: int | None = None
    acknowledged: bool = False


def untouched(row: Row, before: Commit | None, after: Commit | Failure | None) -> RowOutcome:
    """Return what became of a row that was done already, or kept: as found `before`, unless the read-back differs."""
    # `before` is what was found just now: a consumer that has moved on since the plan was judged by then.
    is_there = row.decision is _KEEP or is_as_planned(row, before)
    status = status_of(row, State.AS_PLANNED if is_there else State.MOVED_ON, None)
    if isinstance(after, Failure):
        detail = f"{status}, but it could not be read back: {after}"
        return RowOutcome(row.key, row.target_partition, RowStatus.UNKNOWN, detail)
    found, now = offset_of(before), offset_of(after)
    if now == found or (is_as_before(row, after) if row.decision is _KEEP else is_as_planned(row, after)):
        return RowOutcome(row.key, row.target_partition, status, "", now)
    where = {RowStatus.KEPT: "to be kept", RowStatus.MOVED_ON: "moved on"}.get(status, "already")
    had, has = ("no offset" if offset is None else str(offset) for offset in (found, now))
    detail = f"was {where} at {had}, and was read back at {has}: something else commits to this group"
    return RowOutcome(row.key, row.target_partition, RowStatus.FAILED, detail, now)


def written(row: Row, answer: Answer | None, is_in_doubt: bool, after: Commit | Failure | None) -> RowOutcome:
    """Return what became of a row that was written, from the cluster's answer and the read-back together.

    A failure for sure is unknown where an earlier run's try may have been written (`is_in_doubt`).
    """
    partition, word, trouble = row.target_partition, SET, ""
    if isinstance(answer, Failure) and not (answer.outcome_unknown or is_in_doubt):
        word, trouble = FAILED, str(answer)
    elif not isinstance(answer, str):
        word, trouble = UNKNOWN, f"no certain answer ({answer})" if answer else "no answer"
    trace = GroupTrace({partition: row.target_offset}, {partition: word}) if row.needs_acknowledgement else None
    state = state_of(row, trace, after)
    status, detail, now = status_of(row, state, word), trouble, None
    if isinstance(after, Failure):
        if status is RowStatus.UNKNOWN:
            again = "nor could it be read back" if str(after) in trouble else f"but it could not be read back: {after}"
            detail = f"{trouble or 'written'}, {again}"
    else:
        now = offset_of(after)
        if state is State.AS_PLANNED:
            detail = ""
        elif row.needs_acknowledgement and trouble:
            why = f"read back {offset_text(now)}, which does not prove it: an earlier write may still become visible"
            detail = f"{trouble}; {why}. Run the same command again"
        elif not trouble:
            where = f"{_where(row, now)} instead of {offset_text(row.target_offset)}"
            detail = f"written, but read back {where}: something else commits to this group"
        elif word == UNKNOWN:
            detail = f"{trouble}; read back {_where(row, now)}: run the same command again"
    return RowOutcome(row.key, partition, status, detail, now, isinstance(answer, str))


def offset_text(offset: int | None) -> str:
    """Return a committed offset in words: "none" where there is none."""
    return "none" if offset is None else str(offset)


def offset_of(commit: Commit | None) -> int | None:
    """Return a commit's offset; None for no commit."""
    return None if commit is None else commit.offset


def _where(row: Row, now: int | None) -> str:
    if now is None:
        return "no offset"
    return f"{now} with other metadata" if now == row.target_offset else str(now)

"""What became of an offset: from its row, what the journal says of it, and what is committed now. Pure.

`state_of` is the one place where these three are put together. What a command prints is a word for a state.
"""

from enum import StrEnum

from migrate.apply.history import FAILED, REMOVED, SET, GroupTrace, JournalState
from migrate.model import Commit, Decision, Failure, Row

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
    NOT_READ_BACK = "set, but not read back as planned"
    FAILED = "not set"
    UNKNOWN = "perhaps set"
    NOT_REACHED = "saved, but not written"
    NO_WRITE = "no write"


NOTED_WORDS = {
    Noted.NOTHING: "no journal of this plan is beside it",
    Noted.READ_BACK: "the journal says that it was set and read back",
    Noted.NOT_READ_BACK: "the journal says that it was set, but not that its group was read back as planned",
    Noted.FAILED: "the journal says that it could not be set",
    Noted.UNKNOWN: "the journal has no certain answer to the write of it",
    Noted.NOT_REACHED: "the journal says that apply ended before it wrote this group",
    Noted.NO_WRITE: "the journal tells of no write to it",
}


def noted(row: Row, trace: GroupTrace | None, journal: JournalState) -> Noted:
    """Return what the journal says of a row that was to be written; `trace` is what it tells of an apply to its group.

    Offsets alone cannot tell a row that apply set from one that somebody else moved to the same place or beyond it.
    """
    if not journal.events or not (row.decision is _SET or row.decision is _REMOVE):
        return Noted.NOTHING
    if trace is None:
        return Noted.NOT_REACHED if row.group in journal.prior else Noted.NO_WRITE
    if trace.read_back:
        return Noted.READ_BACK
    if row.target_partition not in trace.planned:
        return Noted.NO_WRITE
    result = trace.results.get(row.target_partition)
    if result in (SET, REMOVED):
        return Noted.NOT_READ_BACK
    return Noted.FAILED if result == FAILED else Noted.UNKNOWN


def is_as_planned(row: Row, commit: Commit | None) -> bool:
    """True if a commit is just what the row plans: offset and metadata (not the leader epoch), or None for nothing."""
    if commit is None or row.target_offset is None:
        return commit is None and row.target_offset is None
    return commit.offset == row.target_offset and commit.metadata == row.target_metadata


def is_as_before(row: Row, commit: Commit | None) -> bool:
    """True if a commit is just what the plan found there, or None for nothing."""
    if commit is None or row.target_prior is None:
        return commit is None and row.target_prior is None
    return commit.offset == row.target_prior and commit.metadata == row.target_prior_metadata

"""The journal of `follow`: beside its mandate, folded into a memory while it is written, and kept short.

The memory has each group's first prior state, and its own last writes. Invariants:
- The first prior state of each place counts, whatever is saved later: that may be what we set ourselves.
- A write that was begun and has no certain answer may stand there: it stays among those that are ours until a later one
  is certain.
- A write counts from when it was begun, and only once it is certain: one that may not have been made is no refresh.
  Where a reading does not tell which of several tries was made, the oldest counts.
- What was saved, begun and answered is in the memory as soon as it is on its way to disk: one folding serves both.
- The journal is rewritten from the memory once it has grown well beyond it: `snapshot` gives few events that fold into
  the same memory. The new file is locked before it takes the old one's place, so that there is one writer at any time.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrate.apply.history import (
    FAILED,
    LEFT,
    REMOVED,
    ROLLBACK,
    SET,
    JournalState,
    Offsets,
    answers_of,
    by_partition,
    metadata_of,
    offsets_of,
    unsealed,
)
from migrate.apply.history import backed_up as commits_of
from migrate.apply.journal import Journal, JournalLost, JournalWriter, NameOnTarget, journal_content, write_all
from migrate.clock import iso, ms_of
from migrate.errors import UnreadablePlan
from migrate.model import UNREAD_METADATA, Commit, Commits, TopicPartition
from migrate.whole_file import sync_folder, temporary_beside

Event = dict[str, Any]


def carries_metadata(commit: Commit) -> bool:
    """True if a commit has metadata that was read: what could not be read is no reason to ask Java again."""
    return commit.metadata not in ("", UNREAD_METADATA)


def same(standing: Commit | None, other: Commit | None) -> bool:
    """True if both are nothing, or one offset with the same metadata; leader epochs are never ours to compare."""
    if standing is None or other is None:
        return standing is other
    return (standing.offset, standing.metadata) == (other.offset, other.metadata)


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """What we have written in one place. `certain` is the last write that was acknowledged, None where none was.

    `doubtful` are those begun since without a certain answer, oldest first; `attempt` is the one under way.
    `written_ms` is when the certain one was begun, `doubtful_ms` the oldest in doubt, `attempt_ms` the one under way:
    in ms since 1970, 0 where there is none.
    """

    certain: Commit | None = None
    doubtful: tuple[Commit, ...] = ()
    attempt: Commit | None = None
    written_ms: int = 0
    doubtful_ms: int = 0
    attempt_ms: int = 0

    @property
    def since_ms(self) -> int:
        """When the oldest of the writes that may stand there was begun, in ms since 1970; 0 where none does."""
        if self.certain is not None:
            return self.written_ms
        return self.doubtful_ms if self.doubtful else self.attempt_ms

    @property
    def last(self) -> Commit | None:
        """The newest write that stands there, or may; None where none does."""
        return (self.all or (None,))[-1]

    @property
    def has_doubt(self) -> bool:
        """True if a write of ours after the certain one may stand there, now or later."""
        return self.last is not self.certain

    @property
    def all(self) -> tuple[Commit, ...]:
        """All writes of ours that may stand there, oldest first."""
        return tuple(c for c in (self.certain, *self.doubtful, self.attempt) if c is not None)

    def is_ours(self, standing: Commit | None) -> bool:
        """True if what stands there is what we wrote, or may have written."""
        return standing is not None and any(same(standing, own) for own in self.all)

    def is_proven_by(self, standing: Commit | None, prior: Commit | None) -> bool:
        """True if what stands there shows that the newest write in doubt was made.

        `prior` stood there before our first. What looked the same before proves nothing: a refresh that was not made
        would count as made.
        """
        before = (prior if self.certain is None else None, *self.all[:-1])
        return (
            self.has_doubt
            and standing is not None
            and same(standing, self.last)
            and not any(same(standing, commit) for commit in before)
        )

    def begun(self, commit: Commit, now_ms: int) -> "OwnWrites":
        """Return this with a write under way; one before it that was never answered is in doubt."""
        return replace(self.in_doubt(), attempt=commit, attempt_ms=now_ms)

    def in_doubt(self) -> "OwnWrites":
        """Return this with the write under way, if there is one, among those in doubt."""
        if self.attempt is None:
            return self
        others = tuple(c for c in self.doubtful if not same(c, self.attempt))
        since_ms = self.doubtful_ms if self.doubtful else self.attempt_ms
        return replace(self, doubtful=(*others, self.attempt), attempt=None, doubtful_ms=since_ms, attempt_ms=0)

    def answered(self, status: str) -> "OwnWrites":
        """Return this after the answer to the write under way, or after a reading that settles what is in doubt."""
        if status in (SET, REMOVED):
            doubt_ms = self.doubtful_ms if self.doubtful else self.written_ms
            return OwnWrites(self.last, written_ms=doubt_ms if self.attempt is None else self.attempt_ms)
        if status == FAILED:
            return replace(self, attempt=None, attempt_ms=0)
        return self.in_doubt()


@dataclass(frozen=True)
class GroupMemory:
    """One group: what stood in each place before our first write, our writes, and why it is left alone ("" if not)."""

    prior: Mapping[TopicPartition, Commit | None] = field(default_factory=dict)
    own: Mapping[TopicPartition, OwnWrites] = field(default_factory=dict)
    left: str = ""

    @property
    def has_metadata(self) -> bool:
        """True if something that we wrote, or that stood there first, carries metadata."""
        first = (commit for commit in self.prior.values() if commit is not None)
        return any(map(carries_metadata, (*first, *(c for own in self.own.values() for c in own.all))))

    def written(self) -> dict[TopicPartition, OwnWrites]:
        """Return the places that were, or may have been, written."""
        return {place: own for place, own in self.own.items() if own.all}


UNKNOWN_GROUP = GroupMemory()


class FollowMemory:
    """The memory of one mandate, by group; `take` folds one event of its journal in. `begun` is the newest `begin`."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupMemory] = {}
        self.begun: Event = {}
        self._first: Event = {}
        self._is_ours = True

    def of(self, group: str) -> GroupMemory:
        """Return what is known of a group."""
        return self.groups.get(group, UNKNOWN_GROUP)

    def take(self, event: Mapping[str, Any]) -> None:
        """Fold one event in; those of a rollback, and what says nothing of a group, are passed over."""
        kind = event["event"]
        if kind == "begin":
            self._is_ours = event["command"] != ROLLBACK
            self.begun = dict(event) if self._is_ours else self.begun
            self._first = self._first or self.begun
        elif self._is_ours and kind in ("backup", "intent", "outcome", LEFT):
            group = event["group"]
            self.groups[group] = _FOLDS[kind](self.of(group), event)

    def snapshot(self) -> Iterator[Event]:
        """Yield events that fold into this memory, without time and fingerprint; a group at a time, sorted."""
        # Since when there are writes of ours decides which plans are later ones.
        for begun in [self._first, *([self.begun] if self.begun is not self._first else [])]:
            if begun:
                yield {name: value for name, value in begun.items() if name not in ("crc", "fingerprint")}
        for group, memory in sorted(self.groups.items()):
            yield from _snapshot(group, memory)


def planned_columns(commits: Commits) -> Event:
    """Return what an intent says of commits that are about to be written."""
    places = sorted(commits)
    offsets, metadata = [commits[p].offset for p in places], [commits[p].metadata for p in places]
    return by_partition(places, offset=offsets, metadata=metadata)


def _backed_up(memory: GroupMemory, event: Mapping[str, Any]) -> GroupMemory:
    return replace(memory, prior={**commits_of(event), **memory.prior})


def _intended(memory: GroupMemory, event: Mapping[str, Any]) -> GroupMemory:
    now_ms, metadata, own = ms_of(event["time"]), metadata_of(event), dict(memory.own)
    for place, offset in offsets_of(event).items():
        if offset is not None:  # what takes an offset away is a rollback's
            own[place] = own.get(place, OwnWrites()).begun(Commit(offset, metadata[place]), now_ms)
    return replace(memory, own=own)


def _answered(memory: GroupMemory, event: Mapping[str, Any]) -> GroupMemory:
    answers = {place: status for place, status, _, _ in answers_of(event) if place in memory.own}
    own = {place: memory.own[place].answered(status) for place, status in answers.items()}
    return replace(memory, own={**memory.own, **own})


def _left(memory: GroupMemory, event: Mapping[str, Any]) -> GroupMemory:
    return replace(memory, left=memory.left or str(event["reason"]))


_FOLDS = {"backup": _backed_up, "intent": _intended, "outcome": _answered, LEFT: _left}


def _snapshot(group: str, memory: GroupMemory) -> Iterator[Event]:
    if memory.prior:
        places = sorted(memory.prior)
        stood = [memory.prior[place] for place in places]
        offsets = [None if commit is None else commit.offset for commit in stood]
        metadata = ["" if commit is None else commit.metadata for commit in stood]
        yield {"event": "backup", "group": group, **by_partition(places, offset=offsets, metadata=metadata)}
    # Mostly all places of a group were written at once: then they take two lines.
    stands = [(own.written_ms, place, own.certain) for place, own in memory.own.items() if own.certain is not None]
    for written_ms in sorted({ms for ms, _, _ in stands}):
        certain = {place: commit for ms, place, commit in stands if ms == written_ms}
        when = {"time": iso(written_ms), "group": group}
        yield {"event": "intent", **when, **planned_columns(certain)}
        yield {"event": "outcome", **when, **by_partition(sorted(certain), status=[SET], code=[""], message=[""])}
    for place, own in sorted(memory.own.items()):
        doubts = [(commit, own.doubtful_ms) for commit in own.doubtful]
        for commit, begun_ms in doubts if own.attempt is None else (*doubts, (own.attempt, own.attempt_ms)):
            yield {"event": "intent", "time": iso(begun_ms), "group": group, **planned_columns({place: commit})}
    if memory.left:
        yield {"event": LEFT, "group": group, "reason": memory.left}


# A journal is rewritten when it has grown to twice what was left of it then, and by this much.
LEAST_GROWTH_BYTES = 256 * 1024


def read_memory(path: Path) -> FollowMemory:
    """Return what the journal of a mandate remembers; nothing where there is none.

    Raises `UnreadablePlan` for a damaged line, and as `journal_content` does. A torn last line is dropped.
    """
    memory = FollowMemory()
    *lines, _torn = (journal_content(path) or b"").split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            memory.take(unsealed(line))
        except (ValueError, KeyError, TypeError):
            raise UnreadablePlan(
                f"Line {number} of the journal {path} is damaged.",
                "It says what was backed up and written. Restore the file from a copy; do not delete it.",
            ) from None
    return memory


class FollowJournal(Journal):
    """The journal file of one mandate; what `open` returns is a `FollowWriter`."""

    def writer_of(self, descriptor: int, before: JournalState, name_on_target: NameOnTarget) -> "FollowWriter":
        """Return the writer of a file that is locked."""
        return FollowWriter(self.path, descriptor, self.fingerprint, before, self._now_ms, name_on_target)


class FollowWriter(JournalWriter):
    """Appends events, keeps `memory` in step with them, and makes the journal short again."""

    def __init__(
        self, path: Path, descriptor: int, fingerprint: str, before: JournalState, now_ms: Callable[[], int],
        name_on_target: NameOnTarget,
    ) -> None:  # fmt: skip
        super().__init__(descriptor, fingerprint, before, now_ms, name_on_target)
        self.memory = read_memory(path)
        self._path = path
        self._limit = 0  # a journal of an earlier run may be of any length
        self._commits: Mapping[str, Commits] = {}

    def write(self, event: str, **fields: Any) -> None:
        """Append one event, and fold it in."""
        super().write(event, **fields)
        self.memory.take({"event": event, "time": iso(self._now_ms()), **fields})

    def expect(self, commits: Mapping[str, Commits]) -> None:
        """Say which commits the next intents are about: they name offsets alone, and metadata counts as well."""
        self._commits = commits

    def intend(self, planned: Mapping[str, Offsets]) -> None:
        """Say what is about to be written, with its metadata; durable on return."""
        for group, offsets in planned.items():
            commits = self._commits[group]
            self.write("intent", group=group, **planned_columns({place: commits[place] for place in offsets}))
        self.sync()

    def prove(self, group: str, standing: Mapping[TopicPartition, Commit]) -> None:
        """Say that the newest writes, which had no certain answer, stand there since they were begun."""
        places = sorted(standing)
        self.write("outcome", group=group, **by_partition(places, status=[SET], code=[""], message=[""]))

    def leave(self, group: str, reason: str) -> None:
        """Say that a group is left alone from now on, and why."""
        self.write(LEFT, group=group, reason=reason)

    def shorten(self) -> None:
        """Rewrite the journal from the memory if it has grown enough; raises `JournalLost` where that fails.

        No write may be under way: who writes for us holds the lock of the old file.
        """
        try:
            if os.fstat(self._descriptor).st_size > self._limit:
                self._replace()
                self._limit = 2 * os.fstat(self._descriptor).st_size + LEAST_GROWTH_BYTES
        except OSError as error:
            raise JournalLost(f"the journal cannot be made shorter ({error.strerror})") from error

    def _replace(self) -> None:
        with temporary_beside(self._path) as (descriptor, temporary):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for event in self.memory.snapshot():
                write_all(descriptor, self.line_of(event))
            os.fsync(descriptor)
            temporary.replace(self._path)
            sync_folder(self._path.parent)
            # A copy of the locked descriptor shares its lock, which goes when the last of them is closed.
            old, self._descriptor = self._descriptor, os.dup(descriptor)
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
        with suppress(OSError):
            os.close(old)

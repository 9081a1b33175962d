"""What the journal of a mandate says of a group, and how that journal is kept short.

It is the ordinary journal of the mandate's fingerprint, folded as any other; each pass that writes is a round in it.
Invariants:
- A write that was begun and has no certain answer may stand there: it stays among those that are ours until a later one
  is certain.
- The journal is rewritten once it has grown well beyond what it says: `snapshot` gives few events that fold into the
  same. The new file is locked before it takes the old one's place, so that there is one writer at any time.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.apply.history import NOTHING_DONE, SET, UNKNOWN, GroupTrace, JournalState, by_partition
from migrate.apply.journal import Journal, JournalLost, JournalWriter, NameOnTarget, write_all
from migrate.model import UNREAD_METADATA, Commit, Commits, TopicPartition
from migrate.whole_file import sync_folder, temporary_beside

Event = dict[str, Any]
# A journal is rewritten when it has grown to twice what was left of it then, and by this much.
LEAST_GROWTH_BYTES = 256 * 1024


def carries_metadata(commit: Commit) -> bool:
    """True if a commit has metadata that was read: what could not be read is no reason to ask Java again."""
    return commit.metadata not in ("", UNREAD_METADATA)


def same(standing: Commit | None, other: Commit | None) -> bool:
    """True if both are nothing, or one offset with the same metadata; leader epochs are never ours to compare."""
    if standing is None or other is None:
        return standing is other
    return (standing.offset, standing.metadata) == (other.offset, other.metadata)


@dataclass(frozen=True)
class Followed:
    """What is known of a group by its journal: what stood there first, our own writes, and why it is left alone ("").

    `is_saved` says that what stood there first is known at all; `prior` has no entry where that was nothing.
    """

    prior: Commits = field(default_factory=dict)
    trace: GroupTrace = NOTHING_DONE
    left: str = ""
    is_saved: bool = False

    @classmethod
    def by(cls, state: JournalState, group: str) -> "Followed":
        """Return what a journal says of a group."""
        trace, left = state.applied.get(group, NOTHING_DONE), state.notes.get(group, "")
        return cls(state.prior.get(group, {}), trace, left, group in state.prior)

    @property
    def written(self) -> frozenset[TopicPartition]:
        """The places that were, or may have been, written."""
        return self.trace.written()

    def writes(self, place: TopicPartition) -> tuple[Commit, ...]:
        """Return all writes of ours that may stand there, oldest first."""
        return tuple(commit for commit in self.trace.may_stand(place) if commit is not None)

    def is_ours(self, place: TopicPartition, standing: Commit | None) -> bool:
        """True if what stands there is what we wrote, or may have written."""
        return standing is not None and any(same(standing, own) for own in self.writes(place))

    def may_be_as_before(self, place: TopicPartition) -> bool:
        """True if no write of ours is certain: what stood there first may stand there still."""
        return None in self.trace.may_stand(place)

    @property
    def has_metadata(self) -> bool:
        """True if what was read first, or a write of ours, carries metadata."""
        writes = (commit for place in self.written for commit in self.writes(place))
        return any(map(carries_metadata, (*self.prior.values(), *writes)))


def snapshot(state: JournalState) -> Iterator[Event]:
    """Yield events that fold into what a journal says of groups; a group at a time, sorted."""
    for group in sorted({*state.prior, *state.applied, *state.notes}):
        known = Followed.by(state, group)
        if known.is_saved:
            places = sorted({*known.prior, *known.trace.planned})
            saved = [known.prior.get(place) for place in places]
            offsets = [None if commit is None else commit.offset for commit in saved]
            metadata = ["" if commit is None else commit.metadata for commit in saved]
            columns = by_partition(places, offset=offsets, metadata=metadata)
            yield {"event": "backup", "group": group, **columns}
        stands = {place: known.trace.may_stand(place) for place in known.written}
        for number in range(max(map(len, stands.values()), default=0)):
            layer = {p: c for p, of_place in stands.items() if number < len(of_place) and (c := of_place[number])}
            if layer:
                yield from _round(group, layer, UNKNOWN if number else SET)
        if known.left:
            yield {"event": "note", "group": group, "text": known.left}


def _round(group: str, commits: Mapping[TopicPartition, Commit], status: str) -> Iterator[Event]:
    places = sorted(commits)
    offsets, metadata = [commits[p].offset for p in places], [commits[p].metadata for p in places]
    yield {"event": "intent", "group": group, **by_partition(places, offset=offsets, metadata=metadata)}
    answer = by_partition(places, status=[status], code=[""], message=[""])
    yield {"event": "outcome", "group": group, **answer}


class FollowJournal(Journal):
    """The journal file of one mandate; what `open` returns is a `FollowWriter`."""

    def writer_of(self, descriptor: int, before: JournalState, name_on_target: NameOnTarget) -> "FollowWriter":
        """Return the writer of a file that is locked."""
        return FollowWriter(self.path, descriptor, self.fingerprint, before, self._now_ms, name_on_target)


class FollowWriter(JournalWriter):
    """Appends events, and makes the journal short again."""

    def __init__(
        self, path: Path, descriptor: int, fingerprint: str, before: JournalState, now_ms: Callable[[], int],
        name_on_target: NameOnTarget,
    ) -> None:  # fmt: skip
        super().__init__(descriptor, fingerprint, before, now_ms, name_on_target)
        self._path = path
        self._limit = 0  # a journal of an earlier run may be of any length

    def shorten(self, state: JournalState) -> None:
        """Rewrite the journal from what it says if it has grown enough; raises `JournalLost` where that fails.

        No write may be under way: who writes for us holds the lock of the old file.
        """
        try:
            if os.fstat(self._descriptor).st_size > self._limit:
                self._replace(state)
                self._limit = 2 * os.fstat(self._descriptor).st_size + LEAST_GROWTH_BYTES
        except OSError as error:
            raise JournalLost(f"the journal cannot be made shorter ({error.strerror})") from error

    def _replace(self, state: JournalState) -> None:
        # Since when there are writes of ours decides which plans are later ones; the newest run says who has the file.
        begun = [line for line in self._path.read_bytes().splitlines() if b'"event":"begin"' in line]
        with temporary_beside(self._path) as (descriptor, temporary):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for line in dict.fromkeys((*begun[:1], *begun[-1:])):
                write_all(descriptor, line + b"\n")
            for event in snapshot(state):
                write_all(descriptor, self.line_of(event))
            os.fsync(descriptor)
            temporary.replace(self._path)
            sync_folder(self._path.parent)
            # A copy of the locked descriptor shares its lock, which goes when the last of them is closed.
            old, self._descriptor = self._descriptor, os.dup(descriptor)
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
        with suppress(OSError):
            os.close(old)

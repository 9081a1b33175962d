"""What the journal of a mandate says of a group, and how that journal is kept short.

It is the ordinary journal of the mandate's fingerprint, folded as any other; each pass that writes is a round in it.
Invariants:
- A write that was begun and has no certain answer may stand there: it stays among those that are ours until a later one
  is certain.
- The journal is rewritten once it has grown well beyond what it says: `snapshot` gives few events that fold into the
  same, with the times of the writes. The new file is locked before it takes the old one's place, so that there is one
  writer at any time.
- Each pass that writes is a plan of its own, carried out in this journal: `PassJournal` shows it what earlier passes
  saved, and nothing of what they did.
"""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from migrate.apply.history import (
    NOTHING_DONE,
    SET,
    UNKNOWN,
    GroupTrace,
    JournalState,
    Offsets,
    answers_of,
    by_partition,
    offsets_of,
    unsealed,
)
from migrate.apply.journal import Journal, JournalLost, JournalWriter, NameOnTarget, journal_content, write_all
from migrate.clock import iso, ms_of
from migrate.errors import Refused
from migrate.model import UNREAD_METADATA, Commit, Commits, Failure, TopicPartition
from migrate.whole_file import sync_folder, temporary_beside

Event = dict[str, Any]
# A journal is rewritten when it has grown to twice what was left of it then, and by this much.
LEAST_GROWTH_BYTES = 256 * 1024


def same(one: Commit | None, other: Commit | None) -> bool:
    """True if both are nothing, or one offset with the same metadata; leader epochs are never ours to compare."""
    if one is None or other is None:
        return one is other
    return (one.offset, one.metadata) == (other.offset, other.metadata)


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

    def is_ours(self, place: TopicPartition, commit: Commit | None) -> bool:
        """True if this commit there is what we wrote, or may have written."""
        return commit is not None and any(same(commit, own) for own in self.writes(place))

    def may_be_as_before(self, place: TopicPartition) -> bool:
        """True if no write of ours is certain: what stood there first may stand there still."""
        return None in self.trace.may_stand(place)

    @property
    def has_metadata(self) -> bool:
        """True if what was read first, or a write of ours, carries metadata."""
        writes = (commit for place in self.written for commit in self.writes(place))
        # What could not be read is no reason to ask Java again.
        return any(commit.metadata not in ("", UNREAD_METADATA) for commit in (*self.prior.values(), *writes))


class WriteTimes:
    """When places were written last, as far as the cluster has said so, or tried to first; by a journal's events."""

    def __init__(self) -> None:
        self._times: dict[str, dict[TopicPartition, int]] = {}
        self._begun: dict[str, dict[TopicPartition, int]] = {}

    def of(self, group: str) -> Mapping[TopicPartition, int]:
        """Return the times of a group's writes, in ms since 1970."""
        return self._times.get(group, {})

    def take(self, event: Event) -> None:
        """Take one event. A write counts from its intent: retention may not count from earlier than that."""
        if event["event"] == "intent":
            begun = dict.fromkeys(offsets_of(event), ms_of(event["time"]))
            self._begun.setdefault(event["group"], {}).update(begun)
            self._times[event["group"]] = begun | self._times.get(event["group"], {})
        elif event["event"] == "outcome":
            begun, times = self._begun.get(event["group"], {}), self._times.setdefault(event["group"], {})
            for place, status, _, _ in answers_of(event):
                if status == SET and place in begun:
                    times[place] = begun[place]


def snapshot(state: JournalState, times: WriteTimes) -> Iterator[Event]:
    """Yield events that fold into what a journal says of groups, and of `times`; a group at a time, sorted."""
    for group in sorted({*state.prior, *state.applied, *state.notes}):
        known = Followed.by(state, group)
        if known.is_saved:
            places = sorted({*known.prior, *known.trace.planned})
            saved = [known.prior.get(place) for place in places]
            offsets = [None if commit is None else commit.offset for commit in saved]
            metadata = ["" if commit is None else commit.metadata for commit in saved]
            columns = by_partition(places, offset=offsets, metadata=metadata)
            yield {"event": "backup", "group": group, **columns}
        written_ms = times.of(group)
        commits_of = {place: known.trace.may_stand(place) for place in known.written}
        for number in range(max(map(len, commits_of.values()), default=0)):
            layer = {p: c for p, of_place in commits_of.items() if number < len(of_place) and (c := of_place[number])}
            for at_ms in sorted({written_ms[place] for place in layer}):
                commits = {place: commit for place, commit in layer.items() if written_ms[place] == at_ms}
                yield from _round(group, commits, UNKNOWN if number else SET, iso(at_ms))
        if known.left:
            yield {"event": "note", "group": group, "text": known.left}


def _round(group: str, commits: Mapping[TopicPartition, Commit], status: str, time: str) -> Iterator[Event]:
    places = sorted(commits)
    offsets, metadata = [commits[p].offset for p in places], [commits[p].metadata for p in places]
    yield {"time": time, "event": "intent", "group": group, **by_partition(places, offset=offsets, metadata=metadata)}
    answer = by_partition(places, status=[status], code=[""], message=[""])
    yield {"time": time, "event": "outcome", "group": group, **answer}


class FollowJournal(Journal):
    """The journal file of a mandate, which ends at `until_ms`; what `open` returns is a `FollowWriter`."""

    def __init__(self, path: Path, fingerprint: str, now_ms: Callable[[], int], until_ms: int) -> None:
        super().__init__(path, fingerprint, now_ms)
        self.now_ms, self.until_ms = now_ms, until_ms

    def writer_of(self, descriptor: int, before: JournalState, name_on_target: NameOnTarget) -> "FollowWriter":
        """Return the writer of a file that is locked."""
        return FollowWriter(self, descriptor, before, name_on_target)

    def times(self) -> WriteTimes:
        """Return when places were written; raises as `journal_content` does."""
        times = WriteTimes()
        for line in (journal_content(self.path) or b"").split(b"\n")[:-1]:
            times.take(unsealed(line))
        return times


class FollowWriter(JournalWriter):
    """Appends the events of passes, begins no write once the mandate has ended, and makes the journal short again.

    `before` is what the journal said when the newest pass began, `times` has when places were written.
    """

    def __init__(
        self, journal: FollowJournal, descriptor: int, before: JournalState, name_on_target: NameOnTarget
    ) -> None:
        super().__init__(descriptor, journal.fingerprint, before, journal.now_ms, name_on_target)
        self.times = journal.times()
        self._path, self._until_ms = journal.path, journal.until_ms
        self._limit = 0  # a journal of an earlier run may be of any length

    def __exit__(self, *error: object) -> None:
        """End a pass: the run closes the file, and gives the lock back."""

    def begin_pass(self, state: JournalState) -> None:
        """Take what the journal says now; it is made short if it has grown enough, as `shorten` does."""
        self.before = state
        self.shorten(state)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event; see `JournalWriter.write`."""
        timed = {"time": iso(self._now_ms()), **fields}
        super().write(event, **timed)
        self.times.take({"event": event, **timed})

    def note(self, group: str, text: str) -> None:
        """Say something of a group beside what is done to it; the first note counts."""
        self.write("note", group=group, text=text)

    def backup(self, prior: Mapping[str, Commits], rows: Mapping[str, Iterable[TopicPartition]]) -> None:
        """Save those groups of which a place is about to be written first: what was saved first counts."""
        known = {group: Followed.by(self.before, group) for group in prior}
        new = {
            group: commits
            for group, commits in prior.items()
            if not known[group].is_saved or set(rows[group]) - known[group].prior.keys() - known[group].written
        }
        super().backup(new, rows)

    def intend(
        self,
        planned: Mapping[str, Offsets],
        metadata: Mapping[str, Mapping[TopicPartition, str]] = MappingProxyType({}),
    ) -> None:
        """Say what is about to be written; raises `Refused` where it must not be any more."""
        super().intend(planned, metadata)
        # Only now: to bring it to disk may take long.
        if self._now_ms() >= self._until_ms:
            # An intent without an outcome counts as perhaps written.
            for group, offsets in planned.items():
                self.outcome(group, dict.fromkeys(offsets, Failure("NOT_SENT", "the mandate has ended")))
            self.sync()
            raise Refused("The mandate has ended")

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
            for event in snapshot(state, self.times):
                write_all(descriptor, self.line_of(event))
            os.fsync(descriptor)
            temporary.replace(self._path)
            sync_folder(self._path.parent)
            # A copy of the locked descriptor shares its lock, which goes when the last of them is closed.
            old, self._descriptor = self._descriptor, os.dup(descriptor)
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)
        with suppress(OSError):
            os.close(old)


class PassJournal(Journal):
    """The journal of a mandate as `apply_plan` has it for the plan of one pass, of which nothing was done yet."""

    def __init__(self, journal: FollowJournal, writer: FollowWriter) -> None:
        super().__init__(journal.path, journal.fingerprint, journal.now_ms)
        self._writer = writer

    def read(self) -> JournalState:
        """Return what was saved first, and nothing of what earlier passes did."""
        return JournalState(prior=self._writer.before.prior, events=self._writer.before.events)

    def open(
        self,
        command: str,
        details: Mapping[str, object],
        expected_events: int | None = None,
        name_on_target: NameOnTarget = str,
    ) -> FollowWriter:
        """Return the writer of the run that this pass is of, which has begun the journal and keeps it locked."""
        return self._writer

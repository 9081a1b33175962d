"""The journal of `follow`: beside its mandate, folded while it is written, and kept short.

Invariants:
- What was saved, begun and answered is in the memory as soon as it is on its way to disk: one folding serves both.
- It is rewritten from the memory once it has grown well beyond it: the first prior state of each place and the last
  writes stay. The new file is locked before it takes the old one's place, so that there is one writer at any time.
"""

import fcntl
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from migrate.apply.follow_memory import FollowMemory, planned_columns
from migrate.apply.history import LEFT, SET, JournalState, Offsets, by_partition, unsealed
from migrate.apply.journal import Journal, JournalLost, JournalWriter, NameOnTarget, journal_content, write_all
from migrate.clock import iso
from migrate.errors import UnreadablePlan
from migrate.model import Commit, Commits, TopicPartition
from migrate.whole_file import sync_folder, temporary_beside

FOLLOW = "follow"
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

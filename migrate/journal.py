"""What was done with a plan: an append-only file beside it, which is also the backup.

Invariants:
- A group's prior commits are on disk, synced, before the first write to any group; an intent before its write.
- A line that a crash tore off is the last one, told by its missing line feed, and is dropped; a damaged line
  anywhere else is an error, told by the line's checksum.
- Metadata of commits that no row of the plan has stands as U+FFFD: that there is some, not what it is.
- One writer at a time: a kernel lock (flock) that goes with the processes that hold it; a reader needs none.
"""

import fcntl
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from migrate.clock import iso
from migrate.errors import MigrateError, Refused
from migrate.history import FAILED, UNKNOWN, JournalState, Offsets, read_history, sealed
from migrate.model import Commit, Commits, Failure, TopicPartition
from migrate.plan import MIN_APPROVAL_DIGITS

Results = Mapping[TopicPartition, "str | Failure"]


def journal_path(plan_path: Path, fingerprint: str) -> Path:
    """Return where the journal of a plan file lies: "PLAN.<first 12 of the fingerprint>.journal.jsonl"."""
    return plan_path.with_name(f"{plan_path.name}.{fingerprint[:MIN_APPROVAL_DIGITS]}.journal.jsonl")


def journals_under_any_name(folder: Path, fingerprint: str) -> tuple[Path, ...]:
    """Return the journals in a folder that belong to this fingerprint, whatever the plan file was called."""
    return tuple(sorted(folder.glob(f"*.{fingerprint[:MIN_APPROVAL_DIGITS]}.journal.jsonl")))


def journals_of(plan_path: Path) -> tuple[Path, ...]:
    """Return all journals beside a plan file, whichever plan of that name they belong to."""
    ending = ".journal.jsonl"
    prefix = f"{plan_path.name}."
    names = plan_path.parent.iterdir() if plan_path.parent.is_dir() else ()
    return tuple(sorted(p for p in names if p.name.startswith(prefix) and p.name.endswith(ending)))


class Journal:
    """The journal file of one plan: `read` it at any time, `open` it to write."""

    def __init__(self, path: Path, fingerprint: str, now_ms: Callable[[], int]) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self._now_ms = now_ms

    def read(self) -> JournalState:
        """Return the state; raises `UnreadablePlan` naming a damaged line."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return JournalState()
        except OSError as error:
            raise MigrateError(f"The journal {self.path} cannot be read: {error.strerror}.") from None
        return read_history(content, str(self.path), self.fingerprint)

    def open(self, command: str, details: Mapping[str, object], expected_events: int | None = None) -> "JournalWriter":
        """Lock the journal, create it if there is none, write `begin`.

        Raises `Refused` if somebody has it, or if it does not hold `expected_events` any more: then another run
        was there since it was read. Nothing is written to it in either case.
        """
        try:
            descriptor = self._open_file()
        except OSError as error:
            raise MigrateError(
                f"The journal {self.path} cannot be written: {error.strerror}. Nothing was changed.",
                "Prior offsets must be saved before the first write: make the plan's folder writable.",
            ) from None
        try:
            self._lock(descriptor)
            self._drop_torn_line(descriptor)
            before = self.read()
            if expected_events is not None and before.events != expected_events:
                raise Refused(
                    f"Another run worked on {self.path.name} meanwhile. Nothing was written.",
                    "Run the same command again: it starts from what is there now.",
                )
            writer = JournalWriter(descriptor, self.fingerprint, before, self._now_ms)
        except BaseException:
            os.close(descriptor)
            raise
        writer.write("begin", command=command, pid=os.getpid(), host=socket.gethostname(), **details)
        writer.sync()
        return writer

    def _open_file(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return os.open(self.path, flags)
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Without it a power cut may take the name of a file whose content was synced.
            os.fsync(folder)
        finally:
            os.close(folder)
        return descriptor

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = self.read().last_writer
            raise Refused(
                f"The journal {self.path} is in use{f' by {who}' if who else ''}: "
                "this plan is being applied or rolled back.",
                "Wait for it to end, then run the same command again.",
            ) from None

    def _drop_torn_line(self, descriptor: int) -> None:
        content = self.path.read_bytes()
        if content and not content.endswith(b"\n"):
            os.ftruncate(descriptor, content.rfind(b"\n") + 1)
            os.fsync(descriptor)


class JournalWriter:
    """Appends events; `before` is the state that the journal had when it was locked."""

    def __init__(self, descriptor: int, fingerprint: str, before: JournalState, now_ms: Callable[[], int]) -> None:
        self.before = before
        self._descriptor = descriptor
        self._fingerprint = fingerprint
        self._now_ms = now_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lock(self) -> int:
        """The descriptor that carries the lock: a process that writes for us has to hold it too."""
        return self._descriptor

    def close(self) -> None:
        """Close the file and give the lock back, also for those who hold it with us."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)

    def sync(self) -> None:
        """Return when all that was written is on disk."""
        os.fsync(self._descriptor)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event; it is durable after the next `sync`."""
        record = {"time": iso(self._now_ms()), "event": event, "fingerprint": self._fingerprint, **fields}
        line = sealed(record) + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]

    def backup(self, prior: Mapping[str, Commits], rows: Mapping[str, Iterable[TopicPartition]]) -> None:
        """Save each group's commits, and that there is none on the partitions of `rows`; durable on return."""
        for group, commits in prior.items():
            absent = set(rows.get(group, ())) - commits.keys()
            saved = [_saved(p, commits.get(p)) for p in sorted({*commits, *absent})]
            self.write("backup", group=group, prior=saved)
        self.sync()

    def intend(self, planned: Mapping[str, Offsets]) -> None:
        """Say what is about to be written; durable on return."""
        for group, offsets in planned.items():
            places = [_place(p) | {"offset": offsets[p]} for p in sorted(offsets)]
            self.write("intent", group=group, planned=places)
        self.sync()

    def outcome(self, group: str, results: Results) -> None:
        """Say what the cluster answered: "set", "removed", or the failure."""
        self.write("outcome", group=group, results=[_place(p) | _result(results[p]) for p in sorted(results)])

    def read_back(self, group: str, ok: bool, seen: Offsets) -> None:
        """Say what a fresh client read afterwards."""
        places = [_place(p) | {"offset": seen[p]} for p in sorted(seen)]
        self.write("readback", group=group, ok=ok, seen=places)

    def spent(self, by: str) -> None:
        """Say that an undo plan of this plan is about to be applied; durable on return."""
        self.write("spent", by=by)
        self.sync()

    def end(self, exit_code: int, counts: Mapping[str, int]) -> None:
        """Say how the command ended; durable on return."""
        self.write("end", exit_code=exit_code, counts=dict(counts))
        self.sync()


def _place(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _saved(partition: TopicPartition, commit: Commit | None) -> dict[str, Any]:
    if commit is None:
        return _place(partition) | {"offset": None}
    return _place(partition) | {"offset": commit.offset, "metadata": commit.metadata}


def _result(result: str | Failure) -> dict[str, Any]:
    if isinstance(result, str):
        return {"status": result}
    status = UNKNOWN if result.outcome_unknown else FAILED
    return {"status": status, "code": result.code, "message": result.message}

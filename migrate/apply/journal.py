"""What was done with a plan: an append-only file beside it, which is also the backup.

Invariants:
- A group's prior commits are on disk, synced, before the first write to any group; an intent before its write.
- A line that a crash tore off is the last one, known by its missing line feed, and is dropped; a damaged line
  anywhere else is an error, known by the line's checksum.
- Metadata of commits that no row of the plan has is saved as U+FFFD: that there is some, not what it is.
- One writer at a time: a kernel lock (flock) that goes with the processes that hold it; a reader needs none.
"""

import errno
import fcntl
import hashlib
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from migrate.apply.history import (
    FAILED,
    ROLLBACK,
    UNKNOWN,
    GroupTrace,
    JournalState,
    Offsets,
    by_partition,
    read_history,
    sealed,
)
from migrate.clock import iso
from migrate.commit_table import has_metadata, offsets_at
from migrate.errors import MigrateError, Refused, UnreadablePlan
from migrate.model import Commits, Failure, TopicPartition
from migrate.plan.companions import journal_path, journals_under_any_name
from migrate.plan.plan import SHORT_DIGITS
from migrate.whole_file import sync_folder

Results = Mapping[TopicPartition, "str | Failure"]
# What the target calls a group; `str` where every group keeps its name.
NameOnTarget = Callable[[str], str]

_IN_USE = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})


def journal_to_read(plan_path: Path, fingerprint: str) -> Path:
    """Return the journal of this plan, whether it exists or not.

    It is the plan's own, else the one that a run left in this folder under another name of the plan file.
    Raises `UnreadablePlan` where there are several of those, and as `journal_path` does.
    """
    own = journal_path(plan_path, fingerprint)
    others = () if own.exists() else journals_under_any_name(own.parent, fingerprint)
    if len(others) > 1:
        raise UnreadablePlan(
            f"Plan {fingerprint[:SHORT_DIGITS]} has {len(others)} journals beside it, under other file names: "
            f"{', '.join(ascii(path.name)[1:-1] for path in others)}.",
            "Give the plan file the name that it was applied under.",
        )
    return others[0] if others else own


def journal_content(path: Path) -> bytes | None:
    """Return a journal's bytes, None where there is no journal; raises `MigrateError` if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MigrateError(
            f"The journal {path} cannot be read: {error.strerror}.",
            "Run this as the user who applied the plan, or have the file made readable for you.",
        ) from None


def read_journal(path: Path, fingerprint: str) -> JournalState:
    """Return the state of a journal, that of none where there is no file.

    Raises `UnreadablePlan` naming a damaged line, and as `journal_content` does.
    """
    return _folded(journal_content(path) or b"", path, fingerprint)


def undos_beside(state: JournalState, folder: Path) -> dict[str, dict[str, GroupTrace]]:
    """Return what the undo plans that have spent a plan did, by their fingerprints, as far as a folder has journals."""
    undos: dict[str, dict[str, GroupTrace]] = {}
    for fingerprint in dict.fromkeys(by for by in state.spends if by != ROLLBACK):
        for journal in journals_under_any_name(folder, fingerprint):
            undos.setdefault(fingerprint, {}).update(read_journal(journal, fingerprint).applied)
    return undos


def with_undos(state: JournalState, folder: Path) -> JournalState:
    """Return a plan's history in which an undo plan with a journal in this folder counts as a rollback."""
    undos = undos_beside(state, folder)
    back = dict(state.rolled_back)
    for traces in undos.values():
        # Each leaves alone what another had restored.
        back |= {group: trace for group, trace in traces.items() if group not in back or not back[group].is_whole}
    return replace(state, rolled_back=back, spends=tuple(ROLLBACK if by in undos else by for by in state.spends))


def history_beside(plan_path: Path, fingerprint: str) -> JournalState:
    """Return what was done to a plan, by its own journal and those of its undo plans; raises as `read_journal` does."""
    journal = journal_to_read(plan_path, fingerprint)
    return with_undos(read_journal(journal, fingerprint), journal.parent)


def _folded(content: bytes, path: Path, fingerprint: str) -> JournalState:
    return read_history(content, str(path), fingerprint) if content else JournalState()


class JournalLost(Exception):
    """Raised by a `JournalWriter` that could not bring an event to disk; the text says why, as the end of a line.

    Not an `OSError`: a broken connection is one too, and says nothing about the journal.
    """


class Journal:
    """The journal file of one plan: `read` it at any time, `open` it to write."""

    def __init__(self, path: Path, fingerprint: str, now_ms: Callable[[], int]) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self._now_ms = now_ms
        self._last_read = (b"", JournalState())

    def read(self) -> JournalState:
        """Return the state, as `read_journal` does; a file that has not changed meanwhile is not folded again."""
        content = journal_content(self.path) or b""
        digest, state = self._last_read
        if (now := hashlib.sha256(content).digest()) != digest:
            state = _folded(content, self.path, self.fingerprint)
            self._last_read = (now, state)
        return state

    def open(
        self,
        command: str,
        details: Mapping[str, object],
        expected_events: int | None = None,
        name_on_target: NameOnTarget = str,
    ) -> "JournalWriter":
        """Lock the journal, create it if there is none, write `begin`.

        `name_on_target` says what the target calls a group: every event of one that has another name there says so, for
        whoever has to restore a backup by hand.

        Raises `Refused` if somebody has it, if it does not hold `expected_events` any more (then another run was
        there since it was read), or if this is to be its first line and the plan has a journal under another name in
        this folder; `MigrateError` where the file system has no locks. Nothing is written to it in any of these cases.
        """
        try:
            descriptor, created = self._open_file()
        except OSError as error:
            raise MigrateError(
                f"The journal {self.path} cannot be written: {error.strerror}. Nothing was changed.",
                "Prior offsets must be saved before the first write: make the plan's folder writable, and the journal "
                "where there is one.",
            ) from None
        try:
            self._lock(descriptor, created)
            drop_torn_line(self.path, descriptor)
            before = self.read()
            if not before.events:
                self._refuse_twin()
            if expected_events is not None and before.events != expected_events:
                raise Refused(
                    f"Another run worked on {self.path.name} in the meantime. Nothing was written.",
                    "Run the same command again: it starts from what is there now.",
                )
            size = os.fstat(descriptor).st_size
            writer = self.writer_of(descriptor, before, name_on_target)
        except BaseException:
            os.close(descriptor)
            raise
        try:
            writer.write("begin", command=command, pid=os.getpid(), host=socket.gethostname(), **details)
            writer.sync()
        except JournalLost as error:
            self._take_back_begin(descriptor, size)
            writer.close()
            raise MigrateError(
                f"The journal {self.path}: {error}. Nothing was changed.",
                "Make room for the journal beside the plan, then run the same command again.",
            ) from error
        return writer

    def writer_of(self, descriptor: int, before: JournalState, name_on_target: NameOnTarget) -> "JournalWriter":
        """Return the writer of a file that is locked."""
        return JournalWriter(descriptor, self.fingerprint, before, self._now_ms, name_on_target)

    def refuse_running(self) -> None:
        """Raise `Refused` while a run holds the journal: what it says is out of date at once."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            self._lock(descriptor, created=False, how=fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _open_file(self) -> tuple[int, bool]:
        """Return a descriptor of the file, and whether it was made now; its name in the folder is on disk."""
        flags, created = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, True
        try:
            descriptor = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            descriptor, created = os.open(self.path, flags), False
        try:
            # Without it a power cut may take the name of a file whose content was synced. Also where the file was
            # there: the run that made it may have been killed before it came to this.
            sync_folder(self.path.parent)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, created

    def _lock(self, descriptor: int, created: bool, how: int = fcntl.LOCK_EX) -> None:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _IN_USE:
                runs = self.read().runs
                who = runs[-1].who if runs else ""
                raise Refused(
                    f"The journal {self.path} is in use{f' by {who}' if who else ''}: "
                    "this plan is being applied or rolled back.",
                    "Wait for it to end, then run the same command again.",
                ) from None
            if created:
                # Empty, it would only keep a new plan from taking this one's place.
                self.path.unlink(missing_ok=True)
            raise no_locks(self.path, error) from None
        mine = os.fstat(descriptor)
        try:
            named = self.path.stat()
        except OSError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            # What is written to a file without a name is lost, and its lock is no lock.
            raise Refused(
                f"The journal {self.path} was moved or replaced while it was opened. Nothing was written.",
                "See that it lies beside the plan, then run the same command again.",
            )

    def _refuse_twin(self) -> None:
        """Raise `Refused` if a run under another name of the plan file has a journal here; take away our empty one."""
        for other in journals_under_any_name(self.path.parent, self.fingerprint):
            if not other.samefile(self.path):
                self.path.unlink()
                raise Refused(
                    f"The plan has a journal under another file name, {other.name}. Nothing was written.",
                    "Use the plan by the name that this journal begins with.",
                )

    def _take_back_begin(self, descriptor: int, size: int) -> None:
        """Leave the journal as it was before `begin`, which is not on disk, or take it away where it was empty.

        The lock is still ours: nobody else has this file. Empty, it would keep a new plan from taking this one's place.
        """
        with suppress(OSError):
            if size:
                os.ftruncate(descriptor, size)
            else:
                self.path.unlink()


class JournalWriter:
    """Appends events; `before` is the state that the journal had when it was locked."""

    def __init__(
        self,
        descriptor: int,
        fingerprint: str,
        before: JournalState,
        now_ms: Callable[[], int],
        name_on_target: NameOnTarget = str,
    ) -> None:
        self.before = before
        self._name_on_target = name_on_target
        self._descriptor = descriptor
        self._fingerprint = fingerprint
        self._now_ms = now_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def lock(self) -> int:
        """The descriptor that carries the lock: a process that writes for us has to hold it too."""
        return self._descriptor

    def close(self) -> None:
        """Close the file and give the lock back, also for those who hold it with us. All was synced before."""
        # A file system that is full or gone may say so only now; what matters was synced, or has been reported.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        with suppress(OSError):
            os.close(self._descriptor)

    def sync(self) -> None:
        """Return when all that was written is on disk; raises `JournalLost`."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise _lost(error) from error

    def line_of(self, event: Mapping[str, Any]) -> bytes:
        """Return the line of an event, of now where it has no time of its own."""
        record = {"time": iso(self._now_ms()), **event, "fingerprint": self._fingerprint}
        if "group" in event and (target_group := self._name_on_target(event["group"])) != event["group"]:
            record["target_group"] = target_group
        return sealed(record) + b"\n"

    def write(self, event: str, **fields: Any) -> None:
        """Append one event; it is durable after the next `sync`. Raises `JournalLost`."""
        line = self.line_of({"event": event, **fields})
        try:
            write_all(self._descriptor, line)
        except OSError as error:
            raise _lost(error) from error

    def backup(self, prior: Mapping[str, Commits], rows: Mapping[str, Iterable[TopicPartition]]) -> None:
        """Save each group's commits, and that there is none on the partitions of `rows`; durable on return."""
        for group, commits in prior.items():
            places = sorted({*commits, *rows.get(group, ())})
            metadata = [""] if places else []
            if has_metadata(commits):
                metadata = ["" if (commit := commits.get(place)) is None else commit.metadata for place in places]
            columns = by_partition(places, offset=offsets_at(commits, places), metadata=metadata)
            self.write("backup", group=group, **columns)
        self.sync()

    def intend(
        self,
        planned: Mapping[str, Offsets],
        metadata: Mapping[str, Mapping[TopicPartition, str]] = MappingProxyType({}),
    ) -> None:
        """Say what is about to be written, with the metadata of those groups that have any; durable on return."""
        for group, offsets in planned.items():
            texts = metadata.get(group)
            beside = {"metadata": [texts.get(place, "") for place in sorted(offsets)]} if texts else {}
            self.write("intent", group=group, **_placed(offsets, **beside))
        self.sync()

    def outcome(self, group: str, results: Results) -> None:
        """Say what the cluster answered: "set", "removed", or the failure."""
        places = sorted(results)
        distinct = set(results.values())
        answers = map(_answer, distinct if len(distinct) == 1 else map(results.__getitem__, places))
        columns = dict(zip(("status", "code", "message"), map(list, zip(*answers, strict=True)), strict=True))
        self.write("outcome", group=group, **by_partition(places, **columns))

    def read_back(self, group: str, ok: bool, offsets: Offsets) -> None:
        """Say what a fresh client read afterwards."""
        self.write("readback", group=group, ok=ok, **_placed(offsets))

    def spent(self, by: str) -> None:
        """Say that an undo plan of this plan is about to be applied; durable on return."""
        self.write("spent", by=by)
        self.sync()

    def end(self, exit_code: int, counts: Mapping[str, int]) -> None:
        """Say how the command ended; durable on return."""
        self.write("end", exit_code=exit_code, counts=dict(counts))
        self.sync()


def _lost(error: OSError) -> JournalLost:
    return JournalLost(f"the journal cannot be written any more ({error.strerror})")


def drop_torn_line(path: Path, descriptor: int) -> None:
    """Take away what a crash left of a last line without its line feed; raises `OSError`."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.ftruncate(descriptor, content.rfind(b"\n") + 1)
        os.fsync(descriptor)


def write_all(descriptor: int, line: bytes) -> None:
    """Write all of a line, in as many parts as the file system takes; raises `OSError`."""
    while line:
        line = line[os.write(descriptor, line) :]


def no_locks(path: Path, error: OSError) -> MigrateError:
    """Return what to say where a file could not be locked, and not because somebody has it."""
    if error.errno not in _NO_LOCKS:
        return MigrateError(f"{path} cannot be locked: {error.strerror}. Nothing was changed.")
    return MigrateError(
        f"The file system of {path.parent} has no locks ({error.strerror}): nothing would keep two runs on one plan "
        "apart. Nothing was changed.",
        "Move the plan, with the files beside it, to a local disk; on NFS, start its lock service.",
    )


def _placed(offsets: Offsets, **columns: list[Any]) -> dict[str, list[Any]]:
    """Return what an event says of offsets; `columns` are of the places in their order."""
    places = sorted(offsets)
    return by_partition(places, offset=[offsets[place] for place in places], **columns)


def _answer(result: str | Failure) -> tuple[str, str, str]:
    """Return an answer's status, and the code and message of a failure."""
    if isinstance(result, str):
        return result, "", ""
    return UNKNOWN if result.outcome_unknown else FAILED, result.code, result.message

"""What can go wrong under a command, and the fakes that let it: a cluster that notes what is asked, and a disk."""

import errno
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from migrate.model import Commits, Failure, GroupState, TopicPartition
from migrate.survey.renamed import SAME_NAMES, TargetNames
from tests.fakes import Appended, Crash, FakeCluster, Script
from tests.unit.answers import DENIED, UNSURE

COLLEAGUE = "a colleague"
Place = tuple[str, TopicPartition]


class Kind(StrEnum):
    """What befalls a command as a whole."""

    NONE = "nothing"
    KILLED_BEFORE_CALL = "killed before a call"
    KILLED_AFTER_WRITE = "killed after a write, before its answer"
    KILLED_AT_DISK = "killed before a write or sync of the journal"
    TORN_LINE = "killed amid a line of the journal"
    POWER_CUT = "power cut: what was not synced is gone"
    DISK_FULL = "disk full"
    INTERRUPTED = "Ctrl-C"
    DOWN = "target down"
    UNREADABLE = "offsets cannot be read any more"
    MEDDLED = "somebody commits meanwhile"
    MEDDLED_BETWEEN = "somebody commits after the first try"


AT_DISK = (Kind.KILLED_AT_DISK, Kind.TORN_LINE, Kind.POWER_CUT, Kind.DISK_FULL, Kind.INTERRUPTED)
LOADING = Failure("COORDINATOR_LOAD_IN_PROGRESS", "loading", retriable=True)
LOST = Failure("COORDINATOR_NOT_AVAILABLE", "not available", retriable=True, outcome_unknown=True)
# What the first tries to write a group are answered.
ANSWERS = {
    "denied": [Script(DENIED)],
    "loading": [Script(LOADING)],
    "lost": [Script(LOST)],
    "lost, applied": [Script(LOST, applied=True)],
    "lost, applied later": [Script(LOST, late=True)],
    "unsure, applied later": [Script(UNSURE, late=True)],
    "lost, applied later, then denied": [Script(LOST, late=True), Script(DENIED)],
}
WRITES = ("alter", "delete", "delete_offsets")
WRITES_TO_GROUPS = ("alter", "delete_groups", "delete_offsets")


@dataclass(frozen=True)
class Trouble:
    """What goes wrong in one command: `kind` after `at` steps, and the first answers to the writes of some groups."""

    kind: Kind = Kind.NONE
    at: int = 0
    answers: tuple[tuple[int, str], ...] = ()
    group: int = 0

    @property
    def is_meddled(self) -> bool:
        return self.kind in (Kind.MEDDLED, Kind.MEDDLED_BETWEEN)


CALM = Trouble()


@dataclass(frozen=True)
class Write:
    """One write to one group: when, what was wanted, and what journals had on disk then, by fingerprint, own first.

    `carried_out` says that it is, or can become, visible.
    """

    tick: int
    group: str
    wanted: Appended
    whole: bool
    on_disk: Mapping[str, bytes]
    carried_out: bool


@dataclass
class Target(FakeCluster):
    """Notes every reading and every write, and who wrote what is visible; `asked` are the groups told to change."""

    actor: str = COLLEAGUE
    on_disk: Callable[[], Mapping[str, bytes]] = dict
    tick: int = 0
    readings: list[tuple[int, str, Commits | Failure]] = field(default_factory=list)
    states_read: dict[str, GroupState | Failure] = field(default_factory=dict)
    written: list[Write] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    authors: dict[Place, str] = field(default_factory=dict)
    unseen_by: dict[str, list[str]] = field(default_factory=dict)
    unreadable: bool = False

    def forget(self) -> None:
        """Begin the notes anew, and end what went wrong."""
        self.readings, self.states_read, self.written, self.asked = [], {}, [], set()
        self.scripts, self.down, self.crash_after, self.unreadable = {}, False, None, False
        self.on_call = lambda call: None

    def commits(self, groups: Any, require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        found = {g: Failure("GROUP_AUTHORIZATION_FAILED", "no") for g in groups} if self.unreadable else {}
        found = {**super().commits(groups, require_stable), **found}
        self.tick += 1
        self.readings += [(self.tick, group, answer) for group, answer in found.items()]
        return found

    def group_states(self, groups: Any) -> Mapping[str, GroupState | Failure]:
        found = super().group_states(groups)
        self.states_read |= found
        return found

    def surface(self, group: str) -> None:
        self.actor = self.unseen_by[group].pop(0)
        super().surface(group)
        self.actor = COLLEAGUE

    def overtake(self, group: str, partitions: Any) -> None:
        late = zip(self.unseen.get(group, ()), self.unseen_by.get(group, ()), strict=True)
        self.unseen_by[group] = [by for appended, by in late if appended.keys() - partitions]
        super().overtake(group, partitions)

    def _written(self, call: str, group: str, wanted: Appended) -> Script | None:
        self.tick += 1
        tick, on_disk = self.tick, self.on_disk()
        script = super()._written(call, group, wanted)
        if script is not None and script.late:
            self.unseen_by.setdefault(group, []).append(self.actor)
        done = script is None or script.applied or script.late
        self.written.append(Write(tick, group, wanted, call == "delete", on_disk, done))
        return script

    def _put(self, group: str, wanted: Appended) -> None:
        super()._put(group, wanted)
        self.authors |= {(group, p): self.actor for p in wanted}


class Misnamed(BaseException):
    """A group was asked for by a name that it does not have there: nothing in the product may catch it."""


class OnTarget:
    """The target as its clients see it, who must call a group as it is `called` there.

    `target` goes by the source's names all the same, and so do its notes.
    """

    def __init__(self, target: Target, called: Mapping[str, str], names: TargetNames = SAME_NAMES) -> None:
        self._target, self._called, self._names = target, called, names

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._target, name)
        if name not in ("commits", "group_states", *WRITES_TO_GROUPS):
            return call

        def told(groups: Any, *more: Any, **options: Any) -> Any:
            if wrong := [group for group in groups if self._names.on_target(group) != self._called.get(group)]:
                raise Misnamed(f"{wrong} on a target that has {self._called}")
            if name in WRITES_TO_GROUPS:
                self._target.asked |= set(groups)
            return call(groups, *more, **options)

        return told

    def named(self, names: TargetNames) -> "OnTarget":
        return OnTarget(self._target, self._called, names)

    def renewed(self) -> "OnTarget":
        self._target.renewed()
        return self

    def holding(self, lock: int) -> "OnTarget":
        return self


class Disk:
    """Stands for `os` in the journal: counts writes and syncs, breaks as told, and knows what was synced."""

    def __init__(self) -> None:
        self.synced: dict[int, int] = {}
        self.opened: set[int] = set()
        self.breaks: Callable[[int, bytes], int | None] = lambda descriptor, line: None

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, *arguments: Any) -> int:
        descriptor = os.open(*arguments)
        self.opened.add(descriptor)
        found = os.fstat(descriptor)
        if not found.st_size:
            self.synced[found.st_ino] = 0
        return descriptor

    def close(self, descriptor: int) -> None:
        self.opened.discard(descriptor)
        os.close(descriptor)

    def write(self, descriptor: int, line: bytes) -> int:
        only = self.breaks(descriptor, line)
        return os.write(descriptor, line if only is None else line[:only])

    def fsync(self, descriptor: int) -> None:
        self.breaks(descriptor, b"")
        found = os.fstat(descriptor)
        self.synced[found.st_ino] = found.st_size

    def durable(self, path: Path) -> bytes:
        """Return what a power cut would leave of a file at least."""
        if not path.exists():
            return b""
        return path.read_bytes()[: self.synced.get(path.stat().st_ino, 0)]

    def let_go(self) -> None:
        """Close what a process that was killed held open: its locks go with it."""
        for descriptor in list(self.opened):
            with suppress(OSError):
                self.close(descriptor)


def befall(  # noqa: C901 - one small function for each place where trouble can come
    trouble: Trouble, target: Target, disk: Disk, groups: list[str], meddle: Callable[[str], None]
) -> None:
    """Let the next command meet this trouble; `meddle` commits to a group as a colleague does."""
    for which, answer in trouble.answers:
        for call in WRITES:
            target.script(call, groups[which % len(groups)], *ANSWERS[answer])
    if trouble.kind is Kind.MEDDLED_BETWEEN:
        for group in groups:
            target.script("alter", group, Script(LOST))
    if trouble.kind is Kind.KILLED_AFTER_WRITE:
        target.crash_after = trouble.at + 1
    left = trouble.at

    def is_due() -> bool:
        nonlocal left
        left -= 1
        return left == -1

    def at_call(call: str) -> None:
        if trouble.kind is Kind.MEDDLED_BETWEEN:
            if call == "commits" and target.written:
                target.calm()
                meddle(target.written[0].group)
        elif is_due():
            if trouble.kind is Kind.KILLED_BEFORE_CALL:
                raise Crash
            if trouble.kind is Kind.MEDDLED:
                meddle(groups[trouble.group % len(groups)])
            target.down |= trouble.kind is Kind.DOWN
            target.unreadable |= trouble.kind is Kind.UNREADABLE

    def at_disk(descriptor: int, line: bytes) -> int | None:
        """Return how much of the line fits, None for all of it."""
        due = is_due()
        if trouble.kind is Kind.DISK_FULL and left < 0:
            if due and line:
                return len(line) // 2
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if due and trouble.kind is Kind.INTERRUPTED:
            signal.raise_signal(signal.SIGINT)
        if due and trouble.kind is Kind.TORN_LINE:
            os.write(descriptor, line[: len(line) // 2])
        if due and trouble.kind in (Kind.TORN_LINE, Kind.KILLED_AT_DISK, Kind.POWER_CUT):
            raise Crash
        return None

    if trouble.kind in AT_DISK:
        disk.breaks = at_disk
    else:
        target.on_call = at_call

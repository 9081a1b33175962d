"""A cluster's admin whose librdkafka lives in a process of its own, behind `migrate.ports.ClusterAdmin`.

librdkafka 2.16 kills its process when a coordinator moves at the wrong moment: SIGSEGV where OffsetFetch answers
NOT_COORDINATOR (librdkafka #5040), SIGABRT after timeouts (#4605, #5397). Then only that process dies:

- What was asked is asked again of a new process; after `DEATHS_BORNE` deaths in a row it is a `ClusterError`.
- What was being written is `outcome_unknown`: the caller reads it back.
- The process ends when this one does, however that ends; until then it holds `lock`, if one is given.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from migrate.clock import Backoff, SystemClock
from migrate.commit_table import CommitTable
from migrate.errors import ClusterError
from migrate.kafka.frames import NOT_EXACT, receive, send
from migrate.kafka.settings import ClientSettings
from migrate.model import Commits, Failure, TopicPartition
from migrate.ports import ClusterAdmin, GroupReader, Outcomes

DEATHS_BORNE = 10
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
ENDING_SECONDS = 5.0
T = TypeVar("T")
P = ParamSpec("P")
# A process that waits for the admin that is made first.
_waiting: "list[_Process]" = []


def get_ready() -> None:
    """Start a client process that imports its libraries while the caller is busy; the next admin without one has it."""
    if not _waiting:
        _waiting.append(_Process())


def _next_process(lock: int | None) -> "_Process":
    if lock is None:
        with suppress(IndexError):
            return _waiting.pop()
    return _Process(lock)


class ClientDied(Exception):
    """Raised when the process ended before it answered; says how."""


def _asked(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate["HostedAdmin", P], T]:
    """Return the port's method as a question to the client process."""

    @wraps(method)
    def ask(admin: "HostedAdmin", /, *arguments: P.args, **options: P.kwargs) -> T:
        # As lists: a view of a dictionary cannot be sent.
        sendable = (list(value) if isinstance(value, Collection) else value for value in arguments)
        return cast(T, admin._read(method.__name__, *sendable, **options))

    return ask


class HostedAdmin:
    """Lists, describes and alters one cluster through a client process, which the first call starts.

    Parameters are those of `migrate.kafka.admin.ConfluentAdmin`. `lock` is a file descriptor that the process inherits:
    a lock on it stays until the process has ended too.
    """

    def __init__(
        self, settings: ClientSettings, deadline_seconds: float = 60.0, concurrency: int = 100, lock: int | None = None
    ) -> None:
        self.side = settings.side
        self.alias = settings.alias
        self.deaths = 0
        self._name = settings.name
        # What ConfluentAdmin is made with, in its order.
        self._settings = (settings, deadline_seconds, concurrency)
        self._lock = lock
        self._process: _Process | None = None
        self._one_call = threading.Lock()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The client process's id; None while there is none."""
        return self._process.pid if self._process else None

    def renewed(self) -> "HostedAdmin":
        """Return itself with a new client: librdkafka never forgets a coordinator that has moved."""
        if self._process is not None:
            self._read("renewed")
        return self

    def holding(self, lock: int) -> "HostedAdmin":
        """Return an admin whose process holds this file descriptor, and with it a lock on the file."""
        holding = HostedAdmin(*self._settings, lock)
        # It gets ready while the caller saves what was there before.
        holding._process = _Process(lock).begun(holding._settings)
        return holding

    def close(self) -> None:
        """End the process, also in the middle of a call; no other is started.

        A thread that outlives its command would go on with a new one, and write without the lock that is free by then.
        """
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.end()

    facts = _asked(ClusterAdmin.facts)
    topics = _asked(ClusterAdmin.topics)
    topic_ids = _asked(ClusterAdmin.topic_ids)
    groups = _asked(ClusterAdmin.groups)
    group_states = _asked(ClusterAdmin.group_states)
    described_groups = _asked(GroupReader.described_groups)
    commits = _asked(ClusterAdmin.commits)
    log_ranges = _asked(ClusterAdmin.log_ranges)
    high_watermarks = _asked(ClusterAdmin.high_watermarks)

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets; where the process died over it, every outcome is unknown."""
        try:
            tables = {group: CommitTable.of(offsets) for group, offsets in commits.items()}
            return cast(Outcomes, self._call("alter", tables))
        except ClientDied as death:
            lost = _lost(death)
            return {group: dict.fromkeys(offsets, lost) for group, offsets in commits.items()}

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups; where the process died over it, every outcome is unknown."""
        try:
            return cast("Mapping[str, Failure | None]", self._call("delete_groups", list(groups)))
        except ClientDied as death:
            return dict.fromkeys(groups, _lost(death))

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Fail: librdkafka's Python client can only delete whole groups."""
        return {group: dict.fromkeys(partitions, NOT_EXACT) for group, partitions in offsets.items()}

    def missing_capability(self) -> Failure | None:
        """Return what this client cannot do."""
        return NOT_EXACT

    def _read(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Ask, and ask again of a new process where one died over the question."""
        backoff = Backoff(SystemClock(), FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        for _ in range(DEATHS_BORNE):
            try:
                return self._call(method, *arguments, **options)
            except ClientDied as death:
                last = death
            if self._is_closed:
                raise ClusterError(f"{self._name} is not asked any more: the command is over.", "Run it again.")
            # A coordinator that is just moving moves for a while.
            backoff.pause()
        raise ClusterError(
            f"{self._name} could not be asked: {last}, {DEATHS_BORNE} times in a row.",
            "That is what librdkafka does while coordinators move: wait until the cluster is well, then run again.",
        )

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        with self._one_call:
            if self._process is None and not self._is_closed:
                self._process = _next_process(self._lock).begun(self._settings)
            if self._is_closed or self._process is None:
                self._drop()
                raise ClientDied("the Kafka client is closed")
            try:
                kind, value = self._process.ask(method, arguments, options)
            except BaseException as error:
                # Also where we were interrupted: the answer to this call must not be taken for the next one's.
                self.deaths += isinstance(error, ClientDied)
                self._drop()
                raise
        if kind == "error":
            cause, problem, todo = value
            raise cause(problem, todo)
        if kind == "fault":
            raise RuntimeError(f"in the client process: {value.strip().splitlines()[-1]}\n{value}")
        return value


class _Process:
    """One client process and our end of the socket to it; it can be asked once it has `begun`."""

    def __init__(self, lock: int | None = None) -> None:
        ours, theirs = socket.socketpair()
        inherited = (theirs.fileno(),) if lock is None else (theirs.fileno(), lock)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            self._process = subprocess.Popen(
                # -P: what lies in the folder where somebody happens to work is not imported.
                [sys.executable, "-P", "-m", "migrate.kafka.host", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=inherited,
                env=environment,
                # Ctrl-C and a terminal that closes are for the process in charge: it stops between two writes, and
                # still needs the answers of the last.
                start_new_session=True,
            )
        finally:
            theirs.close()
        self.pid = self._process.pid
        self._channel = ours
        # Runs also when nobody ends it: at the latest when Python ends.
        self.end: Callable[[], Any] = weakref.finalize(self, _end, self._process, ours)

    def begun(self, settings: tuple[Any, ...]) -> "_Process":
        """Tell it which cluster it is for; returns itself."""
        with suppress(OSError):  # that one is gone already is seen at its first answer
            send(self._channel, settings)
        return self

    def ask(self, *call: Any) -> tuple[str, Any]:
        """Return the answer to a method's name, arguments and options; raises `ClientDied`."""
        try:
            send(self._channel, call)
            kind, value = receive(self._channel)
        except (OSError, EOFError):
            raise ClientDied(f"the Kafka client's process ended {self._ending()}") from None
        return kind, value

    def _ending(self) -> str:
        try:
            status = self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "its work without a word"
        if status < 0:
            return f"by {signal.Signals(-status).name}"
        return f"with status {status}"


def _end(process: "subprocess.Popen[bytes]", channel: socket.socket) -> None:
    with suppress(OSError):
        # Closed alone, it would tell the process nothing while another thread of ours still waits for an answer.
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lost(death: ClientDied) -> Failure:
    return Failure("_CLIENT_DIED", f"{death} before it answered", retriable=True, outcome_unknown=True)

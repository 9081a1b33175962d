"""A JVM that belongs to this process: started with a log file, watched, stopped, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.lab.classes import archive
from tests.lab.jars import java_executable
from tests.lab.waiting import LabError, wait_until

T = TypeVar("T")

GUARD = Path(__file__).with_name("guard.py")
LOG_TAIL_LINES = 15
# What matters in a short-lived JVM is how soon it is up, not how fast it gets.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")

LOG4J2 = """\
status = error
appender.console.type = Console
appender.console.name = STDERR
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = STDERR
"""
RELOAD4J = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def java_command(
    jars: Path,
    main_class: str,
    *args: str,
    heap: str = "256m",
    jvm_flags: Sequence[str] = JVM_FLAGS,
    own_classes: Path | None = None,
) -> list[str]:
    """The command line of a Java program from a jars folder that logs warnings and worse to its stderr.

    `own_classes` is a folder with more classes than the jars have.
    """
    if any(jars.glob("log4j-core-*.jar")):
        config, text, option = jars / "lab-log4j2.properties", LOG4J2, "log4j2.configurationFile"
    else:
        config, text, option = jars / "lab-log4j.properties", RELOAD4J, "log4j.configuration"
    if not config.is_file() or config.read_text() != text:
        fresh = config.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(config)
    flags = [f"-Xmx{heap}", "-Xms32m", *jvm_flags, f"-D{option}={config.as_uri()}"]
    class_path = os.pathsep.join(map(str, filter(None, (jars / "*", own_classes))))
    classes = archive(jars, main_class)
    if jvm_flags == JVM_FLAGS and classes.exists():
        flags.append(f"-XX:SharedArchiveFile={classes}")
    return [java_executable(), *flags, "-cp", class_path, main_class, *args]


def wait_until_stopped(pid: int) -> None:
    """Wait for the last thread of a process that was sent SIGSTOP, where the kernel tells: on Linux.

    One thread takes the signal and stops the others. Until it has had its turn on a busy machine, they still answer.
    """

    def stopped() -> bool:
        try:
            told = [thread.read_text() for thread in Path(f"/proc/{pid}/task").glob("*/stat")]
        except FileNotFoundError:
            return False
        return all(line.rpartition(")")[2].split()[0] in "TZ" for line in told)

    wait_until(stopped, 30.0, f"process {pid} to stand still", poll_seconds=0.001)


class GuardedProcess:
    """One command run under a guard process that kills it as soon as this process is gone.

    `pid` is the command's own process id. The object can be started again after the command has ended.
    """

    def __init__(self, name: str, command: Sequence[str], log_file: Path) -> None:
        self.name = name
        self.command = list(command)
        self.log_file = log_file
        self.pid: int | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    @property
    def exit_status(self) -> int | None:
        """None while it runs (or never ran), else the exit status, 128 + N if signal N ended it."""
        return None if self._guard is None else self._guard.poll()

    def start(self) -> None:
        """Start the command and return as soon as its process id is known."""
        if self.running:
            raise LabError(f"{self.name} is already running (process {self.pid})")
        self._release()
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), str(self.log_file), *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._guard = guard
        assert guard.stdout is not None
        word, _, rest = guard.stdout.readline().decode().strip().partition(" ")
        if word != "pid":
            guard.wait()
            self._release()
            raise LabError(f"{self.name} could not be started: {rest or 'its guard process ended at once'}")
        self.pid = int(rest)

    def wait_ready(self, ready: Callable[[], T | None], deadline_seconds: float, what: str) -> T:
        """Wait for a condition, and notice at once when the process ends instead of getting there."""

        def check() -> T | None:
            if not self.running:
                raise LabError(f"{self.name} ended with status {self.exit_status} before {what}\n{self.log_tail()}")
            return ready()

        return wait_until(check, deadline_seconds, f"{what} ({self.name})", self.log_tail)

    def wait_exit(self, deadline_seconds: float) -> int:
        """Wait for the process to end by itself and return its exit status."""
        guard = self._guard
        if guard is None:
            raise LabError(f"{self.name} was never started")
        try:
            status = guard.wait(deadline_seconds)
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name} did not end within {deadline_seconds:g} s\n{self.log_tail()}") from None
        self._after_exit(guard)
        return status

    def stop(self, deadline_seconds: float = 60.0) -> bool:
        """SIGTERM, and kill -9 once the deadline has passed; returns whether it ended by itself."""
        if not self.running:
            self._release()
            return True
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            self.wait_exit(deadline_seconds)
            return True
        except LabError:
            self.kill()
            return False

    def kill(self) -> None:
        """kill -9; returns when the process is gone."""
        if self.running:
            self._signal(signal.SIGKILL)
            self.wait_exit(10.0)
        self._release()

    def pause(self) -> None:
        """SIGSTOP: the process keeps its connections but does nothing; returns when all of it stands still."""
        self._signal(signal.SIGSTOP)
        assert self.pid is not None
        wait_until_stopped(self.pid)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self._signal(signal.SIGCONT)

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """The last lines of its log, headed by the file's path."""
        try:
            tail = self.log_file.read_text(errors="replace").splitlines()[-lines:]
        except OSError:
            tail = []
        return "\n".join([f"{self.log_file} ends with:" if tail else f"{self.log_file} is empty", *tail])

    def _signal(self, number: signal.Signals) -> None:
        """Through the guard, which is the parent: the process id cannot have been given away meanwhile."""
        guard = self._guard
        if guard is None or guard.poll() is not None:
            return
        assert guard.stdin is not None and guard.stdout is not None
        with self._lock:
            try:
                guard.stdin.write(f"{int(number)}\n".encode())
                guard.stdin.flush()
            except (BrokenPipeError, ValueError):
                return
            guard.stdout.readline()

    def _after_exit(self, guard: subprocess.Popen[bytes]) -> None:
        """A guard that was itself killed cannot have taken its child along (outside Linux): do it here."""
        if guard.returncode < 0 and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._release()

    def _release(self) -> None:
        if self._guard is not None and not self.running:
            for stream in (self._guard.stdin, self._guard.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()

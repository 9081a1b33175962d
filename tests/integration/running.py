"""A command while it runs: what it has said so far, so that a test can meddle at a moment of its choice."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.plan.companions import journal_path
from tests.integration.cli import DEADLINE_SECONDS, REPOSITORY, CommandLine, Ran
from tests.lab.process import wait_until_stopped
from tests.lab.waiting import wait_until

POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Running:
    """A command that has been started; its output goes to files."""

    words: tuple[str, ...]
    process: subprocess.Popen[bytes]
    out: Path
    errors: Path

    @property
    def said(self) -> str:
        """All that stands on its stderr by now."""
        return self.errors.read_text()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait_for(self, text: str) -> None:
        """Wait until it says so on stderr; what ends before has failed."""

        def told() -> bool:
            ended = self.has_ended
            assert text in self.said or not ended, f"it never said {text!r}\n{self.result()}"
            return text in self.said

        wait_until(told, DEADLINE_SECONDS, f"{text!r} on stderr", lambda: self.said, POLL_SECONDS)

    def stop(self) -> None:
        """Stand still (SIGSTOP) until `go_on`."""
        self.process.send_signal(signal.SIGSTOP)
        wait_until_stopped(self.process.pid)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9, of what has not ended by itself before."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL, f"it had ended by itself\n{self.result()}"

    def ends_within(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def result(self) -> Ran:
        """What has become of it; it must end in time."""
        assert self.ends_within(DEADLINE_SECONDS), f"{self.words[0]} did not end\n{self.out.read_text()}\n{self.said}"
        return Ran("mm2-migrate " + " ".join(self.words), self.process.returncode, self.out.read_text(), self.said)


@contextmanager
def started(
    commands: CommandLine,
    *words: str,
    before: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    in_child: Callable[[], None] | None = None,
) -> Iterator[Running]:
    """Start a command, killed with all that it has started once the test is done with it.

    `before` are words of a command that runs it; `in_child` is called in the new process first.
    """
    settings = {k: v for k, v in os.environ.items() if not k.startswith("MM2_MIGRATE_")}
    settings |= {"PYTHONPATH": str(REPOSITORY), **(environment or {})}
    number = len(list(commands.folder.glob("command-*.out")))
    out, errors = commands.folder / f"command-{number}.out", commands.folder / f"command-{number}.err"
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "migrate", *words],
            cwd=commands.folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=in_child,
        )
    try:
        yield Running(words, process, out, errors)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def applying(
    commands: CommandLine, plan: str, *options: str, groups: int = 1, concurrency: int = 2, **how: Any
) -> Iterator[Running]:
    """An apply with few calls in flight, once its journal has the outcome of so many groups, or once it has ended."""
    approved = commands.approved(plan)
    journal = journal_path(commands.folder / plan, approved[1])
    few = ("--concurrency", str(concurrency))
    with started(commands, "apply", plan, *commands.clusters, *approved, *few, *options, **how) as running:

        def begun() -> bool:
            written = journal.read_bytes() if journal.exists() else b""
            return written.count(b'"event":"outcome"') >= groups or running.has_ended

        wait_until(begun, DEADLINE_SECONDS, "the first groups to be written", lambda: running.said, 0.002)
        yield running

"""What the audience sees: headings, sentences, commands with their output, and how long each step took."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

WIDTH = 80
COMMAND_DEADLINE_SECONDS = 600.0
# The shell's own settings must not change the commands that are shown; where downloads come from is no such one.
PREFIX = "MM2_MIGRATE_"
KEPT_VARIABLES = frozenset({"MM2_MIGRATE_CACHE", "MM2_MIGRATE_MAVEN_REPOSITORY"})
REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("mm2-migrate")


class DemoError(RuntimeError):
    """The demo cannot go on; the message is fit to be shown as it is."""


class Stage:
    """Prints to stdout, and runs the product in `folder`, against brokers of version `kafka`."""

    def __init__(self, kafka: str) -> None:
        self.folder = Path()
        self.kafka = kafka
        self._began = time.monotonic()
        self._steps: list[tuple[str, float]] = []

    # Words

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A numbered heading; the time until the end of the block is remembered."""
        heading = f"== {len(self._steps) + 1}. {title} "
        print(f"\n{heading:=<{WIDTH}}", flush=True)
        began = time.monotonic()
        yield
        self._steps.append((title, time.monotonic() - began))

    def say(self, text: str) -> None:
        """A paragraph, wrapped, with an empty line before it."""
        print()
        print(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False), flush=True)

    def note(self, text: str) -> None:
        """What has just been done, with the demo's clock in front."""
        print(f"  {self.elapsed:6.1f} s  {text}", flush=True)

    def lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            print(line, flush=True)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def timings(self) -> None:
        """How long each step took."""
        for title, seconds in self._steps:
            print(f"  {seconds:6.1f} s  {title}")
        print(f"  {self.elapsed:6.1f} s  in all", flush=True)

    # Commands

    def run(self, *args: str, into: str | None = None) -> None:
        """Print a command of the product, then run it; anything but exit 0 ends the demo.

        Its output goes where the demo's goes, as it is made, or into a file of `folder`.
        """
        print(f"\n{shown(args, into)}", flush=True)
        began = time.monotonic()
        if into is None:
            status = self._product(args, None)
        else:
            with (self.folder / into).open("wb") as file:
                status = self._product(args, file.fileno())
        if status != 0:
            raise DemoError(f"the command above ended with exit code {status}; 0 was expected.")
        print(f"  (exit 0, {time.monotonic() - began:.1f} s)", flush=True)

    def ask(self, *args: str) -> str:
        """Run the product without a word, and return what it prints."""
        name = "answer.out"
        with (self.folder / name).open("wb") as file:
            if self._product(args, file.fileno()) != 0:
                raise DemoError(f"`{' '.join(['mm2-migrate', *args])}` failed.")
        text = (self.folder / name).read_text()
        (self.folder / name).unlink()
        return text

    def _product(self, args: Sequence[str], stdout: int | None) -> int:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX) or k in KEPT_VARIABLES}
        environment["PYTHONPATH"] = str(REPOSITORY)
        sys.stdout.flush()
        # A session of its own: Ctrl-C comes to the demo alone, which then ends the command and its JVM.
        process = subprocess.Popen(
            [str(PROGRAM), *args],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            start_new_session=True,
        )
        try:
            return process.wait(COMMAND_DEADLINE_SECONDS)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise DemoError(f"the command did not end within {COMMAND_DEADLINE_SECONDS:g} s.") from None
            raise


def shown(args: Sequence[str], into: str | None = None) -> str:
    """The command as one would type it, broken by backslashes to fit the width."""
    words = ["mm2-migrate", *args, *([">", into] if into else [])]
    lines = ["$"]
    for word in pairs(words):
        if len(lines[-1]) + len(word) > WIDTH - 3:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def pairs(words: Sequence[str]) -> Iterator[str]:
    """Keep an option and its value together, so that no line break parts them."""
    taken = iter(range(len(words)))
    for i in taken:
        follows = words[i + 1] if i + 1 < len(words) else "-"
        if (words[i].startswith("--") or words[i] == ">") and not follows.startswith(("-", ">")):
            next(taken)
            yield f"{words[i]} {follows}"
        else:
            yield words[i]

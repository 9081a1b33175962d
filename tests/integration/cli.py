"""The product as a user has it: a command line in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from migrate.plan.file import stored_fingerprint
from tests.integration.warm import WARM

# Of a command that hangs: a busy machine takes minutes for what a quiet one does in one.
DEADLINE_SECONDS = 600.0
REPOSITORY = Path(__file__).resolve().parents[2]
OF_THE_TREE = (sys.executable, "-m", "migrate")


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    command: str
    exit_code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.stdout}\n{self.stderr}\nexit {self.exit_code}"

    def expect(self, exit_code: int) -> "Ran":
        """Return itself, or fail with everything that the command said."""
        assert self.exit_code == exit_code, f"expected exit {exit_code}\n{self}"
        assert "Traceback" not in self.stderr, str(self)
        return self

    def complaint(self) -> str:
        """The one paragraph that an error leaves on stderr, without the progress lines before it."""
        start = self.stderr.rfind("mm2-migrate: ")
        assert start >= 0, f"no complaint on stderr\n{self}"
        text = self.stderr[start:].strip()
        assert "\n\n" not in text, f"more than one paragraph\n{self}"
        return text


class HasFlow(Protocol):
    """What a lab offers that a command line needs."""

    mm2_properties: Path

    @property
    def options(self) -> Any: ...


def without_settings_of_ours() -> dict[str, str]:
    """This process's environment, without what would be a setting for a command."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MM2_MIGRATE_", "PYTHONPATH"))}


def run(
    *args: str,
    folder: Path,
    deadline_seconds: float = DEADLINE_SECONDS,
    environment: Mapping[str, str] | None = None,
    launcher: Sequence[str] = (),
    program: Sequence[str] = OF_THE_TREE,
) -> Ran:
    """Run the product in `folder`, with nothing of the caller's settings for it but `environment`.

    `launcher` are the words of a command that starts another, such as setpriv; `program` those that start the product.
    When the deadline passes, the command and the JVM that it may have started are killed.
    """
    settings = without_settings_of_ours()
    if program == OF_THE_TREE:
        settings["PYTHONPATH"] = str(REPOSITORY)
    settings |= environment or {}
    process = subprocess.Popen(
        [*launcher, *program, *args],
        cwd=folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=deadline_seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise AssertionError(
                f"{' '.join(args)} did not end within {deadline_seconds:g} s\n{stdout}\n{stderr}"
            ) from None
        raise
    return Ran("mm2-migrate " + " ".join(args), process.returncode, stdout, stderr)


def run_warm(*args: str, folder: Path, environment: Mapping[str, str] | None = None) -> Ran:
    """Run a command as `run` does, in the process whose Spark runs already."""
    settings = {**without_settings_of_ours(), "PYTHONPATH": str(REPOSITORY), **(environment or {})}
    return Ran("mm2-migrate " + " ".join(args), *WARM.run(args, folder, settings, DEADLINE_SECONDS))


def wider(lines: Iterable[str], width: int) -> list[str]:
    """The lines that do not fit, but for commands, which are to be copied, and single words: neither is wrapped."""
    return [line for line in lines if len(line) > width and "mm2-migrate" not in line and len(line.split()) > 1]


@dataclass(frozen=True)
class CommandLine:
    """The commands against one flow, in a folder where plans and journals go; `launcher` and `program` as in `run`.

    Those that are `warm` share a process whose Spark runs already: for scenes about what commands say and do, and not
    about their process, its start, its end or what it needs.
    """

    folder: Path
    clusters: tuple[str, ...]
    launcher: tuple[str, ...] = ()
    program: tuple[str, ...] = OF_THE_TREE
    warm: bool = False

    @classmethod
    def of(cls, lab: HasFlow, folder: Path, warm: bool = False) -> "CommandLine":
        options = lab.options
        names = ("--source", options.source_alias, "--target", options.target_alias)
        return cls(folder, ("--mm2-config", str(lab.mm2_properties), *names), warm=warm)

    def against(self, *clusters: str) -> "CommandLine":
        """The same folder, other clusters."""
        return replace(self, clusters=clusters)

    def inside(self, folder: Path) -> "CommandLine":
        """The same clusters, another folder."""
        return replace(self, folder=folder)

    def run(self, *args: str) -> Ran:
        if self.warm:
            assert not self.launcher and self.program == OF_THE_TREE, "a warm process is started by nothing else"
            return run_warm(*args, folder=self.folder)
        return run(*args, folder=self.folder, launcher=self.launcher, program=self.program)

    def plan(self, name: str, *options: str) -> Ran:
        return self.run("plan", *self.clusters, "--settle", "1", "--out", name, *options)

    def show(self, name: str, form: str) -> str:
        return self.run("show", name, "--format", form).expect(0).stdout

    def document(self, name: str) -> dict[str, Any]:
        """The whole plan as `show --format json` gives it."""
        loaded: dict[str, Any] = json.loads(self.show(name, "json"))
        return loaded

    def planned(self, ran: Ran, name: str) -> dict[str, Any]:
        """Return the plan that a run has made; its exit code is 3 if anything blocks or there is no row, else 0."""
        document = self.document(name)
        blocks = [check for check in document["checks"] if check["counts_as"] == "block" and not check["accepted"]]
        blocks += [row for row in document["rows"] if row["decision"] == "block"]
        ran.expect(3 if blocks or not document["rows"] else 0)
        return document

    def approved(self, name: str) -> tuple[str, ...]:
        """The words that approve a plan as it is now, and have it executed."""
        return ("--approve", stored_fingerprint(self.folder / name), "--execute")

    def apply(self, name: str, *options: str) -> Ran:
        return self.run("apply", name, *self.clusters, *options)

    def execute(self, name: str, *options: str) -> Ran:
        """Apply with the plan's own fingerprint as approval."""
        return self.apply(name, *self.approved(name), *options)

    def verify(self, name: str, *options: str) -> Ran:
        return self.run("verify", name, *self.clusters, *options)

    def rollback(self, name: str, *options: str) -> Ran:
        return self.run("rollback", name, *self.clusters, *options)

    def undo(self, name: str, *options: str) -> Ran:
        """Roll back with the plan's own fingerprint as approval."""
        return self.rollback(name, *self.approved(name), *options)


Place = tuple[str, str, int]
"""A group, a topic and a partition."""


def kcg_lines(text: str) -> dict[Place, int]:
    """Read the CSV that kafka-consumer-groups reads: group, target topic, partition, offset."""
    found: dict[Place, int] = {}
    for line in text.splitlines():
        group, topic, partition, offset = line.rsplit(",", 3)
        place = (group, topic, int(partition))
        assert place not in found, f"{place} stands twice"
        found[place] = int(offset)
    return found


def planned_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[Place, int]:
    """The planned offset of every group, target topic and partition."""
    return {(row["group"], row["target_topic"], row["partition"]): row["target_offset"] for row in rows}


def committed_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[Place, int]:
    """The committed source offset of every group, source topic and partition."""
    return {(row["group"], row["source_topic"], row["partition"]): row["source_committed"] for row in rows}

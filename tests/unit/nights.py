"""A night of commands as they are typed, on a target in memory: what the tests of a plan's life share."""

import itertools
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import Result

from migrate.model import LogRange
from migrate.plan.file import read_plan, write_plan
from migrate.plan.plan import Plan
from tests.fakes import Crash, FakeApplyEdges, FakeCluster
from tests.unit.commands import clusters, plug_in, run
from tests.unit.plans import plan, row

GROUPS = [f"g{n:02}" for n in range(12)]
PLANNED, PRIOR = 60, 10
UNDO = "undo.plan"


class Night:
    """A folder, a target in memory, and the commands. Every group is at 10, and moves to 60."""

    def __init__(self, folder: Path, target: FakeCluster) -> None:
        self.folder = folder
        self.target = target
        self.ticks = itertools.count()
        self.clusters = clusters(folder)

    def plan(self, name: str = "cutover.plan", prior: int | None = PRIOR) -> Plan:
        made = plan(
            *(row(group, target_prior=prior, source_log_start=None, source_log_end=None) for group in GROUPS),
            source_down=True, source_cluster_id="", created_at_ms=next(self.ticks),
        )  # fmt: skip
        write_plan(made, self.folder / name)
        for r in made.rows:
            self.target.ranges[r.target_partition] = LogRange(0, 100)
        return made

    def applied(self) -> None:
        """Make the plan, and apply it."""
        self.plan()
        ends(self.execute("apply", "cutover.plan"), 0)

    def run(self, command: str, name: str, *options: str, folder: Path | None = None) -> Result:
        path = (folder or self.folder) / name
        return run(command, str(path), *self.clusters, "--concurrency", "1", *options)

    def execute(self, command: str, name: str, *options: str, folder: Path | None = None) -> Result:
        approval = read_plan((folder or self.folder) / name).fingerprint
        return self.run(command, name, "--approve", approval, "--execute", *options, folder=folder)

    def killed(self, command: str, name: str, after: int, folder: Path | None = None) -> None:
        """Run a command that dies right after so many groups were written."""
        self.target.crash_after = after
        with pytest.raises(Crash):
            raise self.execute(command, name, folder=folder).exception or AssertionError("it was not killed")

    def save_undo(self, name: str = UNDO, plan_name: str = "cutover.plan") -> Result:
        return self.run("rollback", plan_name, "--out", str(self.folder / name))

    def at(self) -> dict[str, int | None]:
        return {g: self.target.held(g).get(("A.orders", 0)) for g in GROUPS}

    def all_at(self, offset: int | None) -> bool:
        return set(self.at().values()) == {offset}

    def elsewhere(self) -> Path:
        """Another folder with a copy of the plan, and no journal."""
        other = self.folder / "elsewhere"
        other.mkdir()
        shutil.copy(self.folder / "cutover.plan", other)
        return other


def told(result: Result) -> str:
    return " ".join((result.stdout + result.stderr).split())


def ends(result: Result, code: int, *words: str) -> None:
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
    for word in words:
        assert word in told(result), f"{word!r}\n{result.stdout}\n{result.stderr}"


def first_line(night: Night, *words: str) -> str:
    return told(run(*words, str(night.folder / "cutover.plan")))


def verify(night: Night, *options: str) -> Result:
    return run("verify", str(night.folder / "cutover.plan"), *night.clusters, *options)


def night_on(folder: Path, patch: pytest.MonkeyPatch) -> Night:
    """Plug in a target where every group is at its prior offset."""
    target = FakeCluster(ids={"A.orders": "id-1", "A.bills": "id-2"})
    for group in GROUPS:
        target.commit(group, "A.orders", 0, PRIOR)
    edges = nullcontext(FakeApplyEdges(target))
    plug_in(patch, apply_session=lambda *_: edges, get_ready=lambda: None)
    return Night(folder, target)

"""Which test reaches which line of the product, by one run of the tests under coverage."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import click
from coverage import CoverageData

from scripts.mutation.reach_plugin import RUNNING, SECONDS

# Every process of the run reads these as it starts; one that a test starts is measured under that test. Coverage's own
# way to its subprocesses, `patch = subprocess`, hands on a context that was read before the first test.
SETTINGS = f"""
[run]
source = migrate
relative_files = True
parallel = True
patch = _exit
context = ${{{RUNNING}-}}
"""


@dataclass
class Reach:
    """What a run of the tests has told: `folder` holds the lines by test and the seconds of each test that passed."""

    folder: Path
    _by_file: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    @cached_property
    def seconds(self) -> dict[str, float]:
        return dict(json.loads((self.folder / "seconds.json").read_text()))

    @cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(str(self.folder / "lines"))
        data.read()
        return data

    def of_lines(self, file: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that reach one of the lines, and "" where one was reached while no test ran."""
        by_line = self._of(file)
        return {test for line in lines for test in by_line.get(line, ())}

    def of_file(self, file: str) -> set[str]:
        """Return the tests that reach any line of a file."""
        return set().union(*self._of(file).values())

    def _of(self, file: str) -> dict[int, list[str]]:
        if file not in self._by_file:
            self._by_file[file] = self._data.contexts_by_lineno(file)
        return self._by_file[file]


def reach(tree: Path, folder: Path, tests: Sequence[str], jobs: int) -> Reach:
    """Run the tests in the tree, unless `folder` has their outcome. Tests that do not pass are left out."""
    found = Reach(folder)
    if (folder / "seconds.json").exists() and (folder / "lines").exists():
        return found
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("lines*"):
        left.unlink()
    settings = folder / "coveragerc"
    settings.write_text(f"{SETTINGS}data_file = {folder / 'lines'}\n")
    environment = os.environ | {"PYTHONPATH": str(tree)}
    measured = {"COVERAGE_PROCESS_START": str(settings), SECONDS: str(folder / "seconds.json")}
    options = ["-q", "-n", str(jobs), "-p", "no:cacheprovider"]
    plugins = ["-p", "scripts.mutation.plugin", "-p", "scripts.mutation.reach_plugin"]
    with (folder / "output").open("w") as output:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *plugins, *tests],
            cwd=tree, env=environment | measured, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
    if done.returncode > 1:
        raise click.ClickException(f"pytest ended with {done.returncode}: see {folder / 'output'}")
    combine = [sys.executable, "-m", "coverage", "combine", "--quiet", f"--rcfile={settings}"]
    subprocess.run(combine, cwd=tree, env=environment, check=True)
    return found

"""Breaks a copy of the tree, one mutant at a time, and looks whether the tests notice."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.mutants.mutant import BadMutant, Mutant

ROOT = Path(__file__).parents[2]
# A mutant may never end; on the unbroken product its tests take a few seconds.
DEADLINE_SECONDS = 300.0
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
PASSED, FAILED = 0, 1
CODES = {2: "interrupted, or not even collected", 3: "internal error", 4: "wrong usage", 5: "no tests collected"}


class Fate(StrEnum):
    """What became of a mutant. Only a test that ran and failed kills."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One mutant's fate. `told` is the first test that failed, or what went wrong."""

    mutant: Mutant
    fate: Fate
    told: str
    seconds: float


class UnbrokenFails(Exception):
    """Raised where the tests fail without any mutant: then their failing says nothing."""


def judged(mutants: Sequence[Mutant], jobs: int = 1, tell: Callable[[Verdict], None] = lambda v: None) -> list[Verdict]:
    """Run every mutant, `jobs` at a time; `tell` is called with each verdict as it comes."""
    with TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        first = Path(folder, "0").resolve()
        shutil.copytree(ROOT, first, ignore=NOT_COPIED)
        selected = sorted({test for mutant in mutants for test in mutant.tests})
        code, output = run_pytest(first, selected, None)
        if code != PASSED:
            raise UnbrokenFails(output)
        trees: SimpleQueue[Path] = SimpleQueue()
        trees.put(first)
        for number in range(1, jobs):
            # With the compiled modules, which stay valid: times of change are copied, too.
            trees.put(Path(shutil.copytree(first, first.with_name(str(number)))))

        def judge(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                verdict = _verdict(mutant, tree)
            finally:
                trees.put(tree)
            tell(verdict)
            return verdict

        return list(pool.map(judge, mutants))


def _verdict(mutant: Mutant, tree: Path) -> Verdict:
    began = time.monotonic()
    try:
        with planted(tree / mutant.file, mutant.broken(tree)):
            code, output = run_pytest(tree, mutant.tests, DEADLINE_SECONDS)
        fate, told = fate_of(code, output)
    except (BadMutant, OSError, subprocess.TimeoutExpired) as error:
        fate, told = Fate.ERROR, f"{error}"
    return Verdict(mutant, fate, told, time.monotonic() - began)


@contextmanager
def planted(file: Path, broken: str) -> Iterator[None]:
    """Have a broken text in a file for as long as the context lasts."""
    unbroken = file.stat()
    text = file.read_text()
    try:
        file.write_text(broken)
        # Python takes a compiled module for current by its time in whole seconds and its size.
        os.utime(file, (unbroken.st_atime, unbroken.st_mtime + 10))
        yield
    finally:
        file.write_text(text)
        os.utime(file, ns=(unbroken.st_atime_ns, unbroken.st_mtime_ns))


def fate_of(code: int, output: str) -> tuple[Fate, str]:
    """Return what pytest's exit code and output say, and the first test that failed."""
    if code == PASSED:
        return Fate.SURVIVED, "nothing"
    failing = re.search(r"^(?:FAILED|ERROR) (tests/\S+::.+?)(?: - .*)?$", output, re.MULTILINE)
    if code == FAILED and failing:
        return Fate.KILLED, failing[1]
    last = output.strip().splitlines()[-1:] or [""]
    return Fate.ERROR, f"pytest ended with {code} ({CODES.get(code, 'unknown')}): {last[0]}"


def run_pytest(tree: Path, tests: Sequence[str], deadline_seconds: float | None) -> tuple[int, str]:
    """Return pytest's exit code and output; without a deadline for the unbroken product."""
    # What an outer pytest tells its own processes is not meant for this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_CORE_"))}
    # For processes that tests start elsewhere: they are to import this tree's product as well.
    environment["PYTHONPATH"] = str(tree)
    # A compiled mutant must not outlive it.
    environment["PYTHONDONTWRITEBYTECODE"] = "1" if deadline_seconds else ""
    options = ("-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=deadline_seconds, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout

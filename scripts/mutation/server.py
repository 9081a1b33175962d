"""A pytest plugin that runs for each mutant the tests that reach it, in a fork of a process that has collected them."""

import gc
import importlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from scripts.mutation.mutant import Mutant

# The names of two files: the tasks of this process, and where it adds the outcome of each.
TASKS, OUTCOMES = "MUTATION_TASKS", "MUTATION_OUTCOMES"

KILLED, TIMEOUT, SURVIVED, UNREACHED = "killed", "timeout", "survived", "unreached"

# A test may take this and so many times what it takes on the unbroken product: other work may use the cores.
LEAST_SECONDS, MOST_TIMES = 20.0, 10.0


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant, and the tests that reach it, in order, with their seconds.

    `runs_early` is true where its code runs before the first test as well, and is not broken yet.
    """

    mutant: Mutant
    tests: dict[str, float]
    runs_early: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant, and by which test; `is_final` is false where a new process has to try it again."""

    identity: str
    fate: str
    by: str
    tests: int
    seconds: float
    is_final: bool = True


def written(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome)) + "\n"


def tasks_written(tasks: Sequence[Task]) -> str:
    return json.dumps([asdict(task) for task in tasks])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    if session.testsfailed:
        raise session.Interrupted("not every test could be collected")
    forks = _Forks(session)
    tasks = json.loads(Path(os.environ[TASKS]).read_text())
    for task in tasks:
        outcome = forks.outcome(Task(Mutant(**task["mutant"]), task["tests"], task["runs_early"]))
        with Path(os.environ[OUTCOMES]).open("a") as outcomes:
            outcomes.write(written(outcome))
    return True


class _Forks:
    """Runs tests in forks of this process, one fork at a time."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        # Whether a test that killed passes in a fork without a mutant: else its failing says nothing.
        self._passes: dict[str, bool] = {}

    def outcome(self, task: Task) -> Outcome:
        began = time.monotonic()
        mutant = task.mutant
        tests = {test: seconds for test, seconds in task.tests.items() if test in self._items}
        unbroken, broken = Path(mutant.file).read_text(), mutant.text(Path())
        while True:
            with planted(Path(mutant.file), broken):
                fate, by = self._fork(tests, lambda: put_in(mutant.file, unbroken, broken))
            if fate == SURVIVED or not by or self._passes_unbroken(by, tests[by]):
                break
            del tests[by]
        # Where the fork ended before its first test, the mutant could not be put into it.
        is_put_in = fate == SURVIVED or by != ""
        return Outcome(
            mutant.identity, fate if is_put_in else SURVIVED, by, len(tests), round(time.monotonic() - began, 2),
            is_final=is_put_in and not (fate == SURVIVED and task.runs_early),
        )  # fmt: skip

    def _passes_unbroken(self, test: str, seconds: float) -> bool:
        if test not in self._passes:
            self._passes[test] = self._fork({test: seconds}, lambda: None)[0] == SURVIVED
        return self._passes[test]

    def _fork(self, tests: dict[str, float], prepare: Callable[[], None]) -> tuple[str, str]:
        """Return a fate, and the test that failed or did not end."""
        reading, writing = os.pipe()
        folder = tempfile.mkdtemp(prefix="fork-")
        child = os.fork()
        if not child:
            os.close(reading)
            self._run([self._items[test] for test in tests], prepare, writing, folder)
        os.close(writing)
        test = ""
        try:
            # Without a buffer: a line in it would not be seen by select.
            with os.fdopen(reading, "rb", buffering=0) as pipe:
                while select.select([pipe], [], [], LEAST_SECONDS + MOST_TIMES * tests.get(test, 0.0))[0]:
                    line = pipe.readline().decode().strip()
                    if line == SURVIVED:
                        return SURVIVED, ""
                    # The fork ended, be it by the mutant.
                    if line in (KILLED, ""):
                        return KILLED, test
                    test = line
            return TIMEOUT, test
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, items: list[pytest.Item], prepare: Callable[[], None], pipe: int, folder: str) -> None:
        """Be the child: say each test before it runs, and in the end that all have passed; never return."""
        try:
            tempfile.tempdir = os.environ["TMPDIR"] = folder
            prepare()
            # To collect garbage among all that was there before takes longer than most tests.
            gc.freeze()
            for item, following in zip(items, [*items[1:], None], strict=True):
                os.write(pipe, f"{item.nodeid}\n".encode())
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._session.testsfailed:
                    # Ends what fixtures have started.
                    self._session._setupstate.teardown_exact(None)
                    os.write(pipe, f"{KILLED}\n".encode())
                    break
            else:
                os.write(pipe, f"{SURVIVED}\n".encode())
        finally:
            os._exit(0)


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


def put_in(file: str, unbroken: str, broken: str) -> None:
    """Give the functions of this process the code that differs in the broken text of their module."""
    parts = Path(file).with_suffix("").parts
    module = importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    assert module.__file__
    same = set(_codes(compile(unbroken, module.__file__, "exec")))
    changed = {_place(code): code for code in _codes(compile(broken, module.__file__, "exec")) if code not in same}
    functions = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__code__.co_filename == module.__file__
        and _place(function.__code__) in changed
    ]
    for function in functions:
        function.__code__ = changed[_place(function.__code__)]
    # Else the tests would pass on the unbroken product.
    assert functions


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)

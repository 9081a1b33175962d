"""Options and fixtures that several suites share."""

import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.cputime import cpu_seconds
from tests.lab.fixtures import lab, lab_factory
from tests.seeds import DEFAULT_SEED, VARIABLE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser.reading import Reader


# One lab for the whole run, whoever asks for it.
__all__ = ["lab", "lab_factory"]

# No deadline: a busy machine is no failure. Default runs draw the same examples and scenes every time, --long draws new
# ones, and keeps the examples that fail in .hypothesis/examples.
settings.register_profile("default-run", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("long-run", deadline=None, print_blob=True)


TESTS = Path(__file__).parent

# What the tests of a folder need besides Python: `scripts/test --quick` leaves them out by these marks.
NEEDS = {"spark": "spark", "integration": "kafka", "browser": "browser"}

# Seconds after which a test hangs, fixtures included, by folder, and with --long. They guard against hangs, and are no
# bound on how long a test takes: a busy machine takes four times as long as an idle one, and each limit is beyond that.
LIMITS = {"unit": 300, "spark": 600, "browser": 300, "integration": 900}
LIMIT_WITH_LONG = 3600

# Skips that CI may have, by words of their reasons, and why. Any other fails there: a test that nobody ran must not
# look as if it had passed.
SKIPS_IN_CI = {
    "MariaDB is missing": "a large package for one long test",
    "Kerberos' KDC is missing": "packages of the system for one long scene",
    "confluent-kafka was built without Kerberos": "as all that PyPI has",
    "this machine has no IPv6": "containers often have none",
    "this machine lets nobody mount": "containers rarely may",
    "no name space with another /etc/hosts": "containers rarely may make one",
}

# Characters of a failure that are told at once: all of it follows in the end.
MOST_TOLD = 2000


class FailuresAtOnce:
    """Tells each failure as it happens: a long run that is broken off has told what it found."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal:
            terminal.ensure_newline()
            terminal.write_line(f"FAILED {report.nodeid} ({report.when})")
            terminal.write_line(report.longreprtext[-MOST_TOLD:])


# CPU seconds that a test file may take, with its fixtures and every process that it starts, by folder. One that takes
# more is named at the end of a run: it is to become cheaper, or another one.
BUDGETS = {"unit": 20.0, "spark": 60.0, "browser": 20.0, "integration": 100.0}
# Files that take fewer seconds are not listed.
LEAST_SECONDS = 20.0
CPU_SECONDS = "cpu_seconds"


def folder_of(path: Path) -> str:
    """Return the kind of a test file by its folder; an extra has folders of these names of its own."""
    return next((part for part in path.parts if part in LIMITS), "unit")


class FileTimes:
    """Says at the end what each test file took, by the clock and of the cores: where a run's minutes go."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._cpu: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        if report.when == "teardown":
            self._cpu[file] += sum(float(value) for name, value in report.user_properties if name == CPU_SECONDS)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        longest = [(file, seconds) for file, seconds in self._seconds.most_common() if seconds >= LEAST_SECONDS]
        if not longest:
            return
        terminalreporter.section("seconds by file: by the clock, of the cores")
        for file, seconds in longest:
            budget = BUDGETS[folder_of(Path(file))]
            over = f"  over its budget of {budget:.0f}" if self._cpu[file] > budget else ""
            terminalreporter.write_line(f"{seconds:7.0f} {self._cpu[file]:7.0f}  {file}{over}")
        terminalreporter.write_line(f"{self._seconds.total():7.0f} {self._cpu.total():7.0f}  all files")


_cpu_before = 0.0


def pytest_collection_finish() -> None:
    global _cpu_before
    _cpu_before = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Note what a file took of the cores, once its last test is over."""
    global _cpu_before
    yield
    if nextitem is None or nextitem.path != item.path:
        now = cpu_seconds()
        item.user_properties.append((CPU_SECONDS, f"{max(0.0, now - _cpu_before):.1f}"))
        _cpu_before = now


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
        config.pluginmanager.register(FileTimes())
    settings.load_profile("long-run" if config.getoption("--long") else "default-run")
    seed = config.getoption("--seed")
    if seed is not None or not config.getoption("--long"):
        os.environ[VARIABLE] = str(DEFAULT_SEED if seed is None else seed)
    # A background job, and what runs under nohup, inherit that they ignore these; tests send them to themselves.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    # A JVM that lives for one small plan compiles for longer than it runs; the lab's brokers start so as well.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
    # readline, which pytest imports, sets them for the processes that it starts: no terminal is meant by that.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


def pytest_runtest_setup() -> None:
    # A Spark that a file before has started in this process leaves its own handler, which fails once Spark is stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run every count in full")
    parser.addoption("--seed", type=int, help="draw scenes, worlds and kills from this seed; a failure names its own")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One lab for a default run; a lane of `--long` ends sooner where each of its two workers has one."""
    from tests.workers import SharedStarts

    return None if config.getoption("--long") or config.getoption("dist") != "loadfile" else SharedStarts(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_long = config.getoption("--long")
    for item in items:
        folder = folder_of(item.path.relative_to(TESTS))
        if folder in NEEDS:
            item.add_marker(NEEDS[folder])
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_WITH_LONG if is_long else LIMITS[folder]))
    if not is_long:
        left_out = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items.sort(key=lambda item: turn_of(item.path))


def turn_of(file: Path) -> int:
    """When a file's turn comes in a default run: first those that one worker runs one after another, last the quick."""
    from tests.workers import shared_start

    return 0 if shared_start(file) else 1 if folder_of(file.relative_to(TESTS)) in NEEDS else 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        if not any(words in reason for words in SKIPS_IN_CI):
            report.outcome = "failed"
            report.longrepr = f"{reason} (SKIPS_IN_CI of tests/conftest.py lists what may be skipped in CI)"
    return report


@pytest.fixture(scope="session")
def chromium() -> "Iterator[Browser]":
    """The system's Chromium, started once: a second one would find the first one's event loop in its way."""
    from tests.browser.reading import chromium_running

    with chromium_running() as browser:
        yield browser


@pytest.fixture
def reader(chromium: "Browser") -> "Iterator[Reader]":
    from tests.browser.reading import Reader

    reading = Reader(chromium)
    yield reading
    reading.close()

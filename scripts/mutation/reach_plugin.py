"""A pytest plugin of the run that finds out which test reaches which line, and how long each test takes."""

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

# The test that runs: coverage takes it for the context of processes that the test starts.
RUNNING = "MUTATION_RUNNING_TEST"
SECONDS = "MUTATION_SECONDS"

_seconds: dict[str, float] = {}
_not_passed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measuring = Coverage.current()
    assert measuring is not None
    os.environ[RUNNING] = item.nodeid
    measuring.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        measuring.switch_context("")
        del os.environ[RUNNING]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _not_passed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        passed = {test: seconds for test, seconds in _seconds.items() if test not in _not_passed}
        Path(os.environ[SECONDS]).write_text(json.dumps(passed))

"""A real Chromium, the system's own; without one these tests are skipped, and the run says so in its last lines."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.reading import CHROMIUM, NONE, Reader, chromium_running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip(reason=NONE))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CHROMIUM is None and any("browser" in str(r.nodeid) for r in terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(NONE, red=True, bold=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with chromium_running() as browser:
        yield browser


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Reader]:
    reading = Reader(chromium)
    yield reading
    reading.close()

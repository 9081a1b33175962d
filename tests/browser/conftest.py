"""A real Chromium, the system's own; without one these tests are skipped, and the run says so in its last lines."""

import pytest

from tests.browser.reading import CHROMIUM, NONE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if CHROMIUM is None and any("browser" in str(r.nodeid) for r in terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(NONE, red=True, bold=True)

"""A real Chromium, the system's own, that opens reports from files with the network cut off."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("MM2_MIGRATE_TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
NONE = (
    "NO CHROMIUM: the report was not tested in a browser (Debian: apt-get install chromium; else name one with "
    "MM2_MIGRATE_TEST_CHROMIUM)"
)


@contextmanager
def chromium_running() -> Iterator[Browser]:
    """Start Chromium, and end it."""
    with sync_playwright() as playwright:
        # a container's root has no sandbox to enter, and little shared memory
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page that was opened with the network cut off, and what it complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the groups listed, in their order."""
        return self.page.locator("#list > tbody > tr[data-group] > td:first-child").all_inner_texts()


class Reader:
    """Opens reports; each in a context of its own."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def open(self, path: Path, width: int = 1440, scheme: str = "light", fragment: str = "") -> Opened:
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True,  # type: ignore[arg-type]
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        self._contexts.append(context)
        opened = Opened(context.new_page())
        told = opened.complaints
        opened.page.on("console", lambda message: told.append(f"console {message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: told.append(f"error: {error}"))
        opened.page.on("requestfailed", lambda request: told.append(f"failed: {request.url}"))
        opened.page.on(
            "request",
            lambda request: (
                None if request.url.split("#")[0] == path.as_uri() else told.append(f"asked for {request.url}")
            ),
        )
        opened.page.goto(path.as_uri() + fragment)
        opened.page.wait_for_selector("#list > tbody > tr, #standing p")
        opened.page.wait_for_selector("#standing > *", state="attached")
        return opened

    def close(self) -> None:
        for context in self._contexts:
            context.close()

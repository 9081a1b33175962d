"""Time as a port: what waits or stamps takes a clock, so that tests need not wait."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Protocol

# Synchronised clocks differ by seconds. Beyond this, a time of one machine says nothing about the age by another's.
CLOCKS_APART_MS = 5 * 60_000


class Clock(Protocol):
    """Tells the time, and waits."""

    def now_ms(self) -> int:
        """Return the time of day in ms since 1970, UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for deadlines."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


def pauses(first_seconds: float, longest_seconds: float) -> Iterator[float]:
    """Yield how long to wait before each further try of what failed in passing: ever twice as long, up to a limit."""
    while True:
        yield first_seconds
        first_seconds = min(2 * first_seconds, longest_seconds)


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time of day in ms since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go back, for deadlines."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds."""
        time.sleep(seconds)


def iso(time_ms: int) -> str:
    """Return a time of day as "2026-11-21T06:39:24.123Z"."""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def minute(time_ms: int) -> str:
    """Return a time of day for people: "2026-11-21 06:39 UTC"; seconds are cut off, so that it never comes late."""
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M} UTC"

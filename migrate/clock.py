"""Time as a port: what waits or stamps takes a clock, so that tests need not wait."""

import math
import time
from datetime import UTC, datetime
from typing import Protocol

# Synchronised clocks differ by seconds. Beyond this, a time of one machine says nothing about the age by another's.
CLOCKS_APART_MS = 5 * 60_000
# Any client can write what is none: commits and records have the times that it sent.
LATEST_DATE_MS = 253_402_300_799_999


class Clock(Protocol):
    """Tells the time, and waits."""

    def now_ms(self) -> int:
        """Return the time of day in ms since 1970, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for deadlines."""

    def wait(self, seconds: float, /) -> None:
        """Return after so many seconds."""


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)
    wait = staticmethod(time.sleep)

    def now_ms(self) -> int:
        """Return the time of day in ms since 1970, UTC."""
        return time.time_ns() // 1_000_000


class Backoff:
    """Pauses between tries of what failed in passing: each twice as long as the one before, up to a limit.

    The tries end `deadline_seconds` after it was made.
    """

    def __init__(
        self, clock: Clock, first_seconds: float, longest_seconds: float, deadline_seconds: float = math.inf
    ) -> None:
        self._clock = clock
        self._pause_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._end = clock.monotonic() + deadline_seconds

    @property
    def is_over(self) -> bool:
        """True if there is no time for another try."""
        return self._clock.monotonic() >= self._end

    def pause(self) -> None:
        """Wait before another try, at most until the deadline."""
        self._clock.wait(max(0.0, min(self._pause_seconds, self._end - self._clock.monotonic())))
        self._pause_seconds = min(2 * self._pause_seconds, self._longest_seconds)


def is_date(time_ms: int) -> bool:
    """True if a time in ms since 1970 lies in the years 1970 to 9999."""
    return 0 <= time_ms <= LATEST_DATE_MS


def iso(time_ms: int) -> str:
    """Return a time of day as "2026-11-21T06:39:24.123Z"; what is no date of the years 1970 to 9999 as a number."""
    if not is_date(time_ms):
        return f"{time_ms} ms since 1970"
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def ms_of(text: str) -> int:
    """Return a time of day in ms since 1970 from what `iso` made of it; raises `ValueError` for what is no time."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def minute(time_ms: int) -> str:
    """Return a time of day for people: "2026-11-21 06:39 UTC"; seconds are cut off, so that it never comes late.

    What is no date of the years 1970 to 9999 is a number.
    """
    if not is_date(time_ms):
        return f"{time_ms} ms since 1970"
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d %H:%M} UTC"

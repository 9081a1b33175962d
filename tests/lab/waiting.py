"""The lab's one way of waiting, and its error type."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.1


class LabError(RuntimeError):
    """Something in the lab went wrong; the message is fit to be shown as it is."""


class NotAnswered(LabError):
    """A cluster did not answer, or with an error; it may answer the next time."""


def wait_until(
    condition: Callable[[], T | None],
    deadline_seconds: float,
    what: str,
    detail: Callable[[], str] | None = None,
    poll_seconds: float = POLL_SECONDS,
) -> T:
    """Return the first true value of `condition`, or raise LabError once the deadline has passed.

    `what` completes the sentence "gave up after N s waiting for ..."; `detail` is asked for the state
    at that moment. The condition is always tried at least once. Where a cluster does not answer, it is not true yet.
    """
    end = time.monotonic() + deadline_seconds
    while True:
        try:
            value = condition()
        except NotAnswered:
            if time.monotonic() >= end:
                raise
            value = None
        if value:
            return value
        if time.monotonic() >= end:
            state = f": {detail()}" if detail is not None else ""
            raise LabError(f"gave up after {deadline_seconds:g} s waiting for {what}{state}")
        time.sleep(poll_seconds)

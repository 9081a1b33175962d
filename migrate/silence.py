"""Which clusters are asked right now, and since when they have said nothing: a step that takes long is not yet a fault.

Whoever waits for a cluster says so with `asking`, and `heard` at each part of an answer; progress says `silence_text`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# After so many seconds without a sign of life a cluster is named.
SILENT_SECONDS = 8.0


@dataclass(eq=False, slots=True)
class OpenCall:
    """A question that a cluster has still to answer; `deadline_seconds` is how long one request may take."""

    name: str
    deadline_seconds: float
    heard_at: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long nothing has been heard."""
        return time.monotonic() - self.heard_at


_open: list[OpenCall] = []


@contextmanager
def asking(name: str, deadline_seconds: float) -> Iterator[None]:
    """Keep a call open, to a cluster by its name in messages, for as long as this lasts."""
    call = OpenCall(name, deadline_seconds)
    _open.append(call)
    try:
        yield
    finally:
        _open.remove(call)


def heard(name: str) -> None:
    """Note a part of an answer: a cluster that goes on answering is not a silent one."""
    for call in list(_open):
        if call.name == name:
            call.heard_at = time.monotonic()


def longest_silence() -> OpenCall | None:
    """Return the call without a sign of life for longest; None where nothing is asked."""
    return min(list(_open), key=lambda call: call.heard_at, default=None)


def silence_text() -> str:
    """Return which cluster has been silent the longest and how long it is waited for; "" where all answer."""
    call = longest_silence()
    if call is None or call.seconds < SILENT_SECONDS:
        return ""
    # Without its addresses: the line is to fit a terminal.
    cluster = call.name.partition(" (")[0]
    return f"no answer from {cluster} for {call.seconds:.0f} of {call.deadline_seconds:g} s"

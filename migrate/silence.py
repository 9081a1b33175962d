"""Which clusters are asked right now, and since when they have said nothing: a step that takes long is not yet a fault.

Whoever asks a cluster says so with `asking`; what shows progress says `silence_text`.
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

    cluster: str
    deadline_seconds: float
    heard_at: float = field(default_factory=time.monotonic)

    def heard(self) -> None:
        """Note a part of the answer: a cluster that goes on answering is not a silent one."""
        self.heard_at = time.monotonic()


_open: list[OpenCall] = []


@contextmanager
def asking(cluster: str, deadline_seconds: float) -> Iterator[OpenCall]:
    """Keep a call open, to a cluster by its side and alias, for as long as this lasts."""
    call = OpenCall(cluster, deadline_seconds)
    _open.append(call)
    try:
        yield call
    finally:
        _open.remove(call)


def silence_text() -> str:
    """Return which cluster has been silent the longest and how long it is waited for; "" where all answer."""
    call = min(list(_open), key=lambda call: call.heard_at, default=None)
    seconds = 0.0 if call is None else time.monotonic() - call.heard_at
    if call is None or seconds < SILENT_SECONDS:
        return ""
    return f"no answer from {call.cluster} for {seconds:.0f} of {call.deadline_seconds:g} s"

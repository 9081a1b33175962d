"""Looking again and again until everything is ready: the loop of `status --watch`, and its end."""

from collections.abc import Callable
from dataclasses import dataclass

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.status import Status
from migrate.watching import Watch

# From one look to the next, and between the two readings of the log ends within one, in seconds.
EVERY_SECONDS = 2.0
GLANCE_SECONDS = 1.0

Look = Callable[[float], Status]


@dataclass(frozen=True)
class Told:
    """What a watcher is told after each look: the status, and a note where there is one ("" where not)."""

    status: Status
    watch: Watch
    note: str = ""


def watch_until_ready(
    look: Look, settle_seconds: float, timeout_seconds: float | None, clock: Clock, tell: Callable[[Told], None]
) -> Status:
    """Look until everything is ready, or the time is up; return the last status.

    `look` takes the seconds between its two readings. Most looks are glances; what a glance finds ready is looked at
    once more, over the whole settle time, and only that ends the watch. A cluster that does not answer is asked again:
    raises `ClusterError` only if it never did, or the time is up.
    """
    began = clock.monotonic()
    watch = Watch()
    last: Status | None = None
    while True:
        round_began = clock.monotonic()
        try:
            last = look(min(settle_seconds, GLANCE_SECONDS))
            watch.take(last, clock.monotonic() - began)
            if last.is_ready and settle_seconds > GLANCE_SECONDS:
                tell(Told(last, watch, f"looking for {settle_seconds:.0f} s whether it stays so"))
                last = look(settle_seconds)
                watch.take(last, clock.monotonic() - began)
            tell(Told(last, watch))
            if last.is_ready:
                return last
        except ClusterError as error:
            if last is None or _is_over(began, timeout_seconds, clock):
                raise
            tell(Told(last, watch, f"{error.problem} Trying again."))
        if _is_over(began, timeout_seconds, clock):
            return last
        pause = EVERY_SECONDS - (clock.monotonic() - round_began)
        if timeout_seconds is not None:
            pause = min(pause, began + timeout_seconds - clock.monotonic())
        if pause > 0:
            clock.wait(pause)


def _is_over(began: float, timeout_seconds: float | None, clock: Clock) -> bool:
    return timeout_seconds is not None and clock.monotonic() - began >= timeout_seconds

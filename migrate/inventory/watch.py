"""Looking at a cluster's groups again and again, for `--watch`.

As in `status --watch`, a look runs in a thread of its own: meanwhile the watcher hears once a second how old the last
one is, and which question has waited too long, so that a cluster that fell silent does not leave an old picture on
the screen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.plan.watch import EVERY_SECONDS, LATE_AFTER, LATE_AT_MOST, TICK_SECONDS, BackgroundLook, Sight, Waiting

T = TypeVar("T")


@dataclass(frozen=True)
class Glance(Generic[T]):
    """What a watcher hears: the last look (None before there is one), and how fresh it is.

    `is_tick` is True where only time has passed.
    """

    seen: T | None
    sight: Sight
    is_tick: bool


def watch_groups(
    begin: Callable[[], BackgroundLook[T]],
    timeout_seconds: float | None,
    clock: Clock,
    tell: Callable[[Glance[T]], None],
) -> T:
    """Look until the time is up, or for ever; return what the last look saw.

    A cluster that does not answer is asked again: raises `ClusterError` only if it never did, or where the newest look
    failed when the time was up.
    """
    began = clock.monotonic()
    seen: T | None = None
    seen_at, problem, patience = began, "", LATE_AFTER

    def say(waiting: Waiting | None = None, is_tick: bool = False) -> None:
        age = clock.monotonic() - seen_at if seen is not None else 0.0
        tell(Glance(seen, Sight(age, waiting, problem), is_tick))

    def is_over() -> bool:
        return timeout_seconds is not None and clock.monotonic() - began >= timeout_seconds

    while True:
        look_began = clock.monotonic()
        look = begin()
        while not look.ended_within(TICK_SECONDS):
            waiting = look.waiting()
            say(waiting if waiting is not None and waiting.seconds > patience else None, is_tick=True)
            if is_over() and waiting is not None:
                raise ClusterError(
                    f"The time is up, and there has been no answer to: {waiting.question}.",
                    "Look at that cluster, then run again.",
                )
        try:
            seen = look.result()
            seen_at, problem = clock.monotonic(), ""
            # One question that takes longer than a whole look did is late; on a large cluster that is not two seconds.
            patience = min(LATE_AT_MOST, max(LATE_AFTER, look.asked_seconds))
        except ClusterError as error:
            if seen is None or is_over():
                raise
            problem = error.problem
        say()
        if is_over() and seen is not None:
            return seen
        pause = EVERY_SECONDS - (clock.monotonic() - look_began)
        if timeout_seconds is not None:
            pause = min(pause, began + timeout_seconds - clock.monotonic())
        if pause > 0:
            clock.wait(pause)

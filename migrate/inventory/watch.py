"""Looking at a cluster's groups again and again, for `--watch`.

As in `status --watch`, a look runs in a thread of its own: meanwhile the watcher hears once a second how old the last
one is, and which question has waited too long, so that a cluster that fell silent does not leave an old picture on
the screen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.plan.watch import EVERY_SECONDS, LATE_AFTER, BackgroundLook, Sight, Waiting, late_questions, patience_after
from migrate.progress import LONGEST_SECONDS

T = TypeVar("T")


@dataclass(frozen=True)
class Glance(Generic[T]):
    """What a watcher hears: the last look (None before there is one), and how fresh it is.

    `is_tick` is True where only time has passed: worth a new drawing on a screen, no line in a log. A question that is
    late is worth a line, and more of them ever more slowly.
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

    There is a pause after each look, and no look begins once the time is up. One that is under way then may end, unless
    its question is late. A cluster that does not answer is asked again: raises `ClusterError` only if it never did, or
    where the last look failed.
    """
    began = clock.monotonic()
    watcher = _Watcher(begin, math.inf if timeout_seconds is None else began + timeout_seconds, clock, tell, began)
    while True:
        seen = watcher.look()
        watcher.pause()
        if seen is not None and watcher.is_over:
            return seen


@dataclass
class _Watcher(Generic[T]):
    """Looks and tells; `seen` is the last look, `problem` why there is no newer one ("" where there is none).

    `ends_at` and `spoke_at` are seconds of the clock; `silence` is how long nothing more is said of a late question.
    """

    begin: Callable[[], BackgroundLook[T]]
    ends_at: float
    clock: Clock
    tell: Callable[[Glance[T]], None]
    spoke_at: float
    silence: float = EVERY_SECONDS
    seen: T | None = None
    problem: str = ""
    _seen_at: float = 0.0
    _patience: float = LATE_AFTER

    @property
    def is_over(self) -> bool:
        """True once the time is up."""
        return self.clock.monotonic() >= self.ends_at

    def look(self) -> T | None:
        """Look once and tell; return what was seen, None where that failed and there is time for another look."""
        pending = self.begin()
        try:
            self._wait_for(pending)
            seen = pending.result()
        except ClusterError as error:
            if self.seen is None or self.clock.monotonic() + EVERY_SECONDS >= self.ends_at:
                raise
            self.problem = error.problem
            self._say()
            return None
        self.seen, self.problem, self._seen_at = seen, "", self.clock.monotonic()
        self._patience = patience_after(pending)
        self.silence = EVERY_SECONDS
        self._say()
        return seen

    def pause(self) -> None:
        """Leave the cluster alone until the next look is due, or the time is up."""
        seconds = min(EVERY_SECONDS, self.ends_at - self.clock.monotonic())
        if seconds > 0:
            self.clock.wait(seconds)

    def _wait_for(self, pending: BackgroundLook[T]) -> None:
        """Tell what a look waits for until it ends; raises `ClusterError` where the time is up and nobody answers."""
        for late in late_questions(pending, self._patience, lambda: self.is_over):
            is_due = late is not None and self.clock.monotonic() - self.spoke_at >= self.silence
            self._say(late, is_tick=not is_due)
            if is_due:
                self.silence = min(2 * self.silence, LONGEST_SECONDS)

    def _say(self, late: Waiting | None = None, is_tick: bool = False) -> None:
        now = self.clock.monotonic()
        if not is_tick:
            self.spoke_at = now
        age = now - self._seen_at if self.seen is not None else 0.0
        self.tell(Glance(self.seen, Sight(age, late, self.problem), is_tick))

"""Looking again and again until everything is ready: the loop of `status --watch`, and its end.

A look is under way aside. While it is, the watcher hears once a second how old the last status is, and which question
has waited too long: a cluster that fell silent must not leave yesterday's verdict on the screen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from migrate.clock import Clock
from migrate.duration import duration_text
from migrate.errors import ClusterError
from migrate.plan.settling import Sight, Waiting, Watch
from migrate.plan.status import Status

# From one look to the next, and between the two readings of the log ends within one, in seconds.
EVERY_SECONDS = 2.0
GLANCE_SECONDS = 1.0
# How often what is shown grows older, in seconds.
TICK_SECONDS = 1.0
# A question is late when it alone takes longer than the whole look before it; in seconds, no sooner and no later.
LATE_AFTER, LATE_AT_MOST = EVERY_SECONDS, 10.0


class Pending(Protocol):
    """A look that is under way (`migrate.plan.looking.BackgroundLook`)."""

    def ended_within(self, seconds: float) -> bool:
        """Wait so long at most; return whether the look is over."""
        ...

    def result(self) -> Status:
        """Return what was seen; raises what the look raised."""
        ...

    def waiting(self) -> Waiting | None:
        """Return the question that it waits for; None where nothing is asked."""
        ...

    @property
    def asked_seconds(self) -> float:
        """How long clusters have taken for their answers."""
        ...


Begin = Callable[[float], Pending]


@dataclass(frozen=True)
class Told:
    """What a watcher hears: the last status (None before there is one), how fresh it is, a note ("" where none).

    `is_tick` is True where only time has passed: worth a new drawing on a screen, no line in a log. A question that is
    late is worth a line every few seconds.
    """

    status: Status | None
    watch: Watch
    note: str = ""
    sight: Sight = Sight()
    is_tick: bool = False


def watch_until_ready(
    begin: Begin, settle_seconds: float, timeout_seconds: float | None, clock: Clock, tell: Callable[[Told], None]
) -> Status:
    """Look until everything is ready, or the time is up; return the last status.

    `begin` takes the seconds between a look's two readings. Most looks are glances; what a glance finds ready is looked
    at once more, over the whole settle time, and only that ends the watch. A cluster that does not answer is asked
    again: raises `ClusterError` only if it never did, or the time is up. What is returned is of the newest look.
    """
    watcher = _Watcher(begin, timeout_seconds, clock, tell, clock.monotonic())
    while True:
        round_began = clock.monotonic()
        try:
            status = watcher.look(min(settle_seconds, GLANCE_SECONDS))
            if status.is_ready and settle_seconds > GLANCE_SECONDS:
                note = f"looking for {settle_seconds:.0f} s whether it stays so"
                watcher.settling = True
                watcher.say(note)
                status = watcher.look(settle_seconds, note)
            watcher.say()
            if status.is_ready or watcher.is_over:
                return status
        except ClusterError as error:
            if watcher.last is None or watcher.is_over:
                raise
            watcher.problem = error.problem
            watcher.say(f"{error.problem} Trying again.")
        watcher.pause(EVERY_SECONDS - (clock.monotonic() - round_began))


@dataclass
class _Watcher:
    """Looks and tells; `last` is the last status, `problem` why there is no newer one ("" where there is none).

    `settling` is True while `last` is a glance that found everything ready, and nothing more.
    """

    begin: Begin
    timeout_seconds: float | None
    clock: Clock
    tell: Callable[[Told], None]
    began: float
    watch: Watch = field(default_factory=Watch)
    last: Status | None = None
    problem: str = ""
    settling: bool = False
    _last_at: float = 0.0
    _spoke_at: float = 0.0
    _patience: float = LATE_AFTER

    @property
    def is_over(self) -> bool:
        """True once the time is up."""
        return self.timeout_seconds is not None and self.clock.monotonic() - self.began >= self.timeout_seconds

    def look(self, settle_seconds: float, note: str = "") -> Status:
        """Look once, and say while it lasts what it waits for; raises `ClusterError` where nobody answers in time."""
        pending = self.begin(settle_seconds)
        while not pending.ended_within(TICK_SECONDS):
            waiting = pending.waiting()
            late = waiting if waiting is not None and waiting.seconds > self._patience else None
            if late is not None and self.is_over:
                raise ClusterError(
                    f"The time is up, and there has been no answer for {duration_text(late.seconds)} to: "
                    f"{late.question}.",
                    "Look at that cluster, then run again.",
                )
            is_due = late is not None and self.clock.monotonic() - self._spoke_at >= EVERY_SECONDS
            self.say(note, late, is_tick=not is_due)
        status = pending.result()
        self._patience = min(LATE_AT_MOST, max(LATE_AFTER, pending.asked_seconds))
        self.last, self.problem, self._last_at = status, "", self.clock.monotonic()
        self.settling = False
        self.watch.take(status, self._last_at - self.began)
        return status

    def say(self, note: str = "", late: Waiting | None = None, is_tick: bool = False) -> None:
        """Tell the last status, and how fresh it is."""
        now = self.clock.monotonic()
        if not is_tick:
            self._spoke_at = now
        age = now - self._last_at if self.last is not None else 0.0
        self.tell(Told(self.last, self.watch, note, Sight(age, late, self.problem, self.settling), is_tick))

    def pause(self, seconds: float) -> None:
        """Wait until the next look is due, or the time is up."""
        if self.timeout_seconds is not None:
            seconds = min(seconds, self.began + self.timeout_seconds - self.clock.monotonic())
        if seconds > 0:
            self.clock.wait(seconds)

"""Looking again and again, for `--watch`: the loop, its looks, and how fresh what it shows is.

A look runs in a thread of its own. Meanwhile whoever watches hears once a second how old the last one is, and which
question has waited too long: a cluster that fell silent must not leave an old picture on the screen, and one can leave
at any time.
"""

import math
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.progress import LONGEST_SECONDS, QuietProgress, in_background
from migrate.silence import longest_silence
from migrate.text import duration_text

# From one look to the next, in seconds.
EVERY_SECONDS = 2.0
# How often what is shown grows older, in seconds.
TICK_SECONDS = 1.0
# Seconds after which an open question is late, and after which a watch whose time is up does not wait for it any more.
LATE_AFTER, GIVE_UP_AFTER = EVERY_SECONDS, 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that has no answer yet: what is asked, of whom, and for how long."""

    question: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh a look is that is shown: its age, and what keeps a newer one from coming.

    `waiting` is there only for a question that is late. `problem` says why the newest look
    failed, "" where it did not. `settling` is True from a glance that found everything ready until the look over the
    whole settle time, which decides, has ended.
    """

    age_seconds: float = 0.0
    waiting: Waiting | None = None
    problem: str = ""
    settling: bool = False

    @property
    def is_current(self) -> bool:
        """True where what is shown is of the newest look, and the next one is not late."""
        return self.waiting is None and not self.problem


@dataclass(frozen=True)
class Glance(Generic[T]):
    """What whoever watches hears: the last look (None before there is one), how fresh it is, a note ("" for none).

    `is_tick` is True where only time has passed: worth a new drawing on a screen, no line in a log. A question that is
    late is worth a line, and more of them ever more slowly.
    """

    seen: T | None
    freshness: Freshness = Freshness()
    note: str = ""
    is_tick: bool = False


class LastStep(QuietProgress):
    """Progress of looks: `text` is the step that the present one is at."""

    text = ""

    def step(self, text: str) -> None:
        """Note a new step."""
        self.text = text


class Wakeful:
    """A clock that asks something every few seconds of a long wait: a cluster that falls silent meanwhile is noticed.

    `ask` may raise; that ends the wait.
    """

    def __init__(self, clock: Clock, ask: Callable[[], None], every_seconds: float = EVERY_SECONDS) -> None:
        self._clock = clock
        self.now_ms, self.monotonic = clock.now_ms, clock.monotonic
        self._ask = ask
        self._every = every_seconds

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, and no sooner."""
        end = self.monotonic() + seconds
        while (left := end - self.monotonic()) > 0:
            self._clock.wait(min(left, self._every))
            if left > self._every:
                self._ask()


class BackgroundLook(Generic[T]):
    """One look in a thread of its own, which nobody has to wait for: what hangs ends with the process."""

    def __init__(self, look: Callable[[], T], progress: LastStep) -> None:
        self._progress = progress
        self._seen = in_background(look, "look")

    def ended_within(self, seconds: float) -> bool:
        """Wait so long at most; return whether the look is over."""
        return bool(wait([self._seen], seconds).done)

    def result(self) -> T:
        """Return what was seen; raises what the look raised."""
        return self._seen.result()

    def waiting(self) -> Waiting | None:
        """Return the step that waits for a cluster, and how long; None where none is asked: we wait of our own will."""
        call = longest_silence()
        return None if call is None else Waiting(self._progress.text, call.seconds)


@dataclass
class Watcher(Generic[T]):
    """Waits for looks and tells; `seen` is the last look, `problem` why there is no newer one ("" where there is none).

    `settling` is True while `seen` is a look that the next one has still to confirm. `began` and `seen_at` are seconds
    of the clock, `_silence` is how long nothing more is said of a late question.
    """

    timeout_seconds: float | None
    clock: Clock
    tell: Callable[[Glance[T]], None]
    seen: T | None = None
    problem: str = ""
    settling: bool = False
    began: float = field(init=False)
    seen_at: float = 0.0
    _silence: float = EVERY_SECONDS

    def __post_init__(self) -> None:
        self.began = self._spoke_at = self.clock.monotonic()

    @property
    def seconds_left(self) -> float:
        """How long it may still look; infinite where no time was set."""
        return math.inf if self.timeout_seconds is None else self.began + self.timeout_seconds - self.clock.monotonic()

    @property
    def is_over(self) -> bool:
        """True once the time is up."""
        return self.seconds_left <= 0

    def look(self, pending: BackgroundLook[T], note: str = "") -> T:
        """Return what a look saw, and say while it lasts what it waits for.

        Raises what the look raised, and `ClusterError` where a question is late and the time is up.
        """
        while not pending.ended_within(TICK_SECONDS):
            waiting = pending.waiting()
            late = waiting if waiting is not None and waiting.seconds > LATE_AFTER else None
            if late is not None and late.seconds >= GIVE_UP_AFTER and self.is_over:
                waited = duration_text(late.seconds)
                raise ClusterError(
                    f"The time is up, and there has been no answer for {waited} to: {late.question}.",
                    "Look at that cluster, then run again.",
                )
            is_due = late is not None and self.clock.monotonic() - self._spoke_at >= self._silence
            self.say(note, late, is_tick=not is_due)
            if is_due:
                self._silence = min(2 * self._silence, LONGEST_SECONDS)
        self.seen = pending.result()
        self.seen_at, self.problem, self.settling = self.clock.monotonic(), "", False
        self._silence = EVERY_SECONDS
        return self.seen

    def failed(self, error: ClusterError) -> None:
        """Say that the newest look failed, and that there will be another."""
        self.problem = error.problem
        self.say(f"{error.problem} Trying again.")

    def say(self, note: str = "", late: Waiting | None = None, is_tick: bool = False) -> None:
        """Tell the last look, and how fresh it is."""
        now = self.clock.monotonic()
        if not is_tick:
            self._spoke_at = now
        age = now - self.seen_at if self.seen is not None else 0.0
        self.tell(Glance(self.seen, Freshness(age, late, self.problem, self.settling), note, is_tick))

    def pause(self, seconds: float) -> None:
        """Leave the clusters alone until the next look is due, or the time is up."""
        seconds = min(seconds, self.seconds_left)
        if seconds > 0:
            self.clock.wait(seconds)


def watch_until_over(
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
    watcher = Watcher(timeout_seconds, clock, tell)
    while True:
        try:
            watcher.look(begin())
            watcher.say()
        except ClusterError as error:
            if watcher.seen is None or watcher.seconds_left <= EVERY_SECONDS:
                raise
            watcher.failed(error)
        watcher.pause(EVERY_SECONDS)
        if watcher.is_over and watcher.seen is not None:
            return watcher.seen

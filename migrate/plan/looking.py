"""A look that runs aside, so that whoever watches sees what it waits for, and can leave at any time."""

from collections.abc import Callable
from threading import Event, Thread

from migrate.clock import Clock
from migrate.plan.settling import Waiting
from migrate.plan.status import Status


class Asking:
    """Progress and clock of looks at once: it knows which question is open, and since when.

    One thread asks, another may look on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # One value, replaced as a whole: who looks on never sees the text of one question with the time of another.
        self._open: tuple[str, float] | None = None
        self._asked = 0.0

    def step(self, text: str) -> None:
        """Note a new question; the one before it is answered."""
        self._close()
        self._open = text, self._clock.monotonic()

    def advance(self, done: int, total: int) -> None:
        """Note a part of the answer: a cluster that goes on answering is not a silent one."""
        if self._open is not None:
            self.step(self._open[0])

    def end(self) -> None:
        """Note that nothing is asked any more."""
        self._close()

    def now_ms(self) -> int:
        """Return the time of day, as `Clock` does."""
        return self._clock.now_ms()

    def monotonic(self) -> float:
        """Return seconds that never go back, as `Clock` does."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait of our own will: no cluster is late then."""
        self._close()
        self._clock.wait(seconds)

    def waiting(self) -> Waiting | None:
        """Return the open question; None where nothing is asked."""
        asked = self._open
        return None if asked is None else Waiting(asked[0], self._clock.monotonic() - asked[1])

    @property
    def asked_seconds(self) -> float:
        """How long clusters have taken for their answers so far, all together."""
        return self._asked

    def _close(self) -> None:
        asked, self._open = self._open, None
        if asked is not None:
            self._asked += self._clock.monotonic() - asked[1]


class Wakeful:
    """A clock that asks something every few seconds of a long wait: a cluster that falls silent meanwhile is noticed.

    `ask` may raise; that ends the wait.
    """

    def __init__(self, clock: Clock, ask: Callable[[], None], every_seconds: float) -> None:
        self._clock = clock
        self._ask = ask
        self._every = every_seconds

    def now_ms(self) -> int:
        """Return the time of day, as `Clock` does."""
        return self._clock.now_ms()

    def monotonic(self) -> float:
        """Return seconds that never go back, as `Clock` does."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, and no sooner."""
        end = self._clock.monotonic() + seconds
        while (left := end - self._clock.monotonic()) > 0:
            self._clock.wait(min(left, self._every))
            if left > self._every:
                self._ask()


class BackgroundLook:
    """One look in a thread of its own, which nobody has to wait for: what hangs ends with the process."""

    def __init__(self, look: Callable[[], Status], asking: Asking) -> None:
        self._look = look
        self._asking = asking
        self._asked_before = asking.asked_seconds
        self._status: Status | None = None
        self._error: BaseException | None = None
        self._over = Event()
        Thread(target=self._run, name="look", daemon=True).start()

    def ended_within(self, seconds: float) -> bool:
        """Wait so long at most; return whether the look is over."""
        return self._over.wait(seconds)

    def result(self) -> Status:
        """Return what was seen; raises what the look raised. Only once it has ended."""
        if self._error is not None:
            raise self._error
        assert self._status is not None, "the look is not over"
        return self._status

    def waiting(self) -> Waiting | None:
        """Return the question that it waits for."""
        return self._asking.waiting()

    @property
    def asked_seconds(self) -> float:
        """How long clusters have taken for the answers of this look, without the time that it waited by itself."""
        return self._asking.asked_seconds - self._asked_before

    def _run(self) -> None:
        try:
            self._status = self._look()
        except BaseException as error:  # also what ends a program: it belongs to whoever waits for the look
            self._error = error
        finally:
            self._asking.end()
            self._over.set()

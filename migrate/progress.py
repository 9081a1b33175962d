"""Progress on stderr: what step, how far, how long yet.

In a log it is one line per step, and one more whenever a long step has gone on for another while; on a terminal the
line of the present step is written over until the step is done. A step that cannot say how far it is says how long
it has taken: a heartbeat, so that a slow cluster is not mistaken for a hang. A cluster that does not answer is named.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from threading import Event, Lock, Thread
from typing import TypeVar

from migrate.clock import Clock
from migrate.ports import Progress
from migrate.silence import silence_text
from migrate.text import cells, safe

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
FIRST_SECONDS = 2.0
LONGEST_SECONDS = 30.0
BEAT_SECONDS = 0.5
BATCH = 1000
LOGS_AT_ONCE = 5000


class LineProgress:
    """Writes a line per step, and more while it goes on.

    `write` takes text with its end. With `as_json` each line is a JSON object for log collectors. `columns` are a
    terminal's, where the line is written over at every look; 0 for a log, where lines follow each other two seconds
    after the step began, then ever more slowly, at most half a minute apart. `beat` is called from a thread.
    """

    def __init__(self, write: Callable[[str], None], clock: Clock, as_json: bool = False, columns: int = 0) -> None:
        self._write = write
        self._clock = clock
        self._as_json = as_json
        self._columns = 0 if as_json else columns
        self._began = self._step_began = self._last_line = clock.monotonic()
        self._pause = FIRST_SECONDS
        self._text = ""
        self._far: tuple[int, int] | None = None
        self._shown = 0
        self._lock = Lock()

    def step(self, text: str) -> None:
        """Begin a step; the one before it is done."""
        with self._lock:
            self._close_line()
            self._text, self._far, self._pause = text, None, FIRST_SECONDS
            self._step_began = self._clock.monotonic()
            self._say(text)

    def say(self, text: str) -> None:
        """Write a line that is whole by itself: no step begins, so the heart does not add how long it has taken."""
        with self._lock:
            self._close_line()
            self._text = ""
            self._say(text)

    def advance(self, done: int, total: int) -> None:
        """Say how far the step is, with an estimate of what is left; only if some time has passed."""
        with self._lock:
            if self._text and 0 < done < total:
                self._far = done, total
                self._say_again()

    def beat(self) -> None:
        """Say that the step still goes on, if some time has passed."""
        with self._lock:
            if self._text:
                self._say_again()

    def end(self) -> None:
        """Say nothing any more until the next step: results follow."""
        with self._lock:
            self._close_line()
            self._text = ""

    def _say_again(self) -> None:
        now = self._clock.monotonic()
        # A line that wrapped stays: said at every look, it would fill the screen.
        pause = BEAT_SECONDS if self._shown else self._pause
        if now - self._last_line < pause or now - self._step_began < FIRST_SECONDS:
            return
        self._pause = min(2 * self._pause, LONGEST_SECONDS)
        took = now - self._step_began
        if silence := silence_text():
            self._say(f"{self._text}: {silence}")
            return
        if self._far is None:
            self._say(f"{self._text}: {took:.0f} s so far")
            return
        done, total = self._far
        left = took * (total - done) / done
        self._say(f"{self._text}: {done:,} of {total:,}, about {left:.0f} s left", done=done, total=total)

    def _say(self, text: str, **more: int) -> None:
        self._last_line = self._clock.monotonic()
        elapsed = round(self._last_line - self._began, 1)
        if self._as_json:
            line = {"time_ms": self._clock.now_ms(), "elapsed_s": elapsed, "message": text, **more}
            self._write(json.dumps(line) + "\n")
            return
        line_text = safe(f"[{elapsed:5.1f} s] {text}")
        # A line that wraps cannot be written over; it stays, as it would in a log, and is not repeated.
        if not self._columns or cells(line_text) >= self._columns:
            self._close_line()
            self._write(line_text + "\n")
            return
        wide = cells(line_text)
        self._write("\r" + line_text + " " * max(0, self._shown - wide))
        self._shown = wide

    def _close_line(self) -> None:
        if self._shown:
            self._write("\n")
        self._shown = 0


class QuietProgress:
    """Reports nothing: for work in the background of a step that reports its own progress."""

    def step(self, text: str) -> None:
        """Say nothing."""

    def advance(self, done: int, total: int) -> None:
        """Say nothing."""


def beating(progress: LineProgress) -> Callable[[], None]:
    """Have a progress beat, from a thread of its own; return what stops that, after which no beat comes any more."""
    over = Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            progress.beat()

    def stop() -> None:
        over.set()
        thread.join()

    thread = Thread(target=beat, name="progress", daemon=True)
    thread.start()
    return stop


def in_background(action: Callable[[], V], name: str) -> "Future[V]":
    """Begin an action in a thread that nobody waits for when the command ends; what it raises is the future's."""
    outcome: Future[V] = Future()

    def run() -> None:
        try:
            outcome.set_result(action())
        except BaseException as error:  # also what ends a program: it belongs to whoever asks for the result
            outcome.set_exception(error)

    Thread(target=run, name=name, daemon=True).start()
    return outcome


def side_by_side(one: Callable[[], V], other: Callable[[], V]) -> tuple[V, V]:
    """Do both at once, in threads as those of `in_background`; return, or raise, once both are over."""
    both = in_background(one, "one side"), in_background(other, "other side")
    wait(both)
    return both[0].result(), both[1].result()


def batches(items: Sequence[V], size: int) -> Iterator[Sequence[V]]:
    """Cut a sequence into parts of at most `size`."""
    return (items[i : i + size] for i in range(0, len(items), size))


def in_batches(
    items: Sequence[K], ask: Callable[[Sequence[K]], Mapping[K, V]], progress: Progress, size: int = BATCH
) -> dict[K, V]:
    """Return the answers on all items, asked `size` at a time, saying how far it is in between."""
    answers: dict[K, V] = {}
    asked = 0
    for batch in batches(items, size):
        answers |= ask(batch)
        asked += len(batch)
        progress.advance(asked, len(items))
    return answers


class Timer:
    """Announces the steps of a run and times them: `timings` are seconds by step name, summed."""

    def __init__(self, clock: Clock, progress: Progress) -> None:
        self.clock = clock
        self.progress = progress
        self.timings: dict[str, float] = {}

    def run(self, name: str, text: str, action: Callable[[], T]) -> T:
        """Announce and time one step."""
        self.progress.step(text)
        began = self.clock.monotonic()
        try:
            return action()
        finally:
            took = self.clock.monotonic() - began
            self.timings[name] = round(self.timings.get(name, 0.0) + took, 3)

    def ask(
        self,
        name: str,
        text: str,
        items: Collection[K],
        question: Callable[[Collection[K]], Mapping[K, V]],
        size: int = BATCH,
    ) -> dict[K, V]:
        """Announce and time a step that asks the same of many items, saying how far it is."""
        return self.run(name, text, lambda: in_batches(list(items), question, self.progress, size))

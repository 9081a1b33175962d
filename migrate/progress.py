"""Progress on stderr: one line per step, so that it reads the same on a terminal and in a log."""

import json
from collections.abc import Callable

from migrate.clock import Clock


class Silent:
    """The default: says nothing."""

    def step(self, text: str) -> None:
        """Say nothing."""

    def advance(self, done: int, total: int) -> None:
        """Say nothing."""


class LineProgress:
    """Writes a line per step, and one more whenever a long step has gone on for another two seconds.

    `write` takes one line without its end. With `as_json` each line is a JSON object for log collectors.
    """

    def __init__(self, write: Callable[[str], None], clock: Clock, as_json: bool = False) -> None:
        self._write = write
        self._clock = clock
        self._as_json = as_json
        self._began = clock.monotonic()
        self._step_began = self._began
        self._last_line = self._began
        self._text = ""

    def step(self, text: str) -> None:
        """Begin a step."""
        self._text = text
        self._step_began = self._last_line = self._clock.monotonic()
        self._say(text)

    def advance(self, done: int, total: int) -> None:
        """Say how far the step is, at most every two seconds, with an estimate of what is left."""
        now = self._clock.monotonic()
        if now - self._last_line < 2 or not 0 < done < total:
            return
        self._last_line = now
        left = (now - self._step_began) * (total - done) / done
        self._say(f"{self._text}: {done} of {total}, about {left:.0f} s left", done=done, total=total)

    def _say(self, text: str, **more: int) -> None:
        elapsed = round(self._clock.monotonic() - self._began, 1)
        if self._as_json:
            line = {"time_ms": self._clock.now_ms(), "elapsed_s": elapsed, "message": text, **more}
            self._write(json.dumps(line, ensure_ascii=False))
        else:
            self._write(f"[{elapsed:5.1f} s] {text}")

"""How long a drain will take: from how many records were left at which moment. Pure.

MM2 copies in bursts, after a while in which it does nothing (it was paused, it rebalances), and while producers write
the rest does not shrink by what it copies. So the pace is that of the newer half of what was seen since the rest last
began to fall, never of less than some seconds; and where nothing falls there is no estimate, but a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# Over less than this a pace is one burst or one pause.
LEAST_SECONDS = 4.0
# What was longer ago says little about now.
MOST_SECONDS = 120.0
# A rest that has not fallen for so long has stopped falling, in seconds.
STALLED_SECONDS = 15.0


class Pace(StrEnum):
    """What the readings say; all but `FALLING` and `DONE` are reasons why nobody can tell how long it takes."""

    DONE = "done"
    FALLING = "falling"
    TOO_EARLY = "too-early"
    STALLED = "stalled"
    GROWING = "growing"


@dataclass(frozen=True, slots=True)
class Reading:
    """How many records were left to copy at one moment, in seconds of any clock that never goes back."""

    seconds: float
    left: int


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """What is left of a drain. `seconds` and `per_second` are None unless it is `FALLING` or `DONE`."""

    pace: Pace
    seconds: float | None = None
    per_second: float | None = None


def time_left(readings: Sequence[Reading]) -> TimeLeft:
    """Return how long it will take until nothing is left, by readings in order of time."""
    if not readings:
        return TimeLeft(Pace.TOO_EARLY)
    now = readings[-1]
    if now.left == 0:
        return TimeLeft(Pace.DONE, 0.0, 0.0)
    moving = _since_it_falls([r for r in readings if now.seconds - r.seconds <= MOST_SECONDS])
    moving_seconds = now.seconds - moving[0].seconds
    fell = moving[0].left - now.left
    if fell <= 0:
        watched = now.seconds - readings[0].seconds
        if watched < LEAST_SECONDS:
            return TimeLeft(Pace.TOO_EARLY)
        grew = now.left > min(r.left for r in readings if now.seconds - r.seconds <= STALLED_SECONDS)
        return TimeLeft(Pace.GROWING if grew else Pace.STALLED)
    if now.seconds - _last_fall(moving) > STALLED_SECONDS:
        return TimeLeft(Pace.STALLED)
    if moving_seconds < LEAST_SECONDS:
        return TimeLeft(Pace.TOO_EARLY)
    window = max(LEAST_SECONDS, moving_seconds / 2)
    first = next((r for r in reversed(moving) if now.seconds - r.seconds >= window), moving[0])
    if first.left <= now.left:
        first = moving[0]
    per_second = (first.left - now.left) / (now.seconds - first.seconds)
    return TimeLeft(Pace.FALLING, now.left / per_second, per_second)


def _since_it_falls(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings from the last highest rest on: before it, nothing was won."""
    highest = max(r.left for r in readings)
    at = max(i for i, r in enumerate(readings) if r.left == highest)
    return readings[at:]


def _last_fall(readings: Sequence[Reading]) -> float:
    """Return the moment at which the rest was less than ever before for the first time."""
    least = min(r.left for r in readings)
    return next(r.seconds for r in readings if r.left == least)

"""`status --watch`: looking until everything is ready, and how much MM2 has copied since; bars never fall."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.plan.status import Status, TopicStatus
from migrate.watch import EVERY_SECONDS, BackgroundLook, Glance, Watcher

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
    """Return how long it will take until nothing is left, by readings in order of time.

    MM2 copies in bursts, after a while in which it does nothing (it was paused, it rebalances), and while producers
    write the rest does not shrink by what it copies. So the pace is that of the newer half of what was seen since the
    rest last began to fall, never of less than some seconds; where nothing falls there is a reason and no estimate.
    """
    if not readings:
        return TimeLeft(Pace.TOO_EARLY)
    now = readings[-1]
    if now.left == 0:
        return TimeLeft(Pace.DONE, 0.0, 0.0)
    lately = [r.left for r in readings if now.seconds - r.seconds <= STALLED_SECONDS]
    recent = [r for r in readings if now.seconds - r.seconds <= MOST_SECONDS]
    highest = max(r.left for r in recent)
    # Before the last highest rest nothing was won.
    began = next(r for r in reversed(recent) if r.left == highest)
    falls = max(lately) > now.left
    if now.seconds - (began if falls else readings[0]).seconds < LEAST_SECONDS:
        return TimeLeft(Pace.TOO_EARLY)
    if not falls:
        return TimeLeft(Pace.GROWING if now.left > min(lately) else Pace.STALLED)
    window = max(LEAST_SECONDS, (now.seconds - began.seconds) / 2)
    first = next((r for r in reversed(recent) if now.seconds - r.seconds >= window and r.left > now.left), began)
    per_second = (first.left - now.left) / (now.seconds - first.seconds)
    return TimeLeft(Pace.FALLING, now.left / per_second, per_second)


# Between the two readings of the log ends within one look, in seconds.
GLANCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How much of a topic MM2 has copied: `done` of the `total` records in the source's log.

    `done` never falls; it reaches `total` only when the topic is proven to be copied in full. `seen_at` is the look's
    time, in seconds of a clock that never goes back. `still_seconds` is how long the target's log ends have not moved,
    None at the first look; `has_moved` is True once they have.
    """

    done: int
    total: int
    is_complete: bool
    target_end: int | None
    seen_at: float
    still_seconds: float | None = None
    has_moved: bool = False

    @property
    def is_copying(self) -> bool:
        """True where records were seen to arrive a moment ago: MM2 copies in bursts."""
        return self.has_moved and self.still_seconds is not None and self.still_seconds < STALLED_SECONDS

    @property
    def part(self) -> float:
        """What is done, from 0 to 1; 1 only if it is complete."""
        if self.is_complete:
            return 1.0
        return min(0.99, self.done / self.total) if self.total else 0.0

    @property
    def percent(self) -> int:
        """The same in whole percent, rounded down."""
        return int(100 * self.part)


@dataclass
class Watch:
    """Takes in one status after the other. `bars` are by source topic, without those of which nothing is known."""

    readings: list[Reading] = field(default_factory=list)
    bars: dict[str, CopyProgress] = field(default_factory=dict)
    _is_known: bool = False

    def take(self, status: Status, seconds: float) -> None:
        """Take in a status read at `seconds`, of a clock that never goes back."""
        for topic in status.topics:
            bar = self._bar(topic, seconds)
            if bar is not None:
                self.bars[topic.source_topic] = bar
        left = status.lag.records
        self._is_known = left is not None
        if left is not None:
            self.readings.append(Reading(seconds, left))

    def time_left(self) -> TimeLeft:
        """Return how long it will take until everything is copied; too early to tell where the last look could not."""
        return time_left(self.readings if self._is_known else ())

    def _bar(self, topic: TopicStatus, seconds: float) -> CopyProgress | None:
        copied, start, end = topic.copied, topic.source_start, topic.source_end
        if copied is None or start is None or end is None:
            return None
        before = self.bars.get(topic.source_topic)
        # An estimate may take back what an earlier one gave; a bar that goes back tells nobody anything.
        done = max(copied - start, before.done if before else 0)
        bar = CopyProgress(done, max(end - start, done), topic.drained is True, topic.target_end, seconds)
        if before is None or None in (before.target_end, bar.target_end):
            return bar
        if bar.target_end != before.target_end:
            return replace(bar, still_seconds=0.0, has_moved=True)
        still = (before.still_seconds or 0.0) + seconds - before.seen_at
        return replace(bar, still_seconds=still, has_moved=before.has_moved)


def watch_until_ready(
    begin: Callable[[float], BackgroundLook[Status]],
    settle_seconds: float,
    timeout_seconds: float | None,
    clock: Clock,
    tell: Callable[[Glance[Status]], None],
    watch: Watch,
) -> Status:
    """Look until everything is ready, or the time is up; return the last status. `watch` takes each of them in.

    `begin` takes the seconds between a look's two readings. Most looks are glances; what a glance finds ready is looked
    at once more, over the whole settle time, and only that ends the watch. A cluster that does not answer is asked
    again: raises `ClusterError` only if it never did, or the time is up. What is returned is of the newest look.
    """
    watcher = Watcher(timeout_seconds, clock, tell)

    def look(seconds: float, note: str = "") -> Status:
        status = watcher.look(begin(seconds), note)
        watch.take(status, watcher.seen_at - watcher.began)
        return status

    while True:
        round_began = clock.monotonic()
        try:
            status = look(min(settle_seconds, GLANCE_SECONDS))
            if status.is_ready and settle_seconds > GLANCE_SECONDS:
                note = f"looking for {settle_seconds:.0f} s whether it stays so"
                watcher.settling = True
                watcher.say(note)
                status = look(settle_seconds, note)
            watcher.say()
            if status.is_ready or watcher.is_over:
                return status
        except ClusterError as error:
            if watcher.seen is None or watcher.is_over:
                raise
            watcher.failed(error)
        watcher.pause(EVERY_SECONDS - (clock.monotonic() - round_began))

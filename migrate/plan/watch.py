"""Looking again and again until everything is ready: the loop of `status --watch`, and its end.

A look runs in a thread of its own. Meanwhile the watcher hears once a second how old the last status is, and which
question has waited too long: a cluster that fell silent must not leave yesterday's verdict on the screen, and whoever
watches can leave at any time. Bars never fall from one look to the next.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from migrate.clock import Clock
from migrate.errors import ClusterError
from migrate.plan.pace import Reading, TimeLeft, time_left
from migrate.plan.status import Status, TopicStatus
from migrate.progress import in_background
from migrate.text import duration_text


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How much of a topic MM2 has copied since the watch began: `done` of `total` records.

    `done` never falls; it reaches `total` only when the topic is proven to be copied in full.
    """

    done: int
    total: int
    is_complete: bool

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


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that has no answer yet: what is asked, of whom, and for how long."""

    question: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Sight:
    """How fresh a status is that is shown: its age, and what keeps a newer one from coming.

    `waiting` is there only for a question that has waited longer than a look takes. `problem` says why the newest look
    failed, "" where it did not. `settling` is True from a glance that found everything ready until the look over the
    whole settle time, which decides, has ended.
    """

    age_seconds: float = 0.0
    waiting: Waiting | None = None
    problem: str = ""
    settling: bool = False

    @property
    def is_current(self) -> bool:
        """True where the status shown is that of the newest look, and the next one is not late."""
        return self.waiting is None and not self.problem


@dataclass
class Watch:
    """Takes in one status after the other. `bars` are by source topic, without those of which nothing is known."""

    readings: list[Reading] = field(default_factory=list)
    bars: dict[str, CopyProgress] = field(default_factory=dict)
    _begun: dict[str, int] = field(default_factory=dict)
    _is_known: bool = False

    def take(self, status: Status, seconds: float) -> None:
        """Take in a status read at `seconds`, of a clock that never goes back."""
        for topic in status.topics:
            bar = self._bar(topic)
            if bar is not None:
                self.bars[topic.source_topic] = bar
        left = status.lag.records
        self._is_known = left is not None
        if left is not None:
            self.readings.append(Reading(seconds, left))

    def time_left(self) -> TimeLeft:
        """Return how long it will take until everything is copied; too early to tell where the last look could not."""
        return time_left(self.readings if self._is_known else ())

    def _bar(self, topic: TopicStatus) -> CopyProgress | None:
        copied, end = topic.copied, topic.source_end
        if copied is None or end is None:
            return None
        begun = self._begun.setdefault(topic.source_topic, copied)
        before = self.bars.get(topic.source_topic)
        # An estimate may take back what an earlier one gave; a bar that goes back tells nobody anything.
        done = max(copied - begun, before.done if before else 0)
        return CopyProgress(done, max(end - begun, done), topic.drained is True)


# From one look to the next, and between the two readings of the log ends within one, in seconds.
EVERY_SECONDS = 2.0
GLANCE_SECONDS = 1.0
# How often what is shown grows older, in seconds.
TICK_SECONDS = 1.0
# A question is late when it alone takes longer than the whole look before it; in seconds, no sooner and no later.
LATE_AFTER, LATE_AT_MOST = EVERY_SECONDS, 10.0

Begin = Callable[[float], "BackgroundLook[Status]"]
T = TypeVar("T")


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
        for late in late_questions(pending, self._patience, lambda: self.is_over):
            is_due = late is not None and self.clock.monotonic() - self._spoke_at >= EVERY_SECONDS
            self.say(note, late, is_tick=not is_due)
        status = pending.result()
        self._patience = patience_after(pending)
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


class Asking:
    """Progress and clock of looks at once: it knows which question is open, and since when.

    `asked_seconds` is how long clusters have taken for their answers so far, all together. One thread asks, another may
    look on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now_ms, self.monotonic = clock.now_ms, clock.monotonic
        # One value, replaced as a whole: who looks on never sees the text of one question with the time of another.
        self._open: tuple[str, float] | None = None
        self.asked_seconds = 0.0

    def step(self, text: str) -> None:
        """Note a new question; the one before it is answered."""
        self.end()
        self._open = text, self.monotonic()

    def advance(self, done: int, total: int) -> None:
        """Note a part of the answer: a cluster that goes on answering is not a silent one."""
        if self._open is not None:
            self.step(self._open[0])

    def end(self) -> None:
        """Note that nothing is asked any more."""
        asked, self._open = self._open, None
        if asked is not None:
            self.asked_seconds += self.monotonic() - asked[1]

    def wait(self, seconds: float) -> None:
        """Wait of our own will: no cluster is late then."""
        self.end()
        self._clock.wait(seconds)

    def waiting(self) -> Waiting | None:
        """Return the open question; None where nothing is asked."""
        asked = self._open
        return None if asked is None else Waiting(asked[0], self.monotonic() - asked[1])


class Wakeful:
    """A clock that asks something every few seconds of a long wait: a cluster that falls silent meanwhile is noticed.

    `ask` may raise; that ends the wait.
    """

    def __init__(self, clock: Clock, ask: Callable[[], None], every_seconds: float) -> None:
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

    def __init__(self, look: Callable[[], T], asking: Asking) -> None:
        self._asking = asking
        self._asked_before = asking.asked_seconds

        def run() -> T:
            try:
                return look()
            finally:
                asking.end()

        self._seen = in_background(run, "look")

    def ended_within(self, seconds: float) -> bool:
        """Wait so long at most; return whether the look is over."""
        return bool(wait([self._seen], seconds).done)

    def result(self) -> T:
        """Return what was seen; raises what the look raised."""
        return self._seen.result()

    def waiting(self) -> Waiting | None:
        """Return the question that it waits for; None where nothing is asked."""
        return self._asking.waiting()

    @property
    def asked_seconds(self) -> float:
        """How long clusters have taken for the answers of this look, without the time that it waited by itself."""
        return self._asking.asked_seconds - self._asked_before


def late_questions(
    look: BackgroundLook[Any], patience_seconds: float, is_over: Callable[[], bool]
) -> Iterator[Waiting | None]:
    """Yield once a second, until a look ends, the question that has waited longer than patience lasts; None for none.

    Raises `ClusterError` where a question is late and the time is up.
    """
    while not look.ended_within(TICK_SECONDS):
        waiting = look.waiting()
        late = waiting if waiting is not None and waiting.seconds > patience_seconds else None
        if late is not None and is_over():
            raise ClusterError(
                f"The time is up, and there has been no answer for {duration_text(late.seconds)} to: {late.question}.",
                "Look at that cluster, then run again.",
            )
        yield late


def patience_after(look: BackgroundLook[Any]) -> float:
    """Return how long a question of the next look may take before it is late, in seconds."""
    return min(LATE_AT_MOST, max(LATE_AFTER, look.asked_seconds))

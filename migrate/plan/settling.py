"""What a watch knows from one look to the next: bars that never fall, the time left, how old all of it is. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.plan.pace import Reading, TimeLeft, time_left
from migrate.plan.status import Status, TopicStatus


@dataclass(frozen=True, slots=True)
class Progress:
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
    """Takes in one status after the other."""

    readings: list[Reading] = field(default_factory=list)
    _begun: dict[str, int] = field(default_factory=dict)
    _bars: dict[str, Progress] = field(default_factory=dict)
    _is_known: bool = False

    def take(self, status: Status, seconds: float) -> None:
        """Take in a status read at `seconds`, of a clock that never goes back."""
        for topic in status.topics:
            bar = self._bar(topic)
            if bar is not None:
                self._bars[topic.source_topic] = bar
        left = status.lag.records
        self._is_known = left is not None
        if left is not None:
            self.readings.append(Reading(seconds, left))

    @property
    def bars(self) -> Mapping[str, Progress]:
        """The progress by source topic; topics of which nothing is known are left out."""
        return self._bars

    def time_left(self) -> TimeLeft:
        """Return how long it will take until everything is copied; too early to tell where the last look could not."""
        return time_left(self.readings if self._is_known else ())

    def _bar(self, topic: TopicStatus) -> Progress | None:
        copied, end = topic.copied, topic.source_end
        if copied is None or end is None:
            return None
        begun = self._begun.setdefault(topic.source_topic, copied)
        before = self._bars.get(topic.source_topic)
        # An estimate may take back what an earlier one gave; a bar that goes back tells nobody anything.
        done = max(copied - begun, before.done if before else 0)
        return Progress(done, max(end - begun, done), topic.drained is True)

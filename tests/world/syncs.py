"""When MM2 writes offset syncs (`MirrorSourceTask.PartitionState`, `OffsetSyncWriter`), by version."""

from dataclasses import dataclass, field
from random import Random

from migrate.model import OffsetSync


@dataclass(slots=True)
class SyncTopic:
    """The offset-syncs topic, for one partition: pairs in log order."""

    pairs: list[tuple[int, int]] = field(default_factory=list)

    def read(self) -> tuple[OffsetSync, ...]:
        return tuple(OffsetSync(i, u, d) for i, (u, d) in enumerate(self.pairs))


@dataclass(slots=True)
class SyncWriter:
    """One lifetime of a source task. `fires`: how likely a pending sync is sent at once; `loses`: or lost.

    `version`: "3.4.0" readers extrapolate, so it writes about one sync per lifetime; "3.6" has none that are
    delayed; "3.7" publishes the newest at each commit.
    """

    topic: SyncTopic
    dice: Random
    version: str
    lag_max: int
    fires: float
    loses: float
    previous_source: int = -1
    previous_target: int = -1
    last_source: int = -1
    last_target: int = -1
    pending: tuple[int, int] | None = None
    delayed: tuple[int, int] | None = None

    def acknowledged(self, u: int, d: int) -> None:
        """A copy was written: queue a sync for it, or remember it for the next commit."""
        if self._is_due(u, d):
            self.last_source, self.last_target = u, d
            self.pending, self.delayed = (u, d), None
        elif self.version == "3.7":
            self.delayed = (u, d)
        self.previous_source, self.previous_target = u, d
        if self.dice.random() < self.fires:
            self.fire()

    def committed(self) -> None:
        """The task commits its position: the delayed sync becomes pending, and is sent if there is room."""
        if self.delayed:
            self.pending, self.delayed = self.delayed, None
        if self.dice.random() < max(self.fires, 0.5):
            self.fire()

    def fire(self) -> None:
        if self.pending and self.dice.random() >= self.loses:
            self.topic.pairs.append(self.pending)
        self.pending = None

    def _is_due(self, u: int, d: int) -> bool:
        expected = self.last_target + (u - self.last_source if self.version == "3.4.0" else 1)
        return (
            self.last_target == -1
            or d - expected >= self.lag_max
            or u != self.previous_source + 1
            or d < self.previous_target
        )

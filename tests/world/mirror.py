"""MirrorMaker 2 for one partition: copies in order, commits now and then, dies and comes back; and its offset syncs.

When it writes these (`MirrorSourceTask.PartitionState`, `OffsetSyncWriter`) depends on its version.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from migrate.match.equality import Content
from migrate.model import OffsetSync
from tests.world.logs import GrowingLog, Slot

# What a transform makes of a record: None drops it; True says that its content was changed.
Transform = Callable[[Slot], tuple[Content, bool] | None]


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


@dataclass(slots=True)
class Mirror:
    """One MM2 task and its committed source offset; `position` is what it reads next.

    `reached` is the source offset behind the newest record that it copied and a reader may see.
    """

    new_writer: Callable[[], SyncWriter]
    transform: Transform
    exactly_once: bool
    read_committed: bool
    position: int = 0
    reached: int = 0
    committed: int | None = None
    last_done: int | None = None
    writer: SyncWriter = field(init=False)
    batch: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer = self.new_writer()

    def poll(self, source: GrowingLog, target: GrowingLog, most: int) -> int:
        """Copy up to `most` records; out of range means back to the earliest record, in silence."""
        if not source.start <= self.position <= source.end:
            self.position = source.start
        found, position = source.readable(self.position, self.read_committed, most)
        for slot in found:
            shaped = self.transform(slot)
            if shaped is not None:
                content, altered = shaped
                copy = target.append(slot.identity, content, "mm2" if self.exactly_once else None, altered)
                self._copied(slot.offset, copy.offset)
            elif not self.exactly_once:
                self.reached = max(self.reached, slot.offset + 1)
            self.last_done = slot.offset
        if found or position > self.position:
            self.position = position
        if self.exactly_once and "mm2" not in target.transactions and found:
            self.committed, self.reached = self.last_done, max(self.reached, self.position)
        return len(found)

    def flush(self, target: GrowingLog, clock: int) -> None:
        """Commit the position (with exactly-once: the transaction), then let the syncs go."""
        if self.exactly_once and "mm2" in target.transactions:
            target.finish("mm2", True, clock)
            self.reached = self.batch[-1][0] + 1
            for u, d in self.batch:
                self.writer.acknowledged(u, d)
            self.batch.clear()
        if self.last_done is not None:
            self.committed = self.last_done
        self.writer.committed()

    def restart(self, source: GrowingLog, target: GrowingLog, clock: int) -> None:
        """Die, and start again behind the committed offset; pending syncs are gone."""
        if "mm2" in target.transactions:
            target.finish("mm2", False, clock)
        self.batch.clear()
        self.writer = self.new_writer()
        self.position = source.start if self.committed is None else self.committed + 1
        self.last_done = None

    def _copied(self, u: int, d: int) -> None:
        if self.exactly_once:
            self.batch.append((u, d))
        else:
            self.reached = u + 1
            self.writer.acknowledged(u, d)

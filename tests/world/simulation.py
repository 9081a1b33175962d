"""A seeded run of a source, MirrorMaker 2 and a target, with the troubles that a world is to have."""

from dataclasses import replace
from random import Random
from types import SimpleNamespace

from migrate.match.equality import Content, Equality
from migrate.model import LogRange
from tests.integration.oracle import Written
from tests.world.logs import GrowingLog, Slot
from tests.world.mirror import Mirror, SyncTopic, SyncWriter
from tests.world.model import Entry, World

EPOCH_MS = 1_700_000_000_000
APPEND_MS = 2  # a record is never appended in the very millisecond of its making
FAR_FUTURE_MS = 30 * 24 * 3_600_000


def simulate(seed: int, troubles: frozenset[str], size: float = 1.0) -> World:
    """Make the world of this seed and these troubles; `size` scales how much happens in it."""
    return Simulation(seed, troubles, size).run()


class Simulation:
    """The state of a run; `run` is the whole of it."""

    def __init__(self, seed: int, troubles: frozenset[str], size: float) -> None:
        self.seed, self.troubles = seed, troubles
        self.dice = dice = Random(f"{seed} {sorted(troubles)}")
        compacted = bool(troubles & {"source-compaction", "target-compaction"})
        # How often things happen in this world, drawn once.
        self.tuning = SimpleNamespace(
            steps=max(3, int(size * dice.choice((12, 25, 40, 60, 120)))),
            batch=dice.choice((1, 2, 4, 8)),
            keys=dice.choice((3, 8, 30)) if compacted else dice.choice((1, 5, 1000)),
            null_keys=0.0 if compacted else dice.choice((0.0, 0.0, 0.3, 1.0)),
            headers=dice.choice((0.0, 0.5, 1.0)) if "headers" not in troubles else dice.choice((0.5, 1.0)),
            tombstones=0.15 if compacted else 0.0,
            same_time=dice.choice((0.0, 0.3, 0.9)),
            copies=dice.choice((2, 5, 12)),
            flush=dice.choice((0.05, 0.15, 0.4)),
            alike=dice.choice((0.05, 0.2, 0.5)),
            alters=dice.choice((0.1, 0.5, 1.0)),
            drops=dice.choice((0.05, 0.3)),
        )
        old = "old-mm2" in troubles
        self.lag_max = 10_000 if "few-syncs" in troubles else dice.choice((3 if old else 0, 3, 10, 40))
        self.version = "3.4.0" if old else dice.choice(("3.6", "3.7", "3.7"))
        self.source, self.target = GrowingLog(), GrowingLog()
        self.written: dict[int, Slot] = {}
        self.logs_before = 0
        self.reload: list[Content] = []
        self.clock = EPOCH_MS
        self.serial = 0
        self.topic = SyncTopic()
        self.silent = "no-syncs" in troubles and dice.random() < 0.5
        self.blocked = 0
        self.mirror = self._mirror()
        self.paused: Mirror | None = None
        self.far_future_at = dice.randint(0, self.tuning.steps) if "far-future" in troubles else -1

    def run(self) -> World:
        disasters = {at: name for name in sorted(self.troubles) if name in DISASTERS for at in self._moments(name)}
        for step in range(self.tuning.steps):
            self._step()
            if step in disasters:
                getattr(self, DISASTERS[disasters[step]])()
        self._end_well()
        self._age()
        return self._pinned()

    def _moments(self, name: str) -> list[int]:
        often = {"restarts": 3, "source-compaction": 2, "target-compaction": 2, "paused-writer": 2}.get(name, 1)
        times = self.dice.randint(1, often)
        return [self.dice.randrange(self.tuning.steps) for _ in range(times)]

    # What happens all the time

    def _step(self) -> None:
        self.clock += self.dice.choice((0, 1, 5, 40)) if self.dice.random() > self.tuning.same_time else 0
        roll = self.dice.random()
        if roll < 0.5:
            self._produce()
        elif roll < 0.5 + 0.4 and self.blocked <= 0:
            self.mirror.poll(self.source, self.target, self.dice.randint(1, self.tuning.copies))
        elif "local-writers" in self.troubles and self.dice.random() < 0.6:
            self._write_locally()
        self.blocked -= 1
        if self.dice.random() < self.tuning.flush:
            self.mirror.flush(self.target, self.clock)

    def _produce(self) -> None:
        contents = [self._reloaded() or self._content() for _ in range(self.dice.randint(1, self.tuning.batch))]
        if "transactions" not in self.troubles or self.dice.random() < 0.2:
            self._write(contents)
            if "retries" in self.troubles and self.dice.random() < 0.2:
                self._write(contents)
            return
        names = list(self.source.transactions)
        if names and self.dice.random() < 0.6:
            self.source.finish(self.dice.choice(names), self.dice.random() < 0.7, self.clock)
        else:
            self._write(contents, self.dice.choice(("a", "b")))

    def _write(self, contents: list[Content], transaction: str | None = None) -> None:
        for content in contents:
            slot = self.source.append("", content, transaction)
            slot.identity = f"{self.logs_before}:{slot.offset}"
            self.written[slot.offset] = slot

    def _reloaded(self) -> Content | None:
        return self.reload.pop(0) if self.reload and self.dice.random() < 0.8 else None

    def _content(self) -> Content:
        dice, tuning = self.dice, self.tuning
        earlier = self.source.slots[-40:]
        if "neighbours" in self.troubles and earlier and earlier[-1].identity and dice.random() < 0.5:
            return earlier[-1].content
        if "look-alikes" in self.troubles and earlier and dice.random() < tuning.alike:
            alike = dice.choice(earlier)
            if alike.identity:
                return alike.content
        self.serial += 1
        time = self.clock
        if "jitter" in self.troubles:
            time += dice.randint(-100, 100)
        if self.far_future_at >= 0 and self.serial > self.far_future_at:
            self.far_future_at, time = -1, time + FAR_FUTURE_MS
        key = None if dice.random() < tuning.null_keys else f"k{dice.randrange(tuning.keys)}".encode()
        value = None if dice.random() < tuning.tombstones else f"v{self.serial}".encode()
        headers = (("n", str(self.serial % 7).encode()),) if dice.random() < tuning.headers else ()
        return Content(time, key, value, headers)

    def _write_locally(self) -> None:
        for _ in range(self.dice.randint(1, 3)):
            self.serial += 1
            content = Content(
                self.clock, f"k{self.dice.randrange(self.tuning.keys)}".encode(), b"local%d" % self.serial, ()
            )
            self.target.append(f"L{self.serial}", content)

    # What MM2 is

    def _mirror(self) -> Mirror:
        exactly_once = "exactly-once" in self.troubles
        return Mirror(
            self._sync_writer,
            self._transform,
            exactly_once,
            "read-committed" in self.troubles or (exactly_once and self.dice.random() < 0.7),
        )

    def _sync_writer(self) -> SyncWriter:
        topic = SyncTopic() if self.silent else self.topic
        fires = 0.15 if "syncs-delayed" in self.troubles else 1.0
        loses = 0.3 if "syncs-lost" in self.troubles else 0.0
        return SyncWriter(topic, self.dice, self.version, self.lag_max, fires, loses)

    def _transform(self, slot: Slot) -> tuple[Content, bool] | None:
        content, altered = slot.content, False
        fate = Random(slot.identity + str(self.seed)).random()
        if "drops" in self.troubles and fate < self.tuning.drops:
            return None
        if "changes" in self.troubles and 1 - fate < self.tuning.alters and content.value is not None:
            content, altered = replace(content, value=b"changed " + content.value), True
        if "headers" in self.troubles:
            content = replace(content, headers=tuple((n, b'"' + (v or b"") + b'"') for n, v in content.headers))
        if "append-time" in self.troubles:
            content = replace(content, timestamp=self.clock + APPEND_MS)
        return content, altered

    # What goes wrong

    def restart(self) -> None:
        self.mirror.restart(self.source, self.target, self.clock)
        if self.dice.random() < 0.5:
            self.mirror.poll(self.source, self.target, self.dice.randint(1, self.tuning.copies))

    def wake_paused_writer(self) -> None:
        """A second instance with an old position; with exactly-once it would be fenced."""
        if self.mirror.exactly_once:
            return
        if self.paused is None or self.dice.random() < 0.3:
            self.paused = self._mirror()
            self.paused.position = max(0, self.mirror.position - self.dice.randint(0, 20))
        else:
            self.paused.poll(self.source, self.target, self.dice.randint(1, self.tuning.copies))
            self.paused.writer.committed()
            self.paused = None

    def stop_syncs(self) -> None:
        self.silent = True
        self.mirror.writer.topic = SyncTopic()

    def compact_syncs(self) -> None:
        cut = self.dice.randint(0, len(self.topic.pairs))
        self.topic.pairs[: max(0, cut - 1)] = []

    def compact_source(self) -> None:
        self.source.compact(self.source.somewhere(self.dice), self.dice)

    def compact_target(self) -> None:
        self.target.compact(self.target.somewhere(self.dice), self.dice)

    def retain_source(self) -> None:
        self.source.retain_from(self.source.somewhere(self.dice))

    def retain_target(self) -> None:
        self.target.retain_from(self.target.somewhere(self.dice))

    def recreate_source(self) -> None:
        self._remember(self.source.start)
        self.source = GrowingLog()
        self.written.clear()
        self.logs_before += 1
        self.mirror.reached = 0
        if self.dice.random() < 0.5:
            self._fill_source_behind_its_back()
        elif self.dice.random() < 0.5:
            self.mirror.position = 0

    def truncate_source(self) -> None:
        end = max(self.source.start, self.source.end - self.dice.randint(1, 15))
        self._remember(end)
        self.source.truncate(end)
        self.written = {u: slot for u, slot in self.written.items() if u < end}
        self.logs_before += 1
        self.mirror.reached = min(self.mirror.reached, end)
        roll = self.dice.random()
        if self.mirror.position > end:
            if roll < 0.3:
                self.mirror.position = end
            elif roll < 0.6:
                self.mirror.position = self.source.start
            elif roll < 0.8:
                self._fill_source_behind_its_back()

    def recreate_target(self) -> None:
        self.target = GrowingLog()
        self.mirror.batch.clear()
        if self.dice.random() < 0.3:
            self.restart()

    def truncate_target(self) -> None:
        self.target.truncate(self.target.end - self.dice.randint(1, 15))
        if self.mirror.exactly_once or self.dice.random() < 0.3:
            self.restart()

    def _remember(self, start: int) -> None:
        if "reloaded" in self.troubles:
            self.reload = [s.content for s in self.source.slots if s.offset >= start and s.identity]

    def _fill_source_behind_its_back(self) -> None:
        """Producers fill the new log beyond MM2's old position before MM2 looks again."""
        for _ in range(60):
            if self.source.end > self.mirror.position:
                break
            self._produce()

    # How it ends

    def _end_well(self) -> None:
        for name in list(self.source.transactions):
            self.source.finish(name, self.dice.random() < 0.7, self.clock)
        if "open-source" in self.troubles:
            self._write([self._content() for _ in range(self.dice.randint(1, 3))], "open")
            self._write([self._content() for _ in range(self.dice.randint(0, 3))])
        if "not-drained" not in self.troubles:
            self._drain()
        if "stopped-mid-replay" in self.troubles:
            self.mirror.restart(self.source, self.target, self.clock)
            self.mirror.poll(self.source, self.target, self.dice.randint(1, 8))
        flushes = self.dice.random() < 0.5 and "stopped-mid-replay" not in self.troubles
        if flushes or (self.mirror.exactly_once and "open-target" not in self.troubles):
            self.mirror.flush(self.target, self.clock)
        if self.paused and self.dice.random() < 0.5:
            self.wake_paused_writer()
        if "open-target" in self.troubles:
            self._open_target()

    def _drain(self) -> None:
        for _ in range(10_000):
            copied = self.mirror.poll(self.source, self.target, self.tuning.copies)
            if not copied:
                return
            self.clock += 1
            if self.dice.random() < self.tuning.flush:
                self.mirror.flush(self.target, self.clock)

    def _open_target(self) -> None:
        """MM2's own transaction stays open (exactly-once), or a local writer's, behind which MM2 copies."""
        if self.mirror.exactly_once and "mm2" in self.target.transactions:
            return
        self.serial += 1
        self.target.append(f"L{self.serial}", Content(self.clock, b"k0", b"open", ()), "local")
        if self.dice.random() < 0.5:
            self._produce()
            self.mirror.poll(self.source, self.target, 8)

    def _age(self) -> None:
        """What happens to the logs after MM2 has done its work."""
        for name, act in AGEING.items():
            if name in self.troubles and self.dice.random() < 0.5:
                getattr(self, act)()

    # What is read of it

    def _pinned(self) -> World:
        low, top = self.source.start, self.source.last_stable
        commits = self._commits(low, top)
        target_log = LogRange(self.target.start, self.target.last_stable)
        reached = max(self.mirror.reached, self.mirror.position)
        last_copied_offset = self.mirror.committed
        if "running" in self.troubles:
            for _ in range(self.dice.randint(1, 8)):
                self._step()
        if self.mirror.position > self.source.end:
            reached = self.source.start
        source_log = LogRange(self.source.start, self.source.last_stable)
        names = {slot.identity: str(u) for u, slot in self.written.items()}
        return World(
            seed=self.seed,
            troubles=self.troubles,
            source_log=source_log,
            target_log=target_log,
            source=tuple(_entry(slot, names, source_log.end) for slot in self.source.slots),
            target=tuple(_entry(slot, names, target_log.end) for slot in self.target.slots),
            written=tuple(Written(u, str(u), slot.state != "aborted") for u, slot in sorted(self.written.items())),
            syncs=self.topic.read(),
            commits=tuple(g for g in commits if g <= source_log.end),
            reached=reached,
            last_copied_offset=last_copied_offset,
            retention=self._retention(source_log, target_log),
            elsewhere=self._elsewhere(),
            keeps=self._keeps(),
            survives=Equality.WITHOUT_TIMESTAMP if "append-time" in self.troubles else Equality.ALL,
        )

    def _commits(self, low: int, top: int) -> tuple[int, ...]:
        """Committed offsets: the ends, beside syncs, anywhere, and below the log's start."""
        found = {low, top, max(top - 1, 0), *(self.dice.randint(low, top) for _ in range(4))}
        near = [u for u, _ in self.topic.pairs if u <= top]
        for u in self.dice.sample(near, min(3, len(near))):
            found |= {u, min(u + 1, top)}
        found |= {self.dice.randint(0, low) for _ in range(2)} if low else set()
        return tuple(sorted(found))

    def _elsewhere(self) -> tuple[tuple[Content, Content], ...]:
        """Anchors of other partitions, most of them good."""
        if "lone-partition" in self.troubles or ("no-syncs" in self.troubles and not self.topic.pairs):
            return ()
        found = []
        for number in range(12):
            content = self._content()
            shaped = self._transform(Slot(number, f"elsewhere {number}", content))
            if shaped:
                found.append((content, shaped[0] if number % 6 else self._content()))
        return tuple(found)

    def _keeps(self) -> Equality:
        if "append-time" in self.troubles:
            return Equality.KEY_AND_VALUE if "headers" in self.troubles else Equality.WITHOUT_TIMESTAMP
        return Equality.WITHOUT_HEADERS if "headers" in self.troubles else Equality.ALL

    def _retention(self, source: LogRange, target: LogRange) -> tuple[tuple[int, bool, int], ...]:
        if "retention-while-reading" not in self.troubles:
            return ()
        on_source = self.dice.random() < 0.5
        log = source if on_source else target
        return ((self.dice.randint(1, 4), on_source, self.dice.randint(log.start, log.end)),)


DISASTERS = {
    "restarts": "restart",
    "paused-writer": "wake_paused_writer",
    "no-syncs": "stop_syncs",
    "syncs-compacted": "compact_syncs",
    "source-compaction": "compact_source",
    "target-compaction": "compact_target",
    "source-retention": "retain_source",
    "target-retention": "retain_target",
    "source-recreated": "recreate_source",
    "target-recreated": "recreate_target",
    "source-truncated": "truncate_source",
    "target-truncated": "truncate_target",
}
AGEING = {
    name: DISASTERS[name]
    for name in ("syncs-compacted", "source-compaction", "target-compaction", "source-retention", "target-retention")
}


def _entry(slot: Slot, names: dict[str, str], pinned_end: int) -> Entry:
    pending = slot.state == "open" or (slot.state == "committed" and slot.offset >= pinned_end)
    identity = "" if slot.state == "marker" else names.get(slot.identity, slot.identity)
    visible = slot.state == "committed" and slot.offset < pinned_end
    return Entry(slot.offset, identity, slot.content, visible, pending, slot.altered)

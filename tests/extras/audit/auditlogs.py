"""Random topics of the simulated world as an audit meets them, and what becomes of each record by identities."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random

from migrate.extras.audit.verdict import Category
from migrate.match.calibration import Calibration, calibrate_topics, topic_questions
from migrate.match.equality import Equality, Part
from migrate.match.protocol import Work
from migrate.mm2.chain import chain
from migrate.model import TopicPartition
from tests.memorylogs import MemoryReader
from tests.prints import fingerprint
from tests.world.model import Entry, World
from tests.world.simulation import Simulation

PARTITIONS = 6
# What befalls an audited topic. Of look-alikes only counts can be told; who copies out of order is nobody's to judge.
TROUBLES = (
    "restarts", "stopped-mid-replay", "not-drained", "running", "no-syncs", "jitter", "far-future", "append-time",
    "headers", "drops", "changes", "local-writers", "transactions", "read-committed", "exactly-once", "open-source",
    "open-target", "source-compaction", "target-compaction", "source-retention", "target-retention",
    "source-recreated", "target-recreated", "source-truncated", "target-truncated",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A record in one log; `identity` is that of its original."""

    offset: int
    identity: str
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_aborted: bool = False


@dataclass
class Logs:
    """One partition: all that was ever written on either side, and what retention has left of it."""

    source: list[Record] = field(default_factory=list)
    target: list[Record] = field(default_factory=list)
    source_start: int = 0
    target_start: int = 0
    source_end: int = 0
    next_to_copy: int | None = None

    @property
    def originals(self) -> list[Record]:
        """What a read_committed reader sees of the source."""
        return [r for r in self.source if r.offset >= self.source_start and not r.is_aborted]

    @property
    def copies(self) -> list[Record]:
        """What a reader sees of the target."""
        return [r for r in self.target if r.offset >= self.target_start]


class Watched(Simulation):
    """A run that notes which copies the target's retention and cleaner took."""

    def __init__(self, seed: int, troubles: frozenset[str]) -> None:
        super().__init__(seed, troubles, 1.0)
        self.taken: set[str] = set()

    def retain_target(self) -> None:
        self._noting(super().retain_target)

    def compact_target(self) -> None:
        self._noting(super().compact_target)

    def _noting(self, takes: Callable[[], None]) -> None:
        there = {slot.identity for slot in self.target.slots}
        takes()
        self.taken |= there - {slot.identity for slot in self.target.slots}

    def recreate_target(self) -> None:
        self.taken.clear()
        super().recreate_target()


@dataclass(frozen=True)
class Simulated:
    """A partition, and the offsets of the source's records whose copies the target's retention or cleaner took."""

    world: World
    taken: frozenset[int]

    @classmethod
    def of(cls, seed: int, troubles: frozenset[str]) -> "Simulated":
        run = Watched(seed, troubles)
        world = run.run()
        return cls(world, frozenset(u for u, slot in run.written.items() if slot.identity in run.taken))

    def logs(self) -> Logs:
        """As the audit's tests have logs."""
        world, pinned = self.world, self.world.source_log
        source = [e for e in world.source if e.identity and not e.pending and pinned.start <= e.offset < pinned.end]
        last = world.last_copied_offset
        return Logs(
            [_record(e, is_aborted=not e.visible) for e in source],
            [_record(e) for e in world.target_seen],
            pinned.start,
            world.target_log.start,
            pinned.end,
            None if last is None else last + 1,
        )

    def has_twins(self, equality: Equality) -> bool:
        """True if two records agree in all that this equality looks at."""
        alike = self.world.alike_under(equality)
        if equality is Equality.TIME_AND_KEY:
            # A copy with another value equals what has its time and key, and its original may be gone.
            copies = {e.identity: fingerprint(e.content, equality) for e in self.world.target if e.identity}
            alike = {**copies, **alike}
        return len(set(alike.values())) < len(alike)


def _record(entry: Entry, is_aborted: bool = False) -> Record:
    content = entry.content
    parts = content.timestamp, content.key, content.value, tuple(content.headers)
    return Record(entry.offset, entry.identity, *parts, is_aborted)


@dataclass(frozen=True)
class Topic:
    """A topic whose partitions have the same troubles, each its own run of them; `calibration` as an audit finds it."""

    troubles: frozenset[str]
    partitions: tuple[Simulated, ...]
    calibration: Calibration

    @classmethod
    def some(cls, seed: int) -> "Topic":
        """Draw one, with any troubles."""
        dice = Random(seed)
        return cls.of(seed, frozenset(dice.sample(TROUBLES, dice.randint(0, 6))))

    @classmethod
    def of(cls, seed: int, troubles: frozenset[str]) -> "Topic":
        """Draw one with these troubles, without two records that could be taken for one another."""
        keeps = Watched(0, troubles).run().keeps
        found = {keeps, Equality.TIME_AND_KEY} if "changes" in troubles else {keeps}
        drawn = (Simulated.of(each, troubles) for each in count(seed * 1_000))
        fit = (each for each in drawn if not any(map(each.has_twins, found)))
        partitions = tuple(next(fit) for _ in range(PARTITIONS))
        return cls(troubles, partitions, _calibration([each.world for each in partitions]))


def _calibration(worlds: list[World]) -> Calibration:
    places = [TopicPartition("t", p) for p in range(len(worlds))]
    source, target = (
        MemoryReader({place: {e.offset: e.content for e in seen} for place, seen in zip(places, logs, strict=True)})
        for logs in ([w.source_seen for w in worlds], [w.target_seen for w in worlds])
    )
    works = [
        (Work(place, place, w.source_log, w.target_log, ()), tuple((s.source_offset, s.target_offset) for s in syncs))
        for place, w in zip(places, worlds, strict=True)
        for syncs in [chain(w.syncs, w.source_log.end, w.target_log.end)]
    ]
    return next(iter(calibrate_topics(source, target, topic_questions(works))))


Allowed = Mapping[int, set[Category | None]]
"""What an audit may say of records, by offset: more than one where nobody can decide, None where it may be silent."""


@dataclass(frozen=True)
class Truth:
    """What identities say of a partition: counts, and what may be said of the records without a counterpart."""

    copied: int
    copied_again: int
    source: Allowed
    target: Allowed

    @classmethod
    def of(cls, partition: Simulated, calibration: Calibration) -> "Truth":
        world, equality = partition.world, calibration.equality
        assert equality is not None
        originals = {e.identity for e in world.source_seen}
        # A copy with another value is another record, but where nobody looks at values.
        changed = {e.offset for e in world.target_seen if e.altered and equality is not Equality.TIME_AND_KEY}
        equal = [e for e in world.target_seen if e.offset not in changed]
        there = Counter(e.identity for e in equal if e.identity in originals)
        alone = [e for e in world.source_seen if e.identity not in there]
        others = [e for e in world.target_seen if e.identity not in there]
        aborted = {e.identity for e in world.source if not (e.visible or e.pending) and e.offset < world.source_log.end}
        strangers = [e for e in others if e.offset in changed or e.identity not in aborted]
        sees_changes = equality.keeps_time and Part.VALUE in equality.parts
        here, beyond = _by_time_and_key(alone if sees_changes else []), _by_time_and_key(strangers)
        source: dict[int, set[Category | None]] = {}
        for e in alone:
            ours, theirs = here[_time_and_key(e)], beyond[_time_and_key(e)]
            source[e.offset] = {Category.CHANGED} if theirs and ours else set()
            # A record of its time and key that is not its own copy is taken for that, or not.
            if ours != theirs or not ours:
                source[e.offset] |= _without_copy(e, alone, partition, calibration)
        is_whole = world.source_log.start == 0 and "source-compaction" not in world.troubles and not world.source_open
        target: dict[int, set[Category | None]] = {}
        for e in others:
            ours, theirs = here[_time_and_key(e)], beyond[_time_and_key(e)]
            if e not in strangers:
                target[e.offset] = {Category.ABORTED_COPY}
                continue
            target[e.offset] = {None} if ours else set()
            if ours != theirs:
                target[e.offset].add(Category.FOREIGN if is_whole else Category.NO_ORIGINAL_VISIBLE)
        return cls(len(there), there.total() - len(there), source, target)


def _time_and_key(entry: Entry) -> tuple[int, bytes | None]:
    return entry.content.timestamp, entry.content.key


def _by_time_and_key(entries: list[Entry]) -> Mapping[tuple[int, bytes | None], Counter[str]]:
    found: defaultdict[tuple[int, bytes | None], Counter[str]] = defaultdict(Counter)
    for entry in entries:
        found[_time_and_key(entry)][entry.identity] += 1
    return found


def _without_copy(
    entry: Entry, alone: list[Entry], partition: Simulated, calibration: Calibration
) -> set[Category | None]:
    """Return what may be said of a record that has no copy.

    Without offset syncs, behind a copy that lags, calibration may not last, and nothing is proven.
    """
    world, equality = partition.world, calibration.equality
    assert equality is not None
    copied = [e for e in world.source_seen if e not in alone]
    behind_last = max((e.offset + 1 for e in copied), default=0)
    position = None if world.last_copied_offset is None else world.last_copied_offset + 1
    if position is not None and position > world.source_log.end:  # in a log that is no more
        position = None
    hides = world.target_open and entry.offset >= behind_last
    if hides or entry.offset >= (behind_last if position is None else position):
        return {Category.NOT_COPIED_YET}
    is_compacted = "target-compaction" in world.troubles
    is_whole = world.target_log.start == 0 and not is_compacted and not world.target_open
    is_decidable = is_whole and calibration.lasts and (equality.keeps_time or position is not None)
    found: set[Category | None] = set() if is_decidable else {Category.MAYBE_COPIED}
    if entry.offset not in partition.taken:
        found.add(Category.MISSING)
    if is_compacted and any(e.offset > entry.offset and e.content.key == entry.content.key for e in copied):
        found.add(Category.SUPERSEDED)
    return found

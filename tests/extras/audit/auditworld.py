"""Small logs and their copies, made by a replicator that is killed, starts again, loses records and meets strangers.

Every record has an identity, by which the truth is known without looking at what it holds.
"""

from dataclasses import dataclass, field
from random import Random

RECORDS = 60


@dataclass(frozen=True)
class Record:
    """A record in one log; `identity` is that of its original, with a mark where it was changed on the way."""

    offset: int
    identity: str
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_aborted: bool = False


@dataclass
class World:
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


def some_world(dice: Random) -> World:
    """Return what three runs of a replicator make of a log, with at most one kind of fault that is rare elsewhere."""
    world, times = World(), list(range(RECORDS))
    dice.shuffle(times)
    for offset in range(RECORDS):
        if dice.random() < 0.05:
            continue  # a marker, or what a cleaner took
        aborted, key = dice.random() < 0.1, None if dice.random() < 0.1 else f"k{dice.randrange(5)}".encode()
        headers = (("h", None), ("id", str(offset).encode())) if dice.random() < 0.5 else ()
        value = None if dice.random() < 0.05 else f"v{offset}".encode()
        world.source.append(Record(offset, str(offset), 1_000 + 7 * times[offset], key, value, headers, aborted))
    world.source_end = RECORDS
    dropped = {r.identity for r in world.source if dice.random() < dice.choice((0.0, 0.1))}
    changes, copies_aborted, strangers = dice.choice((0.0, 0.1)), dice.random() < 0.5, dice.choice((0.0, 0.1))
    position = furthest = 0
    for _ in range(3):
        # It passes over records that it has never copied: of a topic that was created anew.
        passes_over = position == furthest and dice.random() < 0.2
        start = position + dice.randrange(10) if passes_over else max(0, position - dice.randrange(15))
        position = min(RECORDS, start + dice.randrange(5, 40))
        furthest = max(furthest, position)
        for record in world.source:
            if start <= record.offset < position and record.identity not in dropped:
                if copies_aborted or not record.is_aborted:
                    # The changed copy of an aborted record looks like a stranger's.
                    may_change = record.value is not None and not record.is_aborted
                    _append(world, record, is_changed=may_change and dice.random() < changes)
                if dice.random() < strangers:
                    _append(world, Record(0, f"stranger {len(world.target)}", dice.randrange(1_000), b"s", b"s"))
    world.next_to_copy = position if dice.random() < 0.7 else None
    world.source_start, world.target_start = dice.choice((0, dice.randrange(30))), dice.choice((0, dice.randrange(30)))
    return world


def _append(world: World, record: Record, is_changed: bool = False) -> None:
    offset = world.target[-1].offset + 1 if world.target else 0
    identity, value = (f"{record.identity} changed", b"changed") if is_changed else (record.identity, record.value)
    world.target.append(Record(offset, identity, record.time_ms, record.key, value, record.headers))

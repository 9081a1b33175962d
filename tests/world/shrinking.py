"""Makes a failing world smaller, so that a person can debug it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from migrate.model import LogRange, OffsetSync
from tests.integration.oracle import Written
from tests.world.model import Entry, World

MOST_TRIES = 3_000


def shrunk(world: World, fails: Callable[[World], bool]) -> World:
    """Return a smaller world that still fails: fewer commits, records, foreign records and syncs, dense offsets.

    A record goes with all its copies and the syncs that name it, which leaves a history that could have been.
    """
    tries = iter(range(MOST_TRIES))

    def better(smaller: Iterable[World], now: World) -> World | None:
        for candidate in smaller:
            if next(tries, None) is None:
                return None
            if candidate != now and fails(candidate):
                return candidate
        return None

    found: World | None = world
    while found is not None:
        world = found
        found = better(_smaller(world), world)
    return better([_dense(world)], world) or world


def _smaller(world: World) -> Iterator[World]:
    if world.retention:
        yield replace(world, retention=())
    for chunk in _chunks(world.commits):
        yield replace(world, commits=tuple(g for g in world.commits if g not in chunk))
    ours = [w.identity for w in world.written]
    for chunk in _chunks(ours):
        yield _without(world, frozenset(chunk))
    foreign = sorted({e.identity for e in world.target} - set(ours) - {""})
    for chunk in _chunks(foreign):
        yield _without(world, frozenset(chunk))
    for chunk_of_syncs in _chunks(world.syncs):
        yield replace(world, syncs=tuple(s for s in world.syncs if s not in chunk_of_syncs))


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    size = len(items)
    while size:
        for start in range(0, len(items), size):
            yield items[start : start + size]
        size //= 2


def _without(world: World, identities: frozenset[str]) -> World:
    offsets = {w.offset for w in world.written if w.identity in identities}
    places = {e.offset for e in world.target if e.identity in identities}
    return replace(
        world,
        source=tuple(e for e in world.source if e.identity not in identities),
        target=tuple(e for e in world.target if e.identity not in identities),
        written=tuple(w for w in world.written if w.identity not in identities),
        syncs=tuple(s for s in world.syncs if not (s.source_offset in offsets and s.target_offset in places)),
    )


def _dense(world: World) -> World:
    """Number both logs anew, without the offsets at which nothing stands (markers go too)."""
    source = [e for e in world.source if e.identity]
    target = [e for e in world.target if e.identity and (e.visible or e.pending)]
    kept = {w.offset for w in world.written}
    to_source = _numbering(kept | {s.source_offset for s in world.syncs})
    to_target = _numbering({e.offset for e in target} | {s.target_offset for s in world.syncs})
    names = {w.identity: str(to_source(w.offset)) for w in world.written}
    foreign = {e.identity: _foreign(e.identity) for e in target if e.identity not in names}
    return replace(
        world,
        source=tuple(_moved(e, to_source, {**foreign, **names}) for e in source),
        target=tuple(_moved(e, to_target, {**foreign, **names}) for e in target),
        written=tuple(Written(to_source(w.offset), names[w.identity], w.committed) for w in world.written),
        syncs=tuple(
            OffsetSync(s.position, to_source(s.source_offset), to_target(s.target_offset)) for s in world.syncs
        ),
        source_log=LogRange(to_source(world.source_log.start), to_source(world.source_log.end)),
        target_log=LogRange(to_target(world.target_log.start), to_target(world.target_log.end)),
        commits=tuple(sorted({to_source(g) for g in world.commits})),
        reached=to_source(world.reached),
        last_copied_offset=None
        if world.last_copied_offset is None
        else max(to_source(world.last_copied_offset + 1) - 1, 0),
    )


def _foreign(identity: str) -> str:
    return identity if identity.startswith("L") else "old" + identity


def _moved(entry: Entry, to: Callable[[int], int], names: dict[str, str]) -> Entry:
    return replace(entry, offset=to(entry.offset), identity=names.get(entry.identity, entry.identity))


def _numbering(offsets: set[int]) -> Callable[[int], int]:
    """Map each offset to the number of kept offsets below it."""
    ordered = sorted(offsets)
    return lambda offset: sum(1 for kept in ordered if kept < offset)

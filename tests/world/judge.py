"""Holds an answer against the truth: which laws a row breaks, and how good it is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from migrate.match.equality import Equality
from migrate.match.protocol import Matched, Unmatched
from tests.integration import oracle
from tests.world.model import Entry, World
from tests.world.rowjudge import Row, Violation, named
from tests.world.runner import Run


@dataclass(frozen=True)
class Verdict:
    """One row judged: what was answered, what is true. `at_best` also counts places that are best among equals."""

    source_committed: int
    place: Matched | Unmatched
    best: int
    rereads: int
    at_best: bool


@dataclass(frozen=True)
class Judgement:
    """A whole answer judged."""

    world: World
    rows: tuple[Verdict, ...]
    violations: tuple[Violation, ...]


def judge(world: World, run: Run) -> Judgement:
    """Hold every row of an answer against the oracle."""
    rows: list[Verdict] = []
    broken: list[Violation] = list(_tail(world, run))
    alike = world.alike_under(_weaker(world.survives, run.question.equality))
    for g in world.commits:
        place = run.answer.places.get(g)
        if place is None:
            broken.append(Violation("no-answer", g, "not in the answer"))
            continue
        best = oracle.best(world.truth, g)
        if isinstance(place, Unmatched):
            rows.append(Verdict(g, place, best, 0, False))
            broken += _estimated(world, g, place)
            continue
        row = Row(world, run, g, place, alike)
        broken += row.violations()
        rows.append(Verdict(g, place, best, row.rereads, row.at_best))
    return Judgement(world, tuple(rows), tuple(broken))


def _estimated(world: World, g: int, place: Unmatched) -> Iterator[Violation]:
    """Law 2: the smaller of the proven sync's lower end and the timestamp's loses nothing."""
    if place.guard_offset is None:
        return
    lower = world.target_log.start
    if place.lower is not None:
        lower = max(lower, place.lower[1] + (place.lower[0] != g))
    target_offset = min(lower, place.guard_offset)
    lost = oracle.lost(world.truth, g, target_offset)
    if lost:
        yield Violation("estimated-lost", g, f"Law 2 at {target_offset} loses {named(lost)}")


def _weaker(survives: Equality, used: Equality) -> Equality:
    """What both equalities look at: what one of them does not see tells no records apart."""
    if used is Equality.TIME_AND_KEY or used is Equality.ALL:
        return survives
    if survives is Equality.ALL:
        return used
    return survives if survives is used else Equality.KEY_AND_VALUE


def _tail(world: World, run: Run) -> Iterator[Violation]:
    """Law: `uncopied` is 0 only if nothing is still to come; what retention deleted meanwhile comes no more.

    Here all stands still, so that what was passed over does not come either, unless MM2's own position says otherwise.
    """
    tail, position = run.answer.tail, world.last_copied_offset
    if position is None or all(e.offset <= position for e in world.source_seen):
        tail = tail.at_rest()
    if tail.uncopied != 0:
        return
    to_come = [e for e in world.source_seen if e.offset >= max(world.reached, run.source_start)]
    absent = _still_to_come(world, to_come)
    detail = f"MM2 is still to copy {named(e.identity for e in absent)}" if absent else ""
    if detail := detail or _stopped_midway(world, to_come):
        is_told = absent and _told_as_missing(absent, world, run)
        yield Violation("not-drained-missing" if is_told else "not-drained", None, detail)
    elif any(e.identity not in {copy.identity for copy in world.target_seen} for e in to_come):
        yield Violation("not-drained-alike", None, "the copies of equal records stand for those still to come")


def _told_as_missing(absent: list[Entry], world: World, run: Run) -> bool:
    """True if they are below the last sync, from which on all is there, and every row that is owed them counts them,
    but for those that a compacted target may lack."""
    at_or_below = [(g, p) for g, p in run.answer.places.items() if g <= absent[-1].offset]
    counted = [e for e in absent if not (run.question.compacted and _is_superseded(e, world))]
    told = all(
        isinstance(place, Matched) and place.missing_on_target >= sum(e.offset >= g for e in counted)
        for g, place in at_or_below
    )
    return told and bool(world.syncs) and absent[-1].offset < world.syncs[-1].source_offset


def _is_superseded(entry: Entry, world: World) -> bool:
    """True if it is a tombstone, or a later record of its key has a copy."""
    copied = {copy.identity for copy in world.target_seen}
    later = (e for e in world.source_seen if e.offset > entry.offset and e.content.key == entry.content.key)
    return entry.content.value is None or any(e.identity in copied for e in later)


def _still_to_come(world: World, to_come: list[Entry]) -> list[Entry]:
    on_target = {e.identity for e in world.target_seen}
    alike = Counter(world.alike.get(e.identity, e.identity) for e in world.source_seen)
    on_target_alike = Counter(world.alike.get(e.identity, e.identity) for e in world.target_seen)
    absent = [(e, world.alike.get(e.identity, e.identity)) for e in to_come if e.identity not in on_target]
    return [entry for entry, number in absent if on_target_alike[number] < alike[number]]


def _stopped_midway(world: World, to_come: list[Entry]) -> str:
    """The last record may have been copied already when MM2 died, and its copies overtaken by older records."""
    names = {w.identity for w in world.written}
    last = next((e.identity for e in reversed(world.target_seen) if e.identity in names), None)
    if last is None or not any(e.offset > int(last) for e in to_come):
        return ""
    twins = Counter(world.alike.get(w.identity, w.identity) for w in world.written)
    if twins[world.alike.get(last, last)] > 1:
        return ""
    return f"MM2 stopped in the middle of a replay, behind {last}"

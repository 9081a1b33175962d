"""Matchers that know the truth, or a wrong version of it: they show that the judge sees what it should."""

from collections.abc import Callable, Generator

from migrate.match.protocol import (
    Matched,
    Needs,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
)
from migrate.mm2.chain import chain, lower_end, window
from tests.integration import oracle
from tests.world.model import World
from tests.world.runner import Matcher

Place = Callable[[World, int], Matched]


def brute_force(world: World) -> Matcher:
    """Every row at the oracle's best."""
    return _telling(world, lambda w, g: _at(w, g, oracle.best(w.truth, g)))


def one_too_far(world: World) -> Matcher:
    """Every row one behind the best: loses the record there, if one is owed at the best."""
    return _telling(world, lambda w, g: _at(w, g, oracle.best(w.truth, g) + 1))


def from_the_start(world: World) -> Matcher:
    """Every row at the log start, with the bound that the best would have."""

    def place(w: World, g: int) -> Matched:
        bound = oracle.rereads(w.truth, g, oracle.best(w.truth, g))
        return Matched(w.target_log.start, Why.UNKNOWN_RECORD, bound, len(oracle.missing(w.truth, g)))

    return _telling(world, place)


def from_the_start_exactly(world: World) -> Matcher:
    """Every row at the log start with a true bound, and said to be exact."""
    return _telling(world, lambda w, g: _at(w, g, w.target_log.start))


def blind_to_what_is_missing(world: World) -> Matcher:
    """The best, and no word about owed records that have no copy."""

    def place(w: World, g: int) -> Matched:
        best = oracle.best(w.truth, g)
        return Matched(best, Why.PROVEN, oracle.rereads(w.truth, g, best))

    return _telling(world, place)


def chain_alone(world: World) -> Matcher:
    """What the chain of syncs says, with no look at the records: MM2's own rule."""

    def place(w: World, g: int) -> Matched:
        kept = chain(w.syncs, w.source_log.end, w.target_log.end)
        d = lower_end(window(kept, g), g, w.target_log)
        return Matched(d, Why.UNKNOWN_RECORD, oracle.rereads(w.truth, g, d), len(oracle.missing(w.truth, g)))

    return _telling(world, place)


def always_drained(world: World) -> Matcher:
    """The best, and every tail said to have come over."""
    return _telling(world, lambda w, g: _at(w, g, oracle.best(w.truth, g)), Tail(0))


MATCHERS: dict[str, Callable[[World], Matcher]] = {
    "brute-force": brute_force,
    "one-too-far": one_too_far,
    "from-the-start": from_the_start,
    "from-the-start-exactly": from_the_start_exactly,
    "blind-to-what-is-missing": blind_to_what_is_missing,
    "chain-alone": chain_alone,
    "always-drained": always_drained,
}


def _at(world: World, g: int, target_offset: int) -> Matched:
    rereads = oracle.rereads(world.truth, g, target_offset)
    return Matched(target_offset, Why.PROVEN, rereads, len(oracle.missing(world.truth, g)))


def _telling(world: World, place: Place, tail: Tail | None = None) -> Matcher:
    def matcher(question: PartitionQuestion) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
        yield Needs()
        places: dict[int, Matched | Unmatched] = {g: place(world, g) for g in question.source_committed}
        return PartitionAnswer(places, tail or Tail(None), 0, 0)

    return matcher

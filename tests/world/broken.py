"""Matchings that are wrong on purpose, beside one that is right: they show that the judge sees what it should.

`MATCHERS` know the truth, or a wrong version of it. `BROKEN` are the product's matching, broken in ways that a
forgiving judge would let pass: each loses records, or says less than it should, in a family of worlds only; the laws'
tests have to fail on each.
"""

from collections.abc import Callable, Generator
from dataclasses import replace

from migrate.match.equality import Equality
from migrate.match.matcher import matching
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
    WhyUnmatched,
)
from migrate.mm2.chain import chain, lower_end, window
from tests.integration import oracle
from tests.world.model import World
from tests.world.runner import Matcher

Place = Matched | Unmatched
Talk = Generator[Needs, Supply | Unreadable, PartitionAnswer]
FEW = 2


def _at(world: World, g: int, target_offset: int, why: Why = Why.PROVEN) -> Matched:
    rereads = oracle.rereads(world.truth, g, target_offset)
    return Matched(target_offset, why, rereads, len(oracle.missing(world.truth, g)))


def _best(world: World, g: int) -> Matched:
    return _at(world, g, oracle.best(world.truth, g))


def _by_the_chain(world: World, g: int) -> Matched:
    kept = chain(world.syncs, world.source_log.end, world.target_log.end)
    return _at(world, g, lower_end(window(kept, g), g, world.target_log), Why.UNKNOWN_RECORD)


def _telling(place: Callable[[World, int], Matched], uncopied: int | None = None) -> Callable[[World], Matcher]:
    def make(world: World) -> Matcher:
        def matcher(question: PartitionQuestion) -> Talk:
            yield Needs()
            return PartitionAnswer({g: place(world, g) for g in question.source_committed}, Tail(uncopied), 0, 0)

        return matcher

    return make


MATCHERS: dict[str, Callable[[World], Matcher]] = {
    "brute-force": _telling(_best),
    # One behind the best: loses the record there, if one is owed at the best.
    "one-too-far": _telling(lambda w, g: _at(w, g, oracle.best(w.truth, g) + 1)),
    # At the log start, with the bound that the best would have.
    "from-the-start": _telling(
        lambda w, g: _best(w, g)._replace(target_offset=w.target_log.start, why=Why.UNKNOWN_RECORD)
    ),
    # At the log start with a true bound, and said to be exact.
    "from-the-start-exactly": _telling(lambda w, g: _at(w, g, w.target_log.start)),
    # The best, and no word about owed records that have no copy.
    "blind-to-what-is-missing": _telling(lambda w, g: _best(w, g)._replace(missing_on_target=0)),
    # What the chain of syncs says, with no look at the records: MM2's own rule.
    "chain-alone": _telling(_by_the_chain),
    # The best, and every tail said to have come over.
    "always-drained": _telling(_best, 0),
}


def _breaking(
    place: Callable[[World, PartitionQuestion, Place], Place] = lambda world, asked, found: found,
    tail: Callable[[Tail], Tail] = lambda tail: tail,
) -> Callable[[World], Matcher]:
    def make(world: World) -> Matcher:
        def matcher(question: PartitionQuestion) -> Talk:
            answer = yield from matching(question)
            places = {g: place(world, question, found) for g, found in answer.places.items()}
            return replace(answer, places=places, tail=tail(answer.tail))

        return matcher

    return make


def _at_the_end_where_hardly_a_sync_tells(world: World, asked: PartitionQuestion, found: Place) -> Place:
    """The target's end wherever a topic has at most two syncs and its timestamps are not kept."""
    if len(world.syncs) > FEW or "append-time" not in world.troubles:
        return found
    return Matched(asked.target_log.end, Why.UNKNOWN_RECORD, 10**6)


def _law_2_at_the_end(world: World, asked: PartitionQuestion, found: Place) -> Place:
    """The target's end for every commit whose window is too long to read."""
    end = asked.target_log.end
    if isinstance(found, Unmatched):
        return replace(found, guard_offset=end, lower=(asked.source_log.end, end))
    return found._replace(target_offset=end) if found.why is Why.NOT_ALL_READ else found


def _silent_where_not_all_was_read(world: World, asked: PartitionQuestion, found: Place) -> Place:
    """Nothing is ever missing: every row that misses records says that it did not read them."""
    if isinstance(found, Matched) and found.missing_on_target:
        return found._replace(missing_on_target=0, why=Why.NOT_ALL_READ)
    return found


def _placeless_in_whole_families(world: World, asked: PartitionQuestion, found: Place) -> Place:
    is_family = asked.equality is not Equality.ALL or "transactions" in world.troubles
    return Unmatched(WhyUnmatched.MATCH_LIMIT) if is_family else found


def _one_further(applies: Callable[[PartitionQuestion, Matched], bool]) -> Callable[[World], Matcher]:
    """The place one record further than the product's, in one family of rows."""

    def place(world: World, asked: PartitionQuestion, found: Place) -> Place:
        if isinstance(found, Matched) and applies(asked, found):
            return found._replace(target_offset=min(found.target_offset + 1, asked.target_log.end))
        return found

    return _breaking(place)


BROKEN: dict[str, Callable[[World], Matcher]] = {
    "at-the-end-where-hardly-a-sync-tells": _breaking(_at_the_end_where_hardly_a_sync_tells),
    "law-2-at-the-end": _breaking(_law_2_at_the_end),
    "silent-where-not-all-was-read": _breaking(
        _silent_where_not_all_was_read, lambda tail: replace(tail, uncopied=None)
    ),
    "placeless-in-whole-families": _breaking(_placeless_in_whole_families),
    "never-telling-of-the-tail": _breaking(tail=lambda tail: Tail(None)),
    "one-further-among-look-alikes": _one_further(lambda _, row: row.why is Why.LOOK_ALIKES),
    "one-further-below-the-log-start": _one_further(lambda _, row: row.why is Why.BELOW_LOG_START),
    "one-further-where-changed": _one_further(lambda asked, _: asked.equality is Equality.TIME_AND_KEY),
    "one-further-on-a-compacted-target": _one_further(lambda asked, _: asked.compacted),
    "one-further-beside-an-open-transaction": _one_further(lambda asked, _: asked.has_open_transaction),
}

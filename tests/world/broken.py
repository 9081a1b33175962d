"""The product's matching, broken on purpose in ways that a forgiving judge would let pass.

Each loses records, or says less than it should, in a family of worlds only; the laws' tests have to fail on each.
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
from tests.world.model import World
from tests.world.runner import Matcher

Place = Matched | Unmatched
FEW = 2


def at_the_end_where_hardly_a_sync_tells(world: World) -> Matcher:
    """The target's end wherever a topic has at most two syncs and its timestamps are not kept."""

    def place(question: PartitionQuestion, found: Place) -> Place:
        if len(world.syncs) > FEW or "append-time" not in world.troubles:
            return found
        return Matched(question.target_log.end, Why.UNKNOWN_RECORD, 10**6)

    return _breaking(place)


def law_2_at_the_end(world: World) -> Matcher:
    """The target's end for every commit whose window is too long to read."""

    def place(question: PartitionQuestion, found: Place) -> Place:
        end = question.target_log.end
        if isinstance(found, Unmatched):
            return replace(found, guard_offset=end, lower=(question.source_log.end, end))
        return found._replace(target_offset=end) if found.why is Why.NOT_ALL_READ else found

    return _breaking(place)


def silent_where_not_all_was_read(world: World) -> Matcher:
    """Nothing is ever missing: every row that misses records says that it did not read them."""

    def place(question: PartitionQuestion, found: Place) -> Place:
        if isinstance(found, Matched) and found.missing_on_target:
            return found._replace(missing_on_target=0, why=Why.NOT_ALL_READ)
        return found

    return _breaking(place, lambda tail: replace(tail, uncopied=None))


def placeless_in_whole_families(world: World) -> Matcher:
    """No place at all in whole families of worlds."""

    def place(question: PartitionQuestion, found: Place) -> Place:
        is_family = question.equality is not Equality.ALL or "transactions" in world.troubles
        return Unmatched(WhyUnmatched.MATCH_LIMIT) if is_family else found

    return _breaking(place)


def never_telling_of_the_tail(world: World) -> Matcher:
    """A tail that never says anything."""
    return _breaking(lambda question, found: found, lambda tail: Tail(None))


def one_further(applies: Callable[[PartitionQuestion, Matched], bool]) -> Callable[[World], Matcher]:
    """The place one record further than the product's, in one family of rows."""

    def place(question: PartitionQuestion, found: Place) -> Place:
        if isinstance(found, Matched) and applies(question, found):
            return found._replace(target_offset=min(found.target_offset + 1, question.target_log.end))
        return found

    return lambda world: _breaking(place)


BROKEN: dict[str, Callable[[World], Matcher]] = {
    "at-the-end-where-hardly-a-sync-tells": at_the_end_where_hardly_a_sync_tells,
    "law-2-at-the-end": law_2_at_the_end,
    "silent-where-not-all-was-read": silent_where_not_all_was_read,
    "placeless-in-whole-families": placeless_in_whole_families,
    "never-telling-of-the-tail": never_telling_of_the_tail,
    "one-further-among-look-alikes": one_further(lambda _, row: row.why is Why.LOOK_ALIKES),
    "one-further-below-the-log-start": one_further(lambda _, row: row.why is Why.BELOW_LOG_START),
    "one-further-where-changed": one_further(lambda asked, _: asked.equality is Equality.TIME_AND_KEY),
    "one-further-on-a-compacted-target": one_further(lambda asked, _: asked.compacted),
    "one-further-beside-an-open-transaction": one_further(lambda asked, _: asked.has_open_transaction),
}


def _breaking(
    place: Callable[[PartitionQuestion, Place], Place], tail: Callable[[Tail], Tail] = lambda tail: tail
) -> Matcher:
    def matcher(question: PartitionQuestion) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
        answer = yield from matching(question)
        places = {g: place(question, found) for g, found in answer.places.items()}
        return replace(answer, places=places, tail=tail(answer.tail))

    return matcher

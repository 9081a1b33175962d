"""Law 2b: a commit stands where the least timestamp of all that it is owed begins. 10,000 rows, 200,000 with `--long`.

The rule that others use, the timestamp of the first owed record, is judged on the same worlds: it loses records.
"""

from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.equality import Equality
from migrate.match.least_timestamp import NEVER, LeastTimestamps, by_timestamp, placed, question_for
from migrate.match.protocol import Matched, PartitionQuestion, Unmatched, Unreadable, Why, WhyUnmatched
from migrate.model import LogRange
from tests.integration import oracle
from tests.integration.oracle import Truth
from tests.world.model import World
from tests.world.notation import hand
from tests.world.rowjudge import since_deletion
from tests.world.runner import PARTITION, Run, conversed
from tests.world.tally import Draw

# Copies that the target stamps itself are no matter of timestamps: the row is a block.
KEPT = Draw(unwanted=frozenset({"append-time"}))
ROWS, LONG_ROWS = 10_000, 200_000
FALLING = Draw(wanted=("jitter",), unwanted=KEPT.unwanted)
# Rows of the usual rule that lose records, of these worlds: what docs/translation.md states.
LOST_BY_OTHERS = {ROWS: (23, 151), LONG_ROWS: (397, 3_127)}


@pytest.fixture
def rows(request) -> int:
    return LONG_ROWS if request.config.getoption("--long") else ROWS


@dataclass
class Rows:
    """What was seen in many worlds: `lost` counts rows that lose a record; `examples` say in which world."""

    rows: int = 0
    lost: int = 0
    short_bounds: int = 0
    falling: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, world: World, truth: Truth, committed: int, target_offset: int, rereads_at_most: int) -> None:
        """Judge one row by brute force."""
        self.rows += 1
        times = [entry.content.timestamp for entry in world.source_seen]
        self.falling += times != sorted(times)
        # An open transaction is a block of its own: open-transaction.
        lost = oracle.lost(truth, committed, target_offset) - {e.identity for e in world.source if e.pending}
        short = oracle.rereads(truth, committed, target_offset) > rereads_at_most
        self.lost += bool(lost)
        self.short_bounds += short
        if lost or short:
            self.examples.append(f"world {world.seed}, g={committed} at {target_offset}: loses {sorted(lost)}")


def question(world: World, match_limit: int = 1_000_000) -> PartitionQuestion:
    """Ask about every commit of a world, of which no sync is known."""
    return PartitionQuestion(
        PARTITION, PARTITION, world.source_log, world.target_log, world.commits, sync_pairs=(),
        equality=Equality.ALL, match_limit=match_limit, has_open_transaction=world.source_open,
    )  # fmt: skip


def answered(world: World, match_limit: int = 1_000_000) -> Run:
    """Read in small pieces, so that worlds have several."""
    return conversed(world, question(world, match_limit), partial(by_timestamp, piece=4))


def offsets(world: World) -> dict[int, int]:
    """Where each commit stands."""
    return {g: place.target_offset for g, place in answered(world).answer.places.items()}


def usual_rule(world: World, committed: int) -> int:
    """Where others place a commit: by the timestamp of the first owed record. Brokers search aborted records too."""
    start, end = world.target_log.start, world.target_log.end
    if committed < world.source_log.start:
        return start
    first = next((e.content.timestamp for e in world.source_seen if e.offset >= committed), None)
    if first is None:
        return end
    return max(start, min(end, next((e.offset for e in world.target if e.content.timestamp >= first), end)))


@pytest.mark.parametrize(("draw", "at"), [(KEPT, 0), (FALLING, 1)], ids=["all troubles", "falling timestamps"])
def test_no_record_is_lost_and_bounds_are_true_where_the_usual_rule_loses_some(draw, at, rows):
    ours, theirs, worlds = Rows(), Rows(), draw.worlds(1)
    while ours.rows < rows:
        world = next(worlds)
        run = answered(world)
        truth = since_deletion(world, run)
        for committed, place in run.answer.places.items():
            ours.add(world, truth, committed, place.target_offset, place.rereads_at_most)
            offset = usual_rule(world, committed)
            theirs.add(world, world.truth, committed, offset, world.target_log.end - offset)
    assert ours.falling > rows // 10
    assert (ours.lost, ours.short_bounds) == (0, 0), ours.examples[:5]
    assert theirs.lost == LOST_BY_OTHERS[rows][at]


def test_a_later_record_with_an_earlier_time_pulls_the_row_down():
    world = hand("0..4", "0..4@10..14", times={"0": 100, "1": 200, "2": 300, "3": 150, "4": 400})
    # The usual rule sends g=2 to where 300 begins, which is 12. MM2 of a second run, or two producers: 3 is older.
    assert offsets(world) == {0: 10, 1: 11, 2: 11, 3: 11, 4: 14, 5: 15}


def test_timestamps_say_of_no_log_that_all_of_it_is_copied():
    assert answered(hand("0..9", "0..9")).answer.tail.uncopied is None


def test_it_is_asked_for_one_millisecond_less():
    # A time index may name the last offset of the batch whose record has exactly that time.
    assert question_for(1_700_000_000_000) == 1_699_999_999_999 and question_for(1) == 0
    assert not any(question_for(least) is not None for least in (0, -1, -2, NEVER))


@pytest.mark.parametrize(
    ("least", "found", "target_offset"), [(-1, None, 7), (NEVER, None, 90), (5, 3, 7), (5, 95, 90)]
)
def test_without_a_time_a_row_is_at_the_start_owed_nothing_at_the_end_and_never_outside_the_pinned_log(
    least, found, target_offset
):
    assert placed(least, found, LogRange(7, 90)) == Matched(target_offset, Why.LEAST_TIMESTAMP, 90 - target_offset)


def test_retention_that_passes_a_commit_while_it_is_read_sends_it_to_the_log_start():
    world = hand("0..9", "0..9", commits=(0, 6, 9), retention=((2, True, 7),))
    assert offsets(world) == {0: 0, 6: 0, 9: 9}


def test_beyond_the_limit_nothing_is_read_and_no_record_places_the_row():
    answer = answered(hand("0..9", "0..9", commits=(3, 6)), match_limit=5).answer
    assert answer.places[3] == Unmatched(WhyUnmatched.MATCH_LIMIT) and answer.source_read == 4
    assert isinstance(answer.places[6], Matched)


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_log_that_can_not_be_read_is_said(rounds):
    world = hand("0..2", "0..2", commits=(1,))
    talk = by_timestamp(question(world))
    needs = next(talk)
    if rounds:
        assert needs.source and not needs.target
        run = conversed(world, question(world), by_timestamp)
        assert run.target_read == 0
    with pytest.raises(StopIteration) as done:
        talk.send(Unreadable("TOPIC_AUTHORIZATION_FAILED"))
    assert done.value.value.places == {1: Unmatched.not_readable("TOPIC_AUTHORIZATION_FAILED")}


@given(
    times=st.lists(st.integers(-1, 50), max_size=40),
    asked=st.sets(st.integers(0, 45), min_size=1),
    cut=st.integers(0, 40),
)
def test_the_least_time_since_an_offset_is_the_least_of_all_that_follow(times, asked, cut):
    least = LeastTimestamps(sorted(asked))
    for low, top in ((cut, len(times)), (0, cut)):
        least.add(range(low, min(top, len(times))), times[low:top])
    assert least.since() == {g: min(times[g:], default=NEVER) for g in asked}

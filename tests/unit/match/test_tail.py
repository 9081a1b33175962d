"""Whether MM2 has copied everything, judged by what is last on both logs."""

import pytest

from tests.unit.matchcases import judged, place
from tests.world.notation import hand
from tests.world.runner import answer


@pytest.mark.parametrize("syncs", [[(0, 0), (2, 2), (0, 3)], [(0, 0), (2, 2)]], ids=["", "its syncs are lost"])
def test_c4_a_replay_that_was_stopped_is_no_place_to_start_from_and_not_drained(syncs):
    found = judged(hand("0..2", "0..2@0..2 0@3", syncs, reached=1))
    assert place(found, 0).target_offset <= 1
    assert found.tail.uncopied != 0


@pytest.mark.parametrize("times", [{"0": 1_000, "1": 1_000}, {"0": 1_046, "1": 1_000}])
def test_an_aborted_record_that_was_copied_again_tells_of_a_replay_that_stopped(times):
    world = hand("0! 1", "0..1@0..1 0@2", times=times, reached=1, last_copied_offset=0)
    assert judged(world).tail.uncopied != 0


LATE = {"x": 45, "y": 46, "z": 47}


@pytest.mark.parametrize(
    ("world", "foreign", "perhaps_copies"),
    [
        (hand("0..4", "0..4@0..4", [(0, 0)]), 0, 0),
        # Of a local writer, among the copies and behind them: nobody can tell whether MM2 is done.
        (hand("0..4", "0..2@0..2 x@3 3..4@4..5 y@6", [(0, 0)]), 2, 0),
        (hand("0..4", "0..4@0..4 x@5 y@6", [(0, 0)], times={"x": 15, "y": 25}), 2, 0),
        # Copies of source records that nobody sees are no proof of a writer, wherever they are: between others,
        # at the end, behind the sync, two at the end, removed and aborted, of an open transaction.
        (hand("0..1 2! 3 |4", "0..1@0..1 2@2 3@3", [(0, 0)]), 1, 1),
        (hand("0..2 3!", "0..2@0..2 3@3", [(0, 0)]), 1, 1),
        (hand("0 1! |2 3..4", "0@0 1@1 3..4@2..3", [(0, 0)]), 1, 1),
        (hand("0..2 3! 4!", "0..2@0..2 3..4@3..4", [(0, 0)]), 2, 2),
        (hand("0..3 ~4 5!", "0..3@0..3 4..5@4..5", [(0, 0)]), 2, 2),
        (hand("0..2 3? 4?", "0..2@0..2 3..4@3..4", [(0, 0)]), 2, 2),
        # More than the source has offsets without a record are not all copies.
        (hand("0..4", "0..4@0..4 x@5 y@6 z@7", [(0, 0)], source_end=6, times=LATE), 3, 1),
    ],
)
def test_strangers_behind_the_last_sync_are_counted_and_those_that_may_be_copies_told(world, foreign, perhaps_copies):
    tail = judged(world).tail
    assert (tail.foreign, tail.perhaps_copies) == (foreign, perhaps_copies)


def test_a_tail_beyond_the_limit_is_neither_read_nor_judged():
    run = answer(hand("0..6000", "0..10@0..10", syncs=[(0, 0)], commits=[1]), match_limit=500)
    assert run.answer.tail.uncopied is None and run.source_read < 1000


PASSED_OVER = {
    "here and there": ("0..9", "0..2@0..2 4..6@3..5 8..9@6..7", 2),
    "all but the ends": ("0..9", "0@0 9@1", 8),
    "markers": ("0..3 |4 5..6 |7", "0@0 3@1 6@2", 3),
    "aborted at the end": ("0..5 6!", "0..1@0..1 3@2 5@3", 2),
    "compacted": ("0 ~1 2..6", "0@0 3..4@1..2 6@3", 2),
    "two runs": ("0..6", "0..1@0..1 3@2 1@3 3..4@4..5 6@6", 2),
    "the last once more": ("0..6", "0..1@0..1 6@2 6@3", 4),
    "a local writer": ("0..4", "0@0 x@1 2@2 4@3", 2),
    "changed": ("0..4", "0@0 1A@1 2@2 3A@3 4@4", 2),
}


@pytest.mark.parametrize("case", PASSED_OVER)
@pytest.mark.parametrize("syncs", [((0, 0),), ()], ids=["a sync", "no sync"])
def test_what_the_newest_run_passed_over_on_its_way_to_the_last_record_does_not_come_any_more(case, syncs):
    source, target, left_out = PASSED_OVER[case]
    found = judged(hand(source, target, syncs=syncs))
    assert (found.tail.uncopied, found.tail.at_rest().uncopied) == (left_out, 0)
    if case != "changed":
        assert place(found, 0).missing_on_target == left_out


@pytest.mark.parametrize(
    ("world", "uncopied", "at_rest"),
    [
        # What lies behind the newest run is still to come.
        (hand("0..9", "0@0 2..3@1..2 5..7@3..5", [(0, 0)]), 4, 2),
        (hand("0..3", "0@0 2@1", [(0, 0)]), 2, 1),
        # A record that was copied out of order was not passed over.
        (hand("0..4", "0@0 3@1 1@2 4@3", [(0, 0)]), 2, 2),
        # C4: every record has a copy, in order, and yet the newest run of MM2 has to copy 2 again.
        (hand("0..2", "0..2@0..2 1@3", [(0, 0)], reached=2), 1, 1),
        # C4: 1 and 4 were left out; of the replay that was stopped only 2 and 3 are there, and 5 to 9 once.
        (hand("0..9", "0@0 2..3@1..2 5..9@3..7 2..3@8..9", [(0, 0)], reached=4), 6, 6),
        # C7: what a paused writer copied late does not show what it passed over.
        (hand("0..7", "0..2@0..2 5@3 7@4 2..3@5..6", [(0, 0)], reached=4), 4, 4),
        # A last record that equals one before does not tell how far the newest run came.
        (hand("0..4", "0..1@0..1 4@2", [(1, 1)], like={"4": "1"}), 2, 2),
        (hand("0..4", "0..1@0..1 4@2", [(1, 1)], like={"4": "0"}), 2, 2),
    ],
)
def test_what_lies_behind_the_newest_run_or_was_not_passed_over_is_still_to_come(world, uncopied, at_rest):
    tail = judged(world).tail
    assert (tail.uncopied, tail.at_rest().uncopied) == (uncopied, at_rest)

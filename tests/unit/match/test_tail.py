"""Whether MM2 has copied everything, judged by what is last on both logs."""

import pytest

from tests.unit.matchcases import judged, place
from tests.world.model import World
from tests.world.notation import hand
from tests.world.runner import answer


def stopped_mid_replay(last_copied_offset: int | None) -> World:
    return hand(
        source="0..2",
        target="0..2@0..2 0@3",
        syncs=[(0, 0), (2, 2), (0, 3)],
        reached=1,
        last_copied_offset=last_copied_offset,
    )


def test_c4_a_replay_that_was_stopped_is_no_place_to_start_from_and_not_drained():
    found = judged(stopped_mid_replay(last_copied_offset=None))
    assert place(found, 0).target_offset <= 1
    assert found.tail.uncopied != 0


def test_c4_where_the_syncs_of_the_replay_are_lost():
    world = hand(source="0..2", target="0..2@0..2 0@3", syncs=[(0, 0), (2, 2)], reached=1)
    found = judged(world)
    assert place(found, 0).target_offset <= 1
    assert found.tail.uncopied != 0


def test_c4_where_the_replay_stopped_behind_a_sync_that_still_counts():
    """Every record has a copy, in order, and yet the newest run of MM2 has to copy 2 again."""
    world = hand(source="0..2", target="0..2@0..2 1@3", syncs=[(0, 0)], reached=2)
    assert judged(world).tail.uncopied == 1


def strangers(world: World) -> tuple[int, int]:
    tail = judged(world).tail
    return tail.foreign, tail.perhaps_copies


def test_records_of_a_local_writer_behind_the_last_sync_are_counted():
    local = hand(source="0..4", target="0..2@0..2 x@3 3..4@4..5 y@6", syncs=[(0, 0)])
    assert strangers(local) == (2, 0)
    late = hand(source="0..4", target="0..4@0..4 x@5 y@6", syncs=[(0, 0)], times={"x": 15, "y": 25})
    assert strangers(late) == (2, 0), "nobody can tell whether MM2 is done, and yet they are strangers"
    assert strangers(hand(source="0..4", target="0..4@0..4", syncs=[(0, 0)])) == (0, 0)


@pytest.mark.parametrize(
    ("source", "target", "copies"),
    [
        ("0..1 2! 3 |4", "0..1@0..1 2@2 3@3", 1),
        ("0..2 3!", "0..2@0..2 3@3", 1),
        ("0 1! |2 3..4", "0@0 1@1 3..4@2..3", 1),
        ("0..2 3! 4!", "0..2@0..2 3..4@3..4", 2),
        ("0..3 ~4 5!", "0..3@0..3 4..5@4..5", 2),
        ("0..2 3? 4?", "0..2@0..2 3..4@3..4", 2),
    ],
    ids=["between", "at the end", "behind the sync", "two at the end", "removed and aborted", "transaction open"],
)
def test_copies_of_source_records_that_nobody_sees_are_no_proof_of_a_writer_wherever_they_are(source, target, copies):
    assert strangers(hand(source=source, target=target, syncs=[(0, 0)])) == (copies, copies)


def test_more_strangers_than_the_source_has_offsets_without_a_record_are_not_all_copies():
    times = {"x": 45, "y": 46, "z": 47}
    world = hand("0..4", "0..4@0..4 x@5 y@6 z@7", syncs=[(0, 0)], source_end=6, times=times)
    assert strangers(world) == (3, 1)


@pytest.mark.parametrize("times", [{"0": 1_000, "1": 1_000}, {"0": 1_046, "1": 1_000}])
def test_an_aborted_record_that_was_copied_again_tells_of_a_replay_that_stopped(times):
    world = hand("0! 1", "0..1@0..1 0@2", times=times, reached=1, last_copied_offset=0)
    assert judged(world).tail.uncopied != 0


def test_a_tail_beyond_the_limit_is_neither_read_nor_judged():
    run = answer(hand("0..6000", "0..10@0..10", syncs=[(0, 0)], commits=[1]), match_limit=500)
    assert run.answer.tail.uncopied is None and run.source_read < 1000


def waiting(world: World) -> tuple[int | None, int | None]:
    """How many records have no copy, and how many of these are still to come if the copy stands still."""
    tail = judged(world).tail
    return tail.uncopied, tail.at_rest().uncopied


@pytest.mark.parametrize(
    ("source", "target", "left_out"),
    [
        ("0..9", "0..2@0..2 4..6@3..5 8..9@6..7", 2),
        ("0..9", "0@0 9@1", 8),
        ("0..3 |4 5..6 |7", "0@0 3@1 6@2", 3),
        ("0..5 6!", "0..1@0..1 3@2 5@3", 2),
        ("0 ~1 2..6", "0@0 3..4@1..2 6@3", 2),
        ("0..6", "0..1@0..1 3@2 1@3 3..4@4..5 6@6", 2),
        ("0..6", "0..1@0..1 6@2 6@3", 4),
        ("0..4", "0@0 x@1 2@2 4@3", 2),
        ("0..4", "0@0 1A@1 2@2 3A@3 4@4", 2),
    ],
    ids=[
        "here and there", "all but the ends", "markers", "aborted at the end", "compacted", "two runs",
        "the last once more", "a local writer", "changed",
    ],
)  # fmt: skip
@pytest.mark.parametrize("syncs", [((0, 0),), ()], ids=["a sync", "no sync"])
def test_what_the_newest_run_passed_over_on_its_way_to_the_last_record_does_not_come_any_more(
    source, target, left_out, syncs
):
    world = hand(source, target, syncs=syncs)
    assert waiting(world) == (left_out, 0)
    if "A" not in target:
        assert place(judged(world), 0).missing_on_target == left_out


def test_what_lies_behind_the_newest_run_is_still_to_come():
    world = hand("0..9", "0@0 2..3@1..2 5..7@3..5", syncs=[(0, 0)])
    assert waiting(world) == (4, 2)
    assert place(judged(world), 0).missing_on_target == 2
    assert waiting(hand("0..3", "0@0 2@1", syncs=[(0, 0)])) == (2, 1)


def test_a_record_that_was_copied_out_of_order_was_not_passed_over():
    assert waiting(hand("0..4", "0@0 3@1 1@2 4@3", syncs=[(0, 0)])) == (2, 2)


def test_c4_a_replay_that_was_stopped_has_passed_over_nothing():
    # 1 and 4 were left out; of the replay only 2 and 3 are there, and 5 to 9 once.
    world = hand("0..9", "0@0 2..3@1..2 5..9@3..7 2..3@8..9", syncs=[(0, 0)], reached=4)
    assert waiting(world) == (6, 6)


def test_c7_what_a_paused_writer_copied_late_does_not_show_what_it_passed_over():
    world = hand("0..7", "0..2@0..2 5@3 7@4 2..3@5..6", syncs=[(0, 0)], reached=4)
    assert waiting(world) == (4, 4)


def test_a_last_record_that_equals_one_before_does_not_tell_how_far_the_newest_run_came():
    for like in ({"4": "1"}, {"4": "0"}):
        world = hand("0..4", "0..1@0..1 4@2", syncs=[(1, 1)], like=like)
        assert waiting(world) == (2, 2)

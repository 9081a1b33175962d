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


def test_c4_with_mm2s_own_position_before_the_replay():
    found = judged(stopped_mid_replay(last_copied_offset=0))
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


def test_where_all_is_copied_the_tail_says_so():
    for world in (
        hand("0..4", "0..4@0..4", syncs=[(0, 0)]),
        hand("0..4", "0..4@0..4"),
        hand("0..4", "0..2@0..2 1..4@3..6", syncs=[(0, 0)]),
    ):
        assert judged(world).tail.uncopied == 0

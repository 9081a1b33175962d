"""Which windows are read and when a commit is placed: the cases that broke earlier wordings of the laws, by name."""

from collections.abc import Sequence

from tests.unit.matchcases import judged, place, planned
from tests.world.model import World
from tests.world.notation import hand


def test_c1_a_target_recreated_whose_sync_was_not_written_does_not_hide_the_record_that_went_on():
    world = hand(source="0..6", target="6@0", syncs=[(0, 0)])
    row = planned(world, g=1)
    assert row.target_offset == 0
    assert row.missing_on_target == 5


def test_c1_with_more_records_after_the_recreation():
    world = hand(source="0..9", target="6..9@0..3", syncs=[(0, 0)])
    found = judged(world)
    assert [place(found, g).target_offset for g in range(11)] == [0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]


def test_c3_a_dropped_record_with_a_late_timestamp_does_not_carry_the_row_beyond_its_successor():
    world = hand(
        source="0..8",
        target="0..4@0..4 6..8@5..7",
        syncs=[(0, 0), (8, 7)],
        times={"5": 5_000},
    )
    row = planned(world, g=5)
    assert row.target_offset <= 5
    assert row.missing_on_target == 1


def test_c3_without_an_upper_sync():
    world = hand(source="0..8", target="0..4@0..4 6..8@5..7", syncs=[(0, 0)], times={"5": 5_000})
    assert planned(world, g=5).target_offset <= 5


def test_c5_a_replay_after_a_truncation_that_was_broken_off_is_not_taken_for_the_whole():
    # Truncated to 10; MM2 resets, copies 0 to 4 again, dies before a flush, and resumes from its old commit 9.
    world = hand(
        source="0..13",
        target="0..9@0..9 old10@10 old11@11 old12@12 old13@13 0..4@14..18 10..13@19..22",
        syncs=[(0, 0), (9, 9), (0, 14), (10, 19)],
    )
    row = planned(world, g=0)
    assert row.target_offset <= 5


def test_c5_with_nothing_written_since():
    world = hand(
        source="0..9",
        target="0..9@0..9 old10@10 old11@11 old12@12 old13@13 0..4@14..18",
        syncs=[(0, 0), (9, 9), (0, 14)],
        reached=10,
        last_copied_offset=9,
    )
    assert planned(world, g=0).target_offset <= 5


def test_c6_a_replay_that_the_target_lost_again_in_part_is_not_taken_for_the_whole():
    # 61..64 at 59..62, replayed as 61..65 at 63..67; the target is truncated at 66 and MM2 goes on there with 66.
    syncs = [(0, 0), (61, 63), (66, 66)]
    world = hand(source="0..68", target="0..58@0..58 61..64@59..62 61..63@63..65 66..68@66..68", syncs=syncs)
    row = planned(world, g=59)
    assert row.target_offset <= 62  # 64 has its only copy there


def test_c6_with_the_syncs_of_the_replay_lost():
    world = hand(
        source="0..68", target="0..58@0..58 61..64@59..62 61..63@63..65 66..68@66..68", syncs=[(0, 0), (58, 58)]
    )
    assert planned(world, g=59).target_offset <= 62


def test_c7_a_paused_writer_that_wakes_late_does_not_carry_the_row_beyond_what_it_did_not_copy():
    world = hand(
        source="0..7",
        target="0..2@0..2 3..4@3..4 5..6@6..7 L@5 L2@8 7@9 2..4@10..12",
        syncs=[(0, 0), (7, 9), (3, 11)],
        reached=8,
    )
    row = planned(world, g=2)
    assert row.target_offset <= 9


def test_c8_a_copy_in_an_open_transaction_is_still_to_come():
    world = hand(source="0", target="0?@0", commits=[0, 1])
    assert world.target_log.end == 0
    found = judged(world)
    assert place(found, 0).target_offset == 0


def test_c8_a_source_record_behind_an_open_transaction_is_still_owed():
    # The transaction of 2 is open, so the pin stands at 2; MM2 reads uncommitted and has copied everything.
    world = hand(source="0..1 2? 3", target="0..3@0..3", syncs=[(0, 0), (3, 3)], commits=[0, 1, 2])
    assert world.source_log.end == 2
    found = judged(world)
    assert place(found, 2).target_offset <= 2


def recreated_source(syncs: Sequence[tuple[int, int]]) -> World:
    """Records 0 to 249 of the old topic, then MM2 resumes at 250 in the new one, whose 0 to 249 it never copies."""
    old = " ".join(f"old{n}@{n}" for n in range(250))
    return hand(
        source="0..299",
        target=f"{old} 250..299@250..299",
        syncs=syncs,
        commits=[0, 222, 249, 250, 260, 300],
        times={f"old{n}": 10 * n for n in range(250)},
        last_copied_offset=299,
    )


def test_c11_what_mm2_never_copied_of_a_recreated_topic_is_not_called_exact_and_not_hidden():
    for syncs in ([(0, 0), (100, 100), (249, 249), (299, 299)], [(0, 0), (249, 249)], [(0, 0)], []):
        found = judged(recreated_source(syncs))
        row = place(found, 222)
        assert row.target_offset <= 250
        assert row.missing_on_target == 28
        # Past unknown records, which may be owed ones in another shape, nothing is exact.
        assert not row.exact
        assert place(found, 260).target_offset == 260


def test_c11_where_only_the_oldest_records_are_not_known():
    found = judged(recreated_source([(250, 250), (299, 299)]))
    assert place(found, 250).target_offset == 250
    assert place(found, 222).missing_on_target == 28

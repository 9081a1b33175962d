"""What keeps a row from the last copies that were found, and from being called exact; when syncs count as anchors."""

from dataclasses import replace

import pytest

from migrate.match.equality import Content
from migrate.match.protocol import Why
from tests.unit.matchcases import judged, place, planned
from tests.world.notation import hand


def test_c2_an_altered_record_before_a_kept_one_is_not_stepped_over():
    world = hand(source="0..4", target="0@0 1@1 2@2 3A@3 4@4", syncs=[(0, 0), (4, 4)])
    row = planned(world, g=3)
    assert row.target_offset == 3
    assert not row.exact


def test_c10_a_group_below_the_log_start_is_owed_what_retention_removed():
    world = hand(source="~0 ~1 2", target="0..2@0..2", syncs=[(0, 0), (2, 2)], source_start=2, commits=[0, 1, 2, 3])
    found = judged(world)
    assert place(found, 0).target_offset == 0
    assert not place(found, 0).exact
    assert place(found, 1).target_offset <= 1
    assert place(found, 2).target_offset == 2


def test_a_record_in_another_shape_before_a_replay_that_stopped_is_not_passed_over():
    world = hand("0..1", "1A@0 0@1", syncs=[(1, 0)], commits=[1], reached=1, last_copied_offset=0)
    assert planned(world, 1).target_offset == 0


def test_below_the_log_start_nothing_is_counted_where_a_record_that_is_left_has_no_copy():
    world = hand("~0 1..2", "0..1A@0..1 0A@2", syncs=[(0, 2)], commits=[0], reached=3)
    assert planned(world, 0).target_offset <= 1


def test_below_the_log_start_nothing_is_counted_where_a_removed_record_has_no_copy():
    world = hand("~0..3 4", "0@0 2..4@1..3", syncs=[(0, 0)], commits=[2], source_start=4)
    assert planned(world, 2).target_offset <= 1


def test_a_group_ahead_of_mm2_reads_again_what_is_still_to_come():
    row = planned(hand("0..4", "0..1@0..1", [(0, 0)], commits=[4], reached=2), 4)
    assert (row.target_offset, row.why, row.rereads_at_most) == (2, Why.NOT_COPIED_YET, 2)


def test_copies_that_the_target_lost_at_its_end_are_missing_and_not_still_to_come():
    """As after an unclean leader election: MM2 has passed them, and copies them no more."""
    found = judged(hand("0..9", "0..6@0..6", [(0, 0)], commits=[2, 8, 10], reached=10, last_copied_offset=9))
    assert [place(found, g).missing_on_target for g in (2, 8, 10)] == [3, 2, 0]
    found = judged(hand("0..9", "0..6@0..6", [(0, 0)], commits=[2, 8, 10], reached=7, last_copied_offset=6))
    assert [place(found, g).missing_on_target for g in (2, 8, 10)] == [0, 0, 0], "they will come"


@pytest.mark.parametrize("on_source", [True, False])
def test_a_row_whose_log_lost_its_beginning_while_it_was_read_is_not_exact(on_source):
    world = hand("0..5", "0..5@0..5", [(0, 0)], commits=[4], retention=[(1, on_source, 2)])
    row = planned(world, 4)
    assert (row.target_offset, row.why) == (4, Why.RETENTION)


def test_where_contents_are_changed_on_the_way_time_and_key_place_a_commit():
    masked = (Content(1, b"k", b"v", ()), Content(1, b"k", b"masked", ()))
    world = hand("0..4", "0A@0 1A@1 2A@2 3A@3 4A@4", [(0, 0), (4, 4)])
    row = planned(replace(world, elsewhere=(masked,) * 5), 2)
    assert (row.target_offset, row.why) == (2, Why.CHANGED_IN_FLIGHT)


def test_c9_a_stale_sync_to_a_log_that_is_gone_is_refuted_by_its_records():
    world = hand(
        source="~0 1 ~2 ~3..11 12 ~13 14 15",
        target="12@0 14@1 15@2",
        syncs=[(1, 1)],
        source_start=0,
    )
    found = judged(world)
    for g in (2, 12):
        assert place(found, g).target_offset == 0


def test_an_anchor_that_retention_removes_after_it_was_compared_closes_no_window():
    stamped_anew = ((Content(1, b"k", b"v", ()), Content(2, b"k", b"v", ())),) * 5
    for at in range(1, 5):
        world = hand(
            source="26..28 80",
            target="26..28@11..13 80@65",
            syncs=[(26, 11), (28, 13), (80, 65)],
            commits=[13, 27],
            retention=[(at, True, 65)],
        )
        judged(replace(world, elsewhere=stamped_anew))

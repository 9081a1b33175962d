"""Copies of records that look alike are told apart by their neighbours, as far as a mirror's order allows."""

from array import array
from collections import Counter

import pytest

from migrate.match.copies import Runs
from migrate.match.protocol import Why
from tests.unit.matchcases import planned
from tests.world.notation import hand


def runs(source: str, target: str) -> Runs:
    wanted = array("q", map(ord, source))
    return Runs(wanted, array("q", map(ord, target)), Counter(wanted))


@pytest.mark.parametrize(
    ("source", "target", "record", "place"),
    [
        ("axxb", "axxb", 1, 1),
        ("axxb", "axxb", 2, 2),
        # A replay that begins amid look-alikes is known from the record that ends them.
        ("axxxbc", "axxxb" + "xxbc", 3, 6),
        ("axxxbc", "axxxb" + "xxbc", 2, 5),
        ("axxxbc", "axxxb" + "xxbc", 1, 1),
        # One that was stopped amid them, from the record that began them.
        ("axxxbc", "axxxbc" + "axx", 2, 8),
        ("axxxbc", "axxxbc" + "axx", 3, 3),
    ],
)
def test_a_copy_that_one_run_alone_can_have_written_is_known(source, target, record, place):
    found = runs(source, target)
    assert found.last_copy(record) == place
    assert not found.is_doubtful(record)


def test_a_copy_that_both_runs_can_have_written_is_in_doubt_and_an_earlier_one_is_taken():
    # The third x is the end of the first run, or the beginning of the second: it began at 1 or at 2.
    found = runs("axxbxc", "axxb" + "x" + "xbxc")
    assert found.last_copy(1) == 1
    assert found.is_doubtful(1)


def test_what_others_wrote_ends_a_run_as_it_may_be_an_altered_copy():
    found = runs("axxxb", "ax?xb")
    assert (found.last_copy(1), found.last_copy(2), found.last_copy(3)) == (1, None, 3)


def test_a_second_copy_beside_a_gap_is_told_from_an_aborted_record_by_the_sync_mm2_began_anew_with():
    """MM2 was killed right behind the copy of record 6, and began anew with it; a marker stands before it."""
    logs = {"source": "0..4 |5 6 |7 8..9", "target": "0..4@0..4 6@5 6@6 8..9@7..8"}
    before, behind = [(0, 0), (4, 4), (6, 5)], [(8, 7), (9, 8)]
    told = planned(hand(**logs, syncs=[*before, (6, 6), *behind]), 5)
    assert (told.target_offset, told.why, told.rereads_at_most) == (6, Why.PROVEN, 0)
    untold = planned(hand(**logs, syncs=[*before, *behind]), 5)
    assert (untold.target_offset, untold.why) == (5, Why.LOOK_ALIKES)


def test_of_records_that_nothing_tells_apart_the_lowest_counts():
    """Records 2 and 3 look alike, and 3 was aborted: its copy may be that of 2, and is not taken for it."""
    row = planned(hand("0..2 3! 4", "0..4@0..4", [(0, 0), (4, 4)], like={"2": "0", "3": "0"}), 2)
    assert (row.target_offset, row.why) == (2, Why.LOOK_ALIKES)


def test_a_sync_whose_record_is_gone_names_no_other_records_copy():
    """The copy at 6 is that of record 5, which was removed since; record 6 looks like it, and has the copy at 5."""
    syncs = [(0, 0), (4, 4), (5, 6), (8, 7), (9, 8)]
    world = hand("0..4 ~5 6 |7 8..9", "0..4@0..4 6@5 5@6 8..9@7..8", syncs, like={"5": "6"})
    assert planned(world, 6).target_offset == 5

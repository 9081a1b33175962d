"""Which windows are read and when a commit is placed: the cases that broke earlier wordings of the laws, by name."""

from collections.abc import Sequence

import pytest

from tests.unit.matchcases import judged, place, planned
from tests.world.model import World
from tests.world.notation import hand


def test_c1_a_target_recreated_whose_sync_was_not_written_does_not_hide_the_record_that_went_on():
    row = planned(hand(source="0..6", target="6@0", syncs=[(0, 0)]), g=1)
    assert (row.target_offset, row.missing_on_target) == (0, 5)


@pytest.mark.parametrize("syncs", [[(0, 0), (8, 7)], [(0, 0)]])
def test_c3_a_dropped_record_with_a_late_timestamp_does_not_carry_the_row_beyond_its_successor(syncs):
    row = planned(hand(source="0..8", target="0..4@0..4 6..8@5..7", syncs=syncs, times={"5": 5_000}), g=5)
    assert row.target_offset <= 5 and row.missing_on_target == 1


BROKEN_OFF = "0..9@0..9 old10@10 old11@11 old12@12 old13@13 0..4@14..18"
LOST_AGAIN = "0..58@0..58 61..64@59..62 61..63@63..65 66..68@66..68"


@pytest.mark.parametrize(
    ("world", "g", "highest"),
    [
        # Truncated to 10; MM2 resets, copies 0 to 4 again, dies before a flush, and resumes from its old commit 9.
        (hand("0..13", f"{BROKEN_OFF} 10..13@19..22", [(0, 0), (9, 9), (0, 14), (10, 19)]), 0, 5),
        # Nothing was written since.
        (hand("0..9", BROKEN_OFF, [(0, 0), (9, 9), (0, 14)], reached=10, last_copied_offset=9), 0, 5),
        # 61..64 at 59..62, replayed as 61..65 at 63..67; the target is truncated at 66 and MM2 goes on there with 66.
        # 64 has its only copy at 62.
        (hand("0..68", LOST_AGAIN, [(0, 0), (61, 63), (66, 66)]), 59, 62),
        (hand("0..68", LOST_AGAIN, [(0, 0), (58, 58)]), 59, 62),
        (
            hand(
                "0..7", "0..2@0..2 3..4@3..4 5..6@6..7 L@5 L2@8 7@9 2..4@10..12", [(0, 0), (7, 9), (3, 11)], reached=8
            ),
            2,
            9,
        ),
    ],
    ids=[
        "c5, a replay after a truncation that was broken off", "c5, nothing written since",
        "c6, a replay that the target lost again in part", "c6, the syncs of the replay lost",
        "c7, a paused writer that wakes late",
    ],
)  # fmt: skip
def test_c5_to_c7_what_was_copied_in_part_is_not_taken_for_the_whole(world, g, highest):
    assert planned(world, g).target_offset <= highest


def test_c8_a_copy_in_an_open_transaction_is_still_to_come():
    world = hand(source="0", target="0?@0", commits=[0, 1])
    assert world.target_log.end == 0 and place(judged(world), 0).target_offset == 0


def test_c8_a_source_record_behind_an_open_transaction_is_still_owed():
    # The transaction of 2 is open, so the pin stands at 2; MM2 reads uncommitted and has copied everything.
    world = hand(source="0..1 2? 3", target="0..3@0..3", syncs=[(0, 0), (3, 3)], commits=[0, 1, 2])
    assert world.source_log.end == 2 and place(judged(world), 2).target_offset <= 2


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


@pytest.mark.parametrize(
    "syncs", [[(0, 0), (100, 100), (249, 249), (299, 299)], [(0, 0)], [], [(250, 250), (299, 299)]]
)
def test_c11_what_mm2_never_copied_of_a_recreated_topic_is_not_called_exact_and_not_hidden(syncs):
    found = judged(recreated_source(syncs))
    row = place(found, 222)
    assert row.target_offset <= 250 and row.missing_on_target == 28
    assert place(found, 260).target_offset == 260
    # Past unknown records, which may be owed ones in another shape, nothing is exact.
    assert not row.exact

"""Hand-written worlds: where a commit is placed, and whether MM2 has copied everything.

The cases that broke earlier wordings of the laws are called C1 to C11. They are written as in the design
(`tests/world/notation.py`): `u@d` is a copy of source record u at target d, A: altered, `?`: in an open transaction,
`~`: gone from the source. Beside what each names, no case may break a law.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from migrate.match.equality import Content
from migrate.match.protocol import Matched, PartitionAnswer, Why
from tests.integration import oracle
from tests.world.judge import judge
from tests.world.model import World
from tests.world.notation import explained, hand
from tests.world.runner import answer


def judged(world: World) -> PartitionAnswer:
    """Ask, and hold the answer against every law; returns it for what the case adds."""
    run = answer(world)
    judgement = judge(world, run)
    # A copy that was changed on the way counts as missing: it is not recognised.
    broken = {violation.kind for violation in judgement.violations} - {"missing-invented-changed"}
    assert not broken, "\n" + explained(judgement, run)
    for g, place in run.answer.places.items():
        assert isinstance(place, Matched), place
        assert not oracle.lost(world.truth, g, place.target_offset)
    return run.answer


def place(answered: PartitionAnswer, g: int) -> Matched:
    """The row of a commit, which must have been matched."""
    row = answered.places[g]
    assert isinstance(row, Matched), row
    return row


def changed(before: Content, after: Content, world: World) -> World:
    """The world, of whose topic other partitions have five records that are changed so on their way."""
    return replace(world, elsewhere=((before, after),) * 5)


BROKEN_OFF = "0..9@0..9 old10@10 old11@11 old12@12 old13@13 0..4@14..18"
LOST_AGAIN = "0..58@0..58 61..64@59..62 61..63@63..65 66..68@66..68"
DROPPED = {"source": "0..8", "target": "0..4@0..4 6..8@5..7", "times": {"5": 5_000}}
BELOW_START = hand("~0 ~1 2", "0..2@0..2", [(0, 0), (2, 2)], source_start=2, commits=[0, 1, 2, 3])
STALE_SYNC = hand("~0 1 ~2 ~3..11 12 ~13 14 15", "12@0 14@1 15@2", [(1, 1)], source_start=0)
# MM2 was killed right behind the copy of record 6, and began anew with it; a marker stands before it.
KILLED = {"source": "0..4 |5 6 |7 8..9", "target": "0..4@0..4 6@5 6@6 8..9@7..8"}
BEFORE, BEHIND = [(0, 0), (4, 4), (6, 5)], [(8, 7), (9, 8)]
MASKED = (Content(1, b"k", b"v", ()), Content(1, b"k", b"masked", ()))

CASES: dict[str, tuple[World, int, dict[str, Any]]] = {
    "c1, a target recreated whose sync was not written hides no record that went on": (
        hand("0..6", "6@0", [(0, 0)]), 1, {"target_offset": 0, "missing_on_target": 5}),
    "c2, an altered record before a kept one is not stepped over": (
        hand("0..4", "0@0 1@1 2@2 3A@3 4@4", [(0, 0), (4, 4)]), 3, {"target_offset": 3, "exact": False}),
    "c3, a dropped record with a late timestamp carries no row beyond its successor": (
        hand(**DROPPED, syncs=[(0, 0), (8, 7)]), 5, {"at_most": 5, "missing_on_target": 1}),
    "c3, without a sync behind it": (
        hand(**DROPPED, syncs=[(0, 0)]), 5, {"at_most": 5, "missing_on_target": 1}),
    # Truncated to 10; MM2 resets, copies 0 to 4 again, dies before a flush, and resumes from its old commit 9.
    "c5, a replay after a truncation that was broken off": (
        hand("0..13", f"{BROKEN_OFF} 10..13@19..22", [(0, 0), (9, 9), (0, 14), (10, 19)]), 0, {"at_most": 5}),
    "c5, nothing written since": (
        hand("0..9", BROKEN_OFF, [(0, 0), (9, 9), (0, 14)], reached=10, last_copied_offset=9), 0, {"at_most": 5}),
    # 61..64 at 59..62, replayed as 61..65 at 63..67; the target is truncated at 66 and MM2 goes on there with 66.
    # 64 has its only copy at 62.
    "c6, a replay that the target lost again in part": (
        hand("0..68", LOST_AGAIN, [(0, 0), (61, 63), (66, 66)]), 59, {"at_most": 62}),
    "c6, the syncs of the replay lost": (
        hand("0..68", LOST_AGAIN, [(0, 0), (58, 58)]), 59, {"at_most": 62}),
    "c7, a paused writer that wakes late": (
        hand("0..7", "0..2@0..2 3..4@3..4 5..6@6..7 L@5 L2@8 7@9 2..4@10..12", [(0, 0), (7, 9), (3, 11)], reached=8),
        2, {"at_most": 9}),
    "c8, a copy in an open transaction is still to come": (
        hand("0", "0?@0", commits=[0, 1]), 0, {"target_offset": 0}),
    # The transaction of 2 is open, so the pin stands at 2; MM2 reads uncommitted and has copied everything.
    "c8, a source record behind an open transaction is still owed": (
        hand("0..1 2? 3", "0..3@0..3", [(0, 0), (3, 3)], commits=[0, 1, 2]), 2, {"at_most": 2}),
    "c9, a stale sync to a log that is gone is refuted by its records": (STALE_SYNC, 2, {"target_offset": 0}),
    "c9, further on": (STALE_SYNC, 12, {"target_offset": 0}),
    "c10, a group below the log start is owed what retention removed": (
        BELOW_START, 0, {"target_offset": 0, "exact": False}),
    "c10, further on": (BELOW_START, 1, {"at_most": 1}),
    "c10, at the log start": (BELOW_START, 2, {"target_offset": 2}),
    "a record in another shape before a replay that stopped is not passed over": (
        hand("0..1", "1A@0 0@1", [(1, 0)], commits=[1], reached=1, last_copied_offset=0), 1, {"target_offset": 0}),
    "below the log start nothing is counted where a record that is left has no copy": (
        hand("~0 1..2", "0..1A@0..1 0A@2", [(0, 2)], commits=[0], reached=3), 0, {"at_most": 1}),
    "below the log start nothing is counted where a removed record has no copy": (
        hand("~0..3 4", "0@0 2..4@1..3", [(0, 0)], commits=[2], source_start=4), 2, {"at_most": 1}),
    "a group ahead of MM2 reads again what is still to come": (
        hand("0..4", "0..1@0..1", [(0, 0)], commits=[4], reached=2), 4,
        {"target_offset": 2, "why": Why.NOT_COPIED_YET, "rereads_at_most": 2}),
    "the source lost its beginning while it was read": (
        hand("0..5", "0..5@0..5", [(0, 0)], commits=[4], retention=[(1, True, 2)]), 4,
        {"target_offset": 4, "why": Why.RETENTION}),
    "the target lost its beginning while it was read": (
        hand("0..5", "0..5@0..5", [(0, 0)], commits=[4], retention=[(1, False, 2)]), 4,
        {"target_offset": 4, "why": Why.RETENTION}),
    "where contents are changed on the way, time and key place a commit": (
        changed(*MASKED, hand("0..4", "0A@0 1A@1 2A@2 3A@3 4A@4", [(0, 0), (4, 4)])), 2,
        {"target_offset": 2, "why": Why.CHANGED_IN_FLIGHT}),
    "a second copy beside a gap is told from an aborted record by the sync that MM2 began anew with": (
        hand(**KILLED, syncs=[*BEFORE, (6, 6), *BEHIND]), 5,
        {"target_offset": 6, "why": Why.PROVEN, "rereads_at_most": 0}),
    "and is not without that sync": (
        hand(**KILLED, syncs=[*BEFORE, *BEHIND]), 5, {"target_offset": 5, "why": Why.LOOK_ALIKES}),
    # Records 2 and 3 look alike, and 3 was aborted: its copy may be that of 2, and is not taken for it.
    "of records that nothing tells apart the lowest counts": (
        hand("0..2 3! 4", "0..4@0..4", [(0, 0), (4, 4)], like={"2": "0", "3": "0"}), 2,
        {"target_offset": 2, "why": Why.LOOK_ALIKES}),
    # The copy at 6 is that of record 5, which was removed since; record 6 looks like it, and has the copy at 5.
    "a sync whose record is gone names no other record's copy": (
        hand("0..4 ~5 6 |7 8..9", "0..4@0..4 6@5 5@6 8..9@7..8", [(0, 0), (4, 4), (5, 6), (8, 7), (9, 8)],
             like={"5": "6"}), 6, {"target_offset": 5}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_commit_of_a_hard_world_is_placed_where_nothing_is_lost_and_says_what_it_does_not_know(case):
    world, g, told = CASES[case]
    row = place(judged(world), g)
    known = {name: value for name, value in told.items() if name != "at_most"}
    assert row.target_offset <= told.get("at_most", row.target_offset)
    assert {name: getattr(row, name) for name in known} == known


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


@pytest.mark.parametrize(("reached", "missing"), [(10, [3, 2, 0]), (7, [0, 0, 0])], ids=["passed", "they will come"])
def test_copies_that_the_target_lost_at_its_end_are_missing_if_mm2_has_passed_them(reached, missing):
    """As after an unclean leader election: MM2 copies them no more."""
    ends = {"reached": reached, "last_copied_offset": reached - 1}
    found = judged(hand("0..9", "0..6@0..6", [(0, 0)], commits=[2, 8, 10], **ends))
    assert [place(found, g).missing_on_target for g in (2, 8, 10)] == missing


@pytest.mark.parametrize("at", range(1, 5))
def test_an_anchor_that_retention_removes_after_it_was_compared_closes_no_window(at):
    logs = {"source": "26..28 80", "target": "26..28@11..13 80@65", "syncs": [(26, 11), (28, 13), (80, 65)]}
    world = hand(**logs, commits=[13, 27], retention=[(at, True, 65)])
    judged(changed(Content(1, b"k", b"v", ()), Content(2, b"k", b"v", ()), world))


# --- tails: what is last on both logs


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

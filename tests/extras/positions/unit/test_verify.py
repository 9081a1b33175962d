"""A checkpoint on the target beside the plan: as planned, moved on, behind, or without a partition."""

import pytest

from migrate.errors import UsageError
from migrate.extras.positions.held import CheckpointAsked, HeldPosition
from migrate.extras.positions.verify import (
    PositionStanding,
    UnreadCheckpoint,
    asked_of,
    counted,
    not_looked_at,
    read_checkpoints,
    verify_lines,
    verify_positions,
)
from tests.extras.positions.unit.heldscene import FakePositions, checkpoint
from tests.extras.positions.unit.positionplans import make_position, make_positions, origin_of

PLAN = make_positions([make_position("query", "t", p, target_topic="A.t", target_offset=100) for p in range(2)])


def found(*offsets):
    return verify_positions(PLAN, [checkpoint("query", offsets)])


def standings(verified):
    return [finding.standing for finding in verified.findings]


def began(holder, *offsets):
    return tuple(HeldPosition(holder, *of) for of in offsets)


def test_a_query_that_moved_on_is_as_planned_and_one_behind_or_without_a_partition_is_not():
    folder = checkpoint(
        "query", (("A.t", 0, 100), ("A.t", 1, 107)), began=began("query", ("A.t", 0, 0), ("A.t", 1, 100))
    )
    fine = verify_positions(PLAN, [folder])
    assert standings(fine) == [PositionStanding.EQUAL, PositionStanding.MOVED_ON]
    assert fine.exit_code == 0 and "moved on by 7 offsets" in fine.findings[1].sentence
    wrong = found(("A.t", 0, 99))
    assert standings(wrong) == [PositionStanding.BEHIND, PositionStanding.ABSENT]
    assert wrong.exit_code == 1 and counted(wrong.findings)[PositionStanding.ABSENT] == 1
    behind, absent = (finding.sentence for finding in wrong.findings)
    assert "1 before the planned 100" in behind and "from its beginning" in absent


def test_a_query_that_began_beyond_the_plan_has_skipped_what_lies_between():
    """As one that was started without startingOffsets, at the end of the log."""
    folder = checkpoint("query", (("A.t", 0, 5000), ("A.t", 1, 100)), began=began("query", ("A.t", 0, 4900)))
    seen = verify_positions(PLAN, [folder])
    assert standings(seen) == [PositionStanding.SKIPPED, PositionStanding.EQUAL]
    assert (
        seen.exit_code == 1
        and "4,800 offsets beyond the planned 100: what lies between is never read" in seen.findings[0].sentence
    )


MOVED_ON, SKIPPED, NOT_VISIBLE = PositionStanding.MOVED_ON, PositionStanding.SKIPPED, PositionStanding.NOT_VISIBLE


@pytest.mark.parametrize(("batch", "rewritten", "began_at", "standing"), [
    # A copied folder went on from the batch that was rewritten; what the source's query began at says nothing.
    (150, 100, 0, MOVED_ON), (150, 100, 300, MOVED_ON), (150, 400, 0, SKIPPED), (150, 400, 300, SKIPPED),
    (150, None, 0, NOT_VISIBLE), (150, None, 300, NOT_VISIBLE),
    # A new one went on from where it began, also where it has a batch of that number.
    (150, 230, 100, MOVED_ON), (150, 230, 101, SKIPPED), (3, None, 100, MOVED_ON), (3, None, 101, SKIPPED),
])  # fmt: skip
def test_where_both_sides_have_one_name_a_folder_went_on_from_the_rewritten_batch_or_where_it_began(
    batch, rewritten, began_at, standing
):
    row = make_position("query", "t", 0, target_topic="t", source_committed=400, target_offset=100)
    asked = () if rewritten is None else began("query", ("t", 0, rewritten))
    start = began("query", ("t", 0, began_at))
    folder = checkpoint("query", [("t", 0, 500)], began=start, batch=batch, asked_batch=asked)
    assert standings(verify_positions(make_positions([row], origins=(origin_of(),)), [folder])) == [standing]


def test_the_folder_that_was_translated_is_no_folder_on_the_target():
    origin = origin_of()
    plan = make_positions(PLAN.rows, origins=(origin,))
    with pytest.raises(UsageError, match="is the folder of the query on the source"):
        asked_of(plan, [CheckpointAsked("query", "file:///a")])
    assert asked_of(plan, [CheckpointAsked("query", "file:///b")]) == [CheckpointAsked("query", "file:///b", 17)]


def test_holders_of_which_no_folder_was_named_are_said_not_to_be_looked_at():
    plan = make_positions([*PLAN.rows, make_position("other", "t", 0)])
    seen = verify_positions(plan, [checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])])
    assert not_looked_at(plan, seen) == ("other",)
    assert "1 position of 1 holder not looked at: other." in " ".join(verify_lines(plan, seen, 80, False))
    assert "not looked at" not in " ".join(verify_lines(PLAN, seen, 80, False))


def test_the_names_of_the_source_are_no_positions_on_the_target():
    assert found(("t", 0, 100), ("t", 1, 100)).exit_code == 1


def test_a_position_that_the_plan_blocks_is_left_out_and_never_a_success():
    blocked = make_position("query", "t", 1, target_topic="A.t", target_offset=None, decision="block")
    plan = make_positions([next(iter(PLAN.rows)), blocked])
    seen = verify_positions(plan, [checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])])
    assert standings(seen) == [PositionStanding.EQUAL, PositionStanding.LEFT_OUT]
    assert seen.exit_code == 4 and "no offset to set" in seen.findings[1].sentence
    assert list(verify_lines(plan, seen, 100, False))[0] == "POSITIONS VERIFIED IN PART: 1 of 2 positions"


def test_a_folder_that_cannot_be_read_is_said_and_costs_no_other_folder_its_answer():
    there = checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])
    asked = [CheckpointAsked("query", "file:///gone"), CheckpointAsked("query", there.origin)]
    verified = verify_positions(PLAN, read_checkpoints(asked, FakePositions.of(there)))
    assert standings(verified) == [PositionStanding.EQUAL, PositionStanding.EQUAL]
    assert [(u.origin, u.why) for u in verified.unread] == [("file:///gone", "file:///gone is gone. Look.")]
    assert verified.exit_code == 1, "what was not seen is never a success"


def test_what_breaks_while_a_folder_is_read_is_told_by_its_kind():
    class Breaking:
        def checkpoint(self, asked):
            raise ConnectionResetError("the JVM is gone")

    (unread,) = verify_positions(PLAN, read_checkpoints([CheckpointAsked("query", "x")], Breaking())).unread
    assert unread.why == "ConnectionResetError: the JVM is gone"


THREE = make_positions([make_position("query", "t", p, target_topic="A.t", target_offset=100) for p in range(3)])


@pytest.mark.parametrize(("offsets", "began_at", "lines", "named"), [
    ((100, 99), None, ["POSITIONS NOT AS PLANNED: 2 of 3 positions", "1 equal, 1 behind, 1 absent"],
     "query A.t:1: batch 7 has next offset 99"),
    ((100, 100, 130), 100, ["POSITIONS VERIFIED: 3 positions", "2 equal, 1 moved-on"], "moved on by 30 offsets"),
    ((100, 100, 130), 110, ["POSITIONS NOT AS PLANNED: 1 of 3 positions", "2 equal, 1 skipped"], "never read"),
    ((100, 100, 130), None, ["POSITIONS VERIFIED IN PART: 2 of 3 positions", "2 equal, 1 not-visible"], "not visible"),
])  # fmt: skip
def test_the_verdict_comes_first_and_what_is_wrong_next(offsets, began_at, lines, named):
    start = () if began_at is None else began("query", ("A.t", 2, began_at))
    folder = checkpoint("query", [("A.t", p, offset) for p, offset in enumerate(offsets)], began=start)
    told = list(verify_lines(THREE, verify_positions(THREE, [folder]), 100, False))
    assert told[:2] == lines and named in "\n".join(told) and "A.t:0" not in "\n".join(told)


def test_a_checkpoint_that_was_not_read_is_said_first_and_leaves_no_plain_success():
    unread = UnreadCheckpoint("other", "s3a://jobs/other", "s3a://jobs/other cannot be read: no such host.")
    read = checkpoint("query", [("A.t", p, 100) for p in range(3)])
    plan = make_positions([*THREE.rows, make_position("other", "t", 0, target_topic="A.t", target_offset=1)])
    first = "CHECKPOINT NOT READ: other: s3a://jobs/other cannot be read: no such host."
    lines = list(verify_lines(plan, verify_positions(plan, [read, unread]), 100, False))
    assert lines[:2] == [first, "POSITIONS VERIFIED IN PART: 3 of 3 positions"]
    assert list(verify_lines(plan, verify_positions(plan, [unread]), 100, False))[0] == first

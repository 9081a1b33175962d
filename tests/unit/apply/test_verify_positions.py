"""A checkpoint on the target beside the plan: as planned, moved on, behind, or without a partition."""

import pytest

from migrate.apply.verify_positions import PositionStanding, counted, read_checkpoints, verify_positions
from migrate.errors import UsageError
from migrate.survey.positions import CheckpointAsked
from tests.builders import make_plan, make_position
from tests.unit.heldscene import FakePositions, checkpoint

PLAN = make_plan(
    [
        make_position("query", "t", p, target_topic="A.t", target_offset=100, holder_kind="spark-checkpoint")
        for p in range(2)
    ]
)


def found(*offsets, holder="query"):
    return verify_positions(PLAN, [checkpoint(holder, offsets)])


def standings(verified):
    return [finding.standing for finding in verified.findings]


def test_a_query_that_moved_on_is_as_planned_and_one_behind_or_without_a_partition_is_not():
    fine = found(("A.t", 0, 100), ("A.t", 1, 107))
    assert standings(fine) == [PositionStanding.EQUAL, PositionStanding.MOVED_ON]
    assert fine.exit_code == 0 and "moved on by 7 offsets" in fine.findings[1].sentence
    wrong = found(("A.t", 0, 99))
    assert standings(wrong) == [PositionStanding.BEHIND, PositionStanding.ABSENT]
    assert wrong.exit_code == 1 and counted(wrong.findings)[PositionStanding.ABSENT] == 1
    behind, absent = (finding.sentence for finding in wrong.findings)
    assert "1 before the planned 100" in behind and "from its beginning" in absent


def test_the_names_of_the_source_are_no_positions_on_the_target():
    assert found(("t", 0, 100), ("t", 1, 100)).exit_code == 1


def test_a_holder_that_the_plan_has_not_is_wrong_use():
    with pytest.raises(UsageError, match="--spark-checkpoint other: the plan has no holder of that name"):
        found(("A.t", 0, 100), holder="other")


def test_a_position_that_the_plan_blocks_is_left_out_and_never_a_success():
    blocked = make_position(
        "query", "t", 1, target_topic="A.t", target_offset=None, decision="block", holder_kind="spark-checkpoint"
    )
    plan = make_plan([next(iter(PLAN.positions)), blocked])
    seen = verify_positions(plan, [checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])])
    assert standings(seen) == [PositionStanding.EQUAL, PositionStanding.LEFT_OUT]
    assert seen.exit_code == 4 and "no offset to set" in seen.findings[1].sentence


def test_one_position_behind_is_enough_to_fail():
    assert found(("A.t", 0, 100), ("A.t", 1, 99)).exit_code == 1


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

"""A checkpoint on the target beside the plan: as planned, moved on, behind, or without a partition."""

import pytest

from migrate.apply.verify_positions import PositionStanding, counted, exit_code_of, verify_positions
from migrate.errors import UsageError
from tests.builders import make_plan, make_position
from tests.unit.heldscene import checkpoint

PLAN = make_plan(
    [
        make_position("query", "t", p, target_topic="A.t", target_offset=100, holder_kind="spark-checkpoint")
        for p in range(2)
    ]
)


def found(*offsets, holder="query"):
    return verify_positions(PLAN, [checkpoint(holder, offsets)])


def test_a_query_that_moved_on_is_as_planned_and_one_behind_or_without_a_partition_is_not():
    fine = found(("A.t", 0, 100), ("A.t", 1, 107))
    assert [f.standing for f in fine] == [PositionStanding.EQUAL, PositionStanding.MOVED_ON]
    assert exit_code_of(fine) == 0 and "moved on by 7 offsets" in fine[1].sentence
    wrong = found(("A.t", 0, 99))
    assert [f.standing for f in wrong] == [PositionStanding.BEHIND, PositionStanding.ABSENT]
    assert exit_code_of(wrong) == 1 and counted(wrong)[PositionStanding.ABSENT] == 1
    assert "1 before the planned 100" in wrong[0].sentence and "from its beginning" in wrong[1].sentence


def test_the_names_of_the_source_are_no_positions_on_the_target():
    assert exit_code_of(found(("t", 0, 100), ("t", 1, 100))) == 1


def test_a_holder_that_the_plan_has_not_is_wrong_use():
    with pytest.raises(UsageError, match="--spark-checkpoint other: the plan has no holder of that name"):
        found(("A.t", 0, 100), holder="other")


def test_a_position_that_the_plan_blocks_is_left_out_and_never_a_success():
    blocked = make_position(
        "query", "t", 1, target_topic="A.t", target_offset=None, decision="block", holder_kind="spark-checkpoint"
    )
    plan = make_plan([next(iter(PLAN.positions)), blocked])
    seen = verify_positions(plan, [checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])])
    assert [f.standing for f in seen] == [PositionStanding.EQUAL, PositionStanding.LEFT_OUT]
    assert exit_code_of(seen) == 4 and "no offset to set" in seen[1].sentence


def test_one_position_behind_is_enough_to_fail():
    assert exit_code_of(found(("A.t", 0, 100), ("A.t", 1, 99))) == 1

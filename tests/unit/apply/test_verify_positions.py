"""A checkpoint on the target beside the plan: as planned, moved on, behind, or without a partition."""

import pytest

from migrate.apply.verify_positions import (
    PositionStanding,
    asked_of,
    counted,
    not_looked_at,
    read_checkpoints,
    verify_positions,
)
from migrate.errors import UsageError
from migrate.plan.plan import PositionOrigin
from migrate.show.verify_positions import left_out_lines
from migrate.survey.positions import CheckpointAsked, HeldPosition
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
        and "4800 offsets beyond the planned 100: what lies between is never read" in seen.findings[0].sentence
    )


def test_where_a_query_began_is_not_visible_once_its_folder_has_lost_it():
    seen = found(("A.t", 0, 100), ("A.t", 1, 107))
    assert standings(seen) == [PositionStanding.EQUAL, PositionStanding.NOT_VISIBLE]
    assert seen.exit_code == 4 and "not visible" in seen.findings[1].sentence


@pytest.mark.parametrize(
    ("batch", "standing"),
    [(100, PositionStanding.MOVED_ON), (400, PositionStanding.SKIPPED), (None, PositionStanding.NOT_VISIBLE)],
    ids=["put in", "not", "gone"],
)
@pytest.mark.parametrize("began_at", [0, 300])
def test_a_copied_folder_went_on_from_the_batch_that_was_rewritten_if_it_was_put_in(batch, standing, began_at):
    """Both sides have one name: what the source's query began at, long ago, says nothing."""
    row = make_position("query", "t", 0, target_topic="t", source_committed=400, target_offset=100,
                        holder_kind="spark-checkpoint")  # fmt: skip
    folder = checkpoint("query", [("t", 0, 500)], began=began("query", ("t", 0, began_at)), batch=150,
                        asked_batch=() if batch is None else began("query", ("t", 0, batch)))  # fmt: skip
    origin = PositionOrigin("file:///a", "spark-checkpoint", "query", "a" * 64, 17, 1, "v1", False)
    assert standings(verify_positions(make_plan([row], positions=(origin,)), [folder])) == [standing]


@pytest.mark.parametrize(("began_at", "standing"), [(100, PositionStanding.MOVED_ON), (101, PositionStanding.SKIPPED)])
@pytest.mark.parametrize("batch", [3, 150])
def test_a_new_folder_went_on_from_where_it_began_also_where_both_sides_have_one_name(batch, began_at, standing):
    row = make_position("query", "t", 0, target_topic="t", source_committed=400, target_offset=100,
                        holder_kind="spark-checkpoint")  # fmt: skip
    origin = PositionOrigin("file:///a", "spark-checkpoint", "query", "a" * 64, 17, 1, "v1", False)
    folder = checkpoint("query", [("t", 0, 500)], began=began("query", ("t", 0, began_at)), batch=batch,
                        asked_batch=began("query", ("t", 0, 230)) if batch > 17 else ())  # fmt: skip
    assert standings(verify_positions(make_plan([row], positions=(origin,)), [folder])) == [standing]


def test_the_folder_that_was_translated_is_no_folder_on_the_target():
    origin = PositionOrigin("file:///a", "spark-checkpoint", "query", "a" * 64, 17, 2, "v1", False)
    plan = make_plan(PLAN.positions, positions=(origin,))
    with pytest.raises(UsageError, match="is the folder of the query on the source"):
        asked_of(plan, [CheckpointAsked("query", "file:///a")])
    assert asked_of(plan, [CheckpointAsked("query", "file:///b")]) == [CheckpointAsked("query", "file:///b", 17)]


def test_holders_of_which_no_folder_was_named_are_said_not_to_be_looked_at():
    plan = make_plan([*PLAN.positions, make_position("other", "t", 0)])
    seen = verify_positions(plan, [checkpoint("query", [("A.t", 0, 100), ("A.t", 1, 100)])])
    assert not_looked_at(plan, seen) == ("other",) and not_looked_at(plan, None) == ("other", "query")
    assert "1 position of 1 holder not looked at: other." in " ".join(left_out_lines(plan, seen, 80))
    assert not list(left_out_lines(PLAN, seen, 80))


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

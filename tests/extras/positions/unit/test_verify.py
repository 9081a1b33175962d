"""A checkpoint on the target beside the plan: as planned, moved on, behind, or without a partition."""

import pytest

from migrate.errors import UsageError
from migrate.extras.positions.held import CheckpointAsked
from migrate.extras.positions.verify import (
    PositionStanding,
    UnreadCheckpoint,
    asked_of,
    not_looked_at,
    read_checkpoints,
    verify_lines,
    verify_positions,
)
from tests.builders import make_row
from tests.extras.positions.unit.positionplans import FakePositions, checkpoint, make_positions, origin_of, positions


def planned_rows(count):
    return [make_row("query", "t", p, target_topic="A.t", target_offset=100) for p in range(count)]


PLAN, THREE = make_positions(planned_rows(2)), make_positions(planned_rows(3))
EQUAL, MOVED_ON, SKIPPED = PositionStanding.EQUAL, PositionStanding.MOVED_ON, PositionStanding.SKIPPED
NOT_VISIBLE = PositionStanding.NOT_VISIBLE


def folder_at(*offsets, began=None):
    """A folder at these offsets of A.t, whose last partition the query began at `began`."""
    places = [("A.t", partition, offset) for partition, offset in enumerate(offsets)]
    start = () if began is None else positions("query", [(*places[-1][:2], began)])
    return checkpoint("query", places, began=start)


def standings(verified):
    return [finding.standing for finding in verified.findings]


def lines(plan, verified):
    return list(verify_lines(plan, verified, 100, False))


@pytest.mark.parametrize(("offsets", "began", "exit_code", "verdict", "named"), [
    ((100, 99), None, 1, ["POSITIONS NOT AS PLANNED: 2 of 3 positions", "1 equal, 1 behind, 1 absent"],
     ["query A.t:1: batch 7 has next offset 99, 1 before the planned 100", "from its beginning"]),
    ((100, 100, 130), 100, 0, ["POSITIONS VERIFIED: 3 positions", "2 equal, 1 moved-on"], ["moved on by 30 offsets"]),
    # As one that was started without startingOffsets, at the end of the log.
    ((100, 100, 5000), 4900, 1, ["POSITIONS NOT AS PLANNED: 1 of 3 positions", "2 equal, 1 skipped"],
     ["4,800 offsets beyond the planned 100: what lies", "never read"]),
    ((100, 100, 130), None, 4, ["POSITIONS VERIFIED IN PART: 2 of 3 positions", "2 equal, 1 not-visible"],
     ["not visible"]),
])  # fmt: skip
def test_the_verdict_comes_first_and_what_is_wrong_or_has_moved_on_next(offsets, began, exit_code, verdict, named):
    verified = verify_positions(THREE, [folder_at(*offsets, began=began)])
    told = lines(THREE, verified)
    assert told[:2] == verdict and verified.exit_code == exit_code
    assert all(words in " ".join(" ".join(told).split()) for words in named) and "A.t:0" not in "\n".join(told)


@pytest.mark.parametrize(("batch", "rewritten", "began_at", "standing"), [
    # A copied folder went on from the batch that was rewritten; what the source's query began at says nothing.
    (150, 100, 0, MOVED_ON), (150, 100, 300, MOVED_ON), (150, 400, 0, SKIPPED), (150, 400, 300, SKIPPED),
    (150, None, 0, NOT_VISIBLE), (17, None, 300, NOT_VISIBLE),
    # A new one went on from where it began, also where it has a batch of that number.
    (150, 230, 100, MOVED_ON), (150, 230, 101, SKIPPED), (16, None, 100, MOVED_ON), (16, None, 101, SKIPPED),
])  # fmt: skip
def test_where_both_sides_have_one_name_a_folder_went_on_from_the_rewritten_batch_or_where_it_began(
    batch, rewritten, began_at, standing
):
    row = make_row("query", "t", 0, target_topic="t", source_committed=400, target_offset=100)
    folder = checkpoint(
        "query", [("t", 0, 500)], batch=batch, began=positions("query", [("t", 0, began_at)]),
        asked_batch=() if rewritten is None else positions("query", [("t", 0, rewritten)]),
    )  # fmt: skip
    assert standings(verify_positions(make_positions([row], origins=(origin_of(),)), [folder])) == [standing]


def test_the_folder_that_was_translated_is_no_folder_on_the_target_nor_are_its_names_positions_there():
    plan = make_positions(PLAN.rows, origins=(origin_of(),))
    with pytest.raises(UsageError, match="is the folder of the query on the source"):
        asked_of(plan, [CheckpointAsked("query", "file:///a")])
    assert asked_of(plan, [CheckpointAsked("query", "file:///b")]) == [CheckpointAsked("query", "file:///b", 17)]
    assert verify_positions(PLAN, [checkpoint("query", [("t", 0, 100), ("t", 1, 100)])]).exit_code == 1


def test_holders_of_which_no_folder_was_named_are_said_not_to_be_looked_at():
    plan = make_positions([*PLAN.rows, make_row("other", "t", 0)])
    seen = verify_positions(plan, [folder_at(100, 100)])
    assert not_looked_at(plan, seen) == ("other",)
    assert "1 position of 1 holder not looked at: other." in " ".join(lines(plan, seen))
    assert "not looked at" not in " ".join(lines(PLAN, seen))


def test_a_position_that_the_plan_blocks_is_left_out_and_never_a_success():
    blocked = make_row("query", "t", 1, target_topic="A.t", target_offset=None, decision="block")
    plan = make_positions([PLAN.rows[0], blocked])
    seen = verify_positions(plan, [folder_at(100, 100)])
    assert standings(seen) == [EQUAL, PositionStanding.LEFT_OUT]
    assert seen.exit_code == 4 and "no offset to set" in seen.findings[1].sentence
    assert lines(plan, seen)[0] == "POSITIONS VERIFIED IN PART: 1 of 2 positions"


def test_a_folder_that_cannot_be_read_is_said_first_and_costs_no_other_folder_its_answer():
    plan = make_positions([*PLAN.rows, make_row("other", "t", 0)])
    asked = [CheckpointAsked("other", "file:///gone"), CheckpointAsked("query", folder_at().origin)]
    verified = verify_positions(plan, read_checkpoints(asked, FakePositions((folder_at(100, 100),))))
    assert standings(verified) == [EQUAL, EQUAL]
    assert verified.unread == (UnreadCheckpoint("other", "file:///gone", "file:///gone is gone. Look."),)
    assert verified.exit_code == 1, "what was not seen is never a success"
    first = "CHECKPOINT NOT READ: other: file:///gone is gone. Look."
    assert lines(plan, verified)[:2] == [first, "POSITIONS VERIFIED IN PART: 2 of 2 positions"]
    assert lines(plan, verify_positions(plan, verified.unread))[0] == first


def test_what_breaks_while_a_folder_is_read_is_told_by_its_kind():
    class Breaking:
        def checkpoint(self, asked):
            raise ConnectionResetError("the JVM is gone")

    (unread,) = read_checkpoints([CheckpointAsked("query", "x")], Breaking())
    assert unread.why == "ConnectionResetError: the JVM is gone"

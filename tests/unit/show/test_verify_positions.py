"""What is said of checkpoints beside a plan: the verdict first, then whatever is not equal."""

import json

from migrate.apply.verify_positions import UnreadCheckpoint, verify_positions
from migrate.show.verify_positions import position_document, position_lines, unread_document
from migrate.survey.positions import HeldPosition
from tests.builders import make_plan, make_position
from tests.unit.heldscene import checkpoint

PLAN = make_plan([make_position("query", "t", p, target_topic="A.t", target_offset=100) for p in range(3)])


def told(*offsets, began=()):
    start = tuple(HeldPosition("query", *of) for of in began)
    return list(position_lines(verify_positions(PLAN, [checkpoint("query", offsets, began=start)]), 100, False))


def test_the_verdict_comes_first_and_what_is_wrong_next():
    lines = told(("A.t", 0, 100), ("A.t", 1, 99))
    assert lines[0] == "POSITIONS NOT AS PLANNED: 2 of 3 positions"
    assert lines[1] == "1 equal, 1 behind, 1 absent"
    assert "query A.t:1: batch 7 has next offset 99" in "\n".join(lines) and "A.t:2" in "\n".join(lines)
    assert "A.t:0" not in "\n".join(lines)


def test_what_moved_on_is_named_and_is_no_trouble():
    lines = told(("A.t", 0, 100), ("A.t", 1, 100), ("A.t", 2, 130), began=[("A.t", 2, 100)])
    assert lines[0] == "POSITIONS VERIFIED: 3 positions" and "moved on by 30 offsets" in "\n".join(lines)


def test_where_it_began_is_what_tells_moving_on_from_skipping():
    skipped = told(("A.t", 0, 100), ("A.t", 1, 100), ("A.t", 2, 130), began=[("A.t", 2, 110)])
    assert skipped[:2] == ["POSITIONS NOT AS PLANNED: 1 of 3 positions", "2 equal, 1 skipped"]
    unseen = told(("A.t", 0, 100), ("A.t", 1, 100), ("A.t", 2, 130))
    assert unseen[:2] == ["POSITIONS VERIFIED IN PART: 2 of 3 positions", "2 equal, 1 not-visible"]


def test_what_the_plan_blocks_is_no_success():
    plan = make_plan([make_position("query", "t", 0, target_topic="A.t", target_offset=None, decision="block")])
    lines = list(position_lines(verify_positions(plan, [checkpoint("query", [("A.t", 0, 1)])]), 100, False))
    assert lines[0] == "POSITIONS VERIFIED IN PART: 0 of 1 position" and "no offset to set" in "\n".join(lines)


def test_a_finding_is_plain_values_for_json():
    finding = verify_positions(PLAN, [checkpoint("query", [("A.t", 0, 100)])]).findings[0]
    document = json.loads(json.dumps(position_document(finding)))
    assert (document["holder"], document["standing"], document["expected"], document["batch"]) == (
        "query", "equal", 100, 7,
    )  # fmt: skip


def test_a_checkpoint_that_was_not_read_is_said_first_and_leaves_no_plain_success():
    unread = UnreadCheckpoint("other", "s3a://jobs/other", "s3a://jobs/other cannot be read: no such host.")
    read = checkpoint("query", [("A.t", p, 100) for p in range(3)])
    plan = make_plan([*PLAN.positions, make_position("other", "t", 0, target_topic="A.t", target_offset=1)])
    lines = list(position_lines(verify_positions(plan, [read, unread]), 100, False))
    assert lines[0] == "CHECKPOINT NOT READ: other: s3a://jobs/other cannot be read: no such host."
    assert lines[1] == "POSITIONS VERIFIED IN PART: 3 of 3 positions"
    assert list(position_lines(verify_positions(plan, [unread]), 100, False)) == lines[:1]
    assert unread_document(unread)["why"] == unread.why

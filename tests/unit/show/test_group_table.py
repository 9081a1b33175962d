"""A plan's groups as text: a row is found by its names on a wide page, and no line is too wide on a narrow one."""

import pytest

from migrate.plan.plan import PlannedActivity, PlannedGroupState
from migrate.show.group_table import activity_texts, group_lines, state_texts
from tests.builders import make_plan, make_row


def test_the_target_has_no_column_where_no_topic_is_renamed():
    same = make_plan([make_row(target_topic="orders")])
    assert "TARGET-TOPIC" not in "\n".join(group_lines(same, same.rows, 250, False))


def test_the_states_of_both_sides_are_told_by_the_clusters_names():
    states = (
        PlannedGroupState(side="source", group="g", state="Stable", kind="consumer", member_count=2),
        PlannedGroupState(side="target", group="g", state="Empty", kind="consumer", member_count=0),
    )
    plan = make_plan([make_row("g")], group_states=states, source_alias="A", target_alias="B")
    assert state_texts(plan) == {"g": "Stable (2 members) on A, Empty on B"}


def test_a_plan_of_an_earlier_time_shows_what_is_committed_now_beside_it():
    rows = [make_row("g", source_committed=12, live_source_offset=99)]
    for width in (200, 70):
        plain, as_of = (
            list(group_lines(make_plan(rows, settings=settings), rows, width, False))
            for settings in ({}, {"commits-as-of": "2026-11-23T22:00:00.000Z"})
        )
        assert "LIVE" not in " ".join(plain)
        assert "LIVE-OFFSET" in " ".join(as_of) and any(" 99 " in f"{line} " for line in as_of)


@pytest.mark.parametrize("header", [{"flow": {"replicator": "any"}}, {"failback": True}])
@pytest.mark.parametrize("width", [80, 200])
def test_without_checkpoints_there_is_no_column_for_them(header, width):
    row = make_row(checkpoint_target_offset=None)
    with_them, without = (
        "\n".join(group_lines(plan, plan.rows, width, False)) for plan in (make_plan([row]), make_plan([row], **header))
    )
    assert "MM2-OFFSET" in with_them and "MM2" not in without
    assert "TARGET-OFFSET" in without and "RE-READS" in without and str(row.target_offset) in without


def test_what_a_groups_own_records_told_of_its_commits_is_said_as_far_as_they_told_it():
    activity = (
        PlannedActivity("g", 1_700_000_000_000, 5_000, 12), PlannedActivity("once", 1_700_000_240_000, None, None),
        PlannedActivity("by-a-faster-clock", 1_700_000_300_000, None, None),
    )  # fmt: skip
    told = activity_texts(make_plan([make_row("g")], activity=activity, created_at_ms=1_700_000_240_000))
    assert told == {
        "g": "last commit 2023-11-14T22:13:20.000Z, 4 min before the plan was made; commits about every 5 s, each time "
        "12 records of a partition: a hard stop reads them twice",
        "once": "last commit 2023-11-14T22:17:20.000Z, 0 s before the plan was made",
        "by-a-faster-clock": "last commit 2023-11-14T22:18:20.000Z, 0 s before the plan was made",
    }

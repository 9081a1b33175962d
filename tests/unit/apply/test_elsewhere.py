"""What a rollback cannot take back: what is as planned on the target, and was not written by this journal."""

from pathlib import Path

import pytest

from migrate.apply.history import GroupTrace, JournalState
from migrate.apply.undo import as_planned, look_elsewhere, outside
from migrate.errors import Refused
from migrate.model import Commit, Failure
from tests.fakes import FakeClock, NoProgress, Script
from tests.unit.applyscene import Scene, three_groups
from tests.unit.plans import plan, row


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return three_groups(tmp_path)


def look(scene: Scene):
    return look_elsewhere(scene.plan, scene.plan.rows, scene.target, FakeClock(), 10.0, NoProgress())


def test_without_a_journal_every_row_to_set_is_outside_and_after_an_apply_none(scene):
    to_set = [r.key for r in scene.plan.rows if r.decision == "set"]
    assert [r.key for r in outside(scene.plan, JournalState())] == to_set
    scene.apply()
    assert outside(scene.plan, scene.journal.read()) == ()


def test_rows_of_a_group_that_the_journal_wrote_only_in_part_are_outside():
    made = plan(row("g"), row("g", partition=1), row("h"))
    traces = {"g": GroupTrace(planned := {row("g").target_partition: 60}, dict.fromkeys(planned, "set"))}
    assert [r.key for r in outside(made, JournalState(applied=traces))] == [("g", "orders", 1), ("h", "orders", 0)]


def test_rows_that_another_folder_has_set_are_found_and_those_still_at_their_prior_offset_are_not(scene):
    assert not look(scene)
    scene.apply()
    found = look(scene)
    assert {r.key for r in found.rows} == {r.key for r in scene.plan.rows if r.decision == "set"} and not found.unread


def test_an_offset_that_was_there_before_counts_only_with_the_planned_metadata():
    planned = row("g", offset=60, target_prior=60, target_metadata="new", target_prior_metadata="old")
    place = planned.target_partition
    assert as_planned([planned], {"g": {place: Commit(60, "old")}}) == ()
    assert as_planned([planned], {"g": {place: Commit(60, "new")}}) == (planned,)
    assert as_planned([planned], {}) == ()


def test_a_group_that_cannot_be_read_is_named_with_the_reason(scene):
    group = scene.plan.rows[0].group
    scene.target.script("commits", group, Script(Failure("GROUP_AUTHORIZATION_FAILED", "no right")))
    found = look(scene)
    assert found.unread == (group,) and "GROUP_AUTHORIZATION_FAILED" in found.why


def test_a_cluster_that_does_not_answer_leaves_all_unread_and_another_cluster_is_refused(scene):
    scene.target.cluster_id = "another"
    with pytest.raises(Refused, match="another"):
        look(scene)
    scene.target.down = True
    found = look(scene)
    assert found.unread == tuple(sorted(scene.plan.groups())) and found.why

"""Groups that are called otherwise on the target: every fact of the target is that of the group with the new name."""

from dataclasses import replace

import pytest

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Decision, Level
from migrate.survey.filters import Filters
from migrate.survey.policies import Policies, Waiver
from tests.builders import make_plan, make_row
from tests.fakes import ALIVE
from tests.unit.planscene import checks_of, planned, planned_flow, rows_of, world

HEADING = "source_group,target_group"


def map_of(*lines: str) -> NameMap:
    return NameMap.from_lines("--group-map", "names.csv", "group", lines)


ONLY_G = Filters.from_options(groups=["g"])
TO_EU = map_of(HEADING, "g,g-eu")


def result_of(plan, check):
    """The one result of a check."""
    (result,) = [c for c in plan.header.checks if c.check == check]
    return result


def test_a_row_says_what_its_group_is_called_on_the_target_and_keeps_its_own_name():
    plan = planned(*world(), group_map=TO_EU)
    assert {(row.group, row.target_group, row.group_on_target) for row in plan.rows} == {
        ("g", "g-eu", "g-eu"),
        ("h", "", "h"),
    }
    assert plan.rows.renamed() == {"g": "g-eu"}


def test_the_offsets_and_members_of_the_old_name_on_the_target_are_none_of_the_groups_business():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    target.states["g"] = ALIVE
    plan = planned(source, target, mirror, group_map=TO_EU)
    assert rows_of(plan) == rows_of(planned(*world())) and all(row.target_prior is None for row in plan.rows)
    assert {s.group: s.state for s in plan.header.group_states if s.side == "target"}["g"] == "Absent"


def test_priors_and_members_are_those_of_the_new_name():
    source, target, mirror = world()
    target.commit("g-eu", "A.t", 0, 3, "old")
    target.states["g-eu"] = ALIVE
    plan = planned(source, target, mirror, group_map=TO_EU)
    prior = plan.groups()["g"][0]
    assert (prior.target_prior, prior.target_prior_metadata) == (3, "old")
    (block,) = [c for c in plan.blocks() if c.check == "target-group-empty"]
    assert block.subject == "g" and "on B as g-eu" in block.seen


def test_a_line_that_decides_for_no_group_blocks_by_name_as_a_misspelt_group_does_and_one_of_another_wave_does_not():
    plan = planned(*world(), group_map=map_of(HEADING, "g,g-eu", "typo,x", "regex:none-.*,y"))
    blocks = [c for c in plan.blocks() if c.check == "named-groups-exist"]
    assert [c.subject for c in blocks] == ["typo", "regex:none-.*"]
    assert "line 3 decides for none" in blocks[0].seen
    wave = planned(*world(), group_map=map_of(HEADING, "g,x", "h,y"), filters=ONLY_G)
    assert wave.rows.renamed() == {"g": "x"} and not checks_of(wave, "named-groups-exist")


def test_a_group_that_the_target_has_under_the_old_name_too_is_warned_of():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    warning = result_of(planned(source, target, mirror, group_map=TO_EU), "group-under-old-name")
    assert (warning.level, warning.subject) == (Level.WARN, "g")
    assert (warning.expected, warning.seen) == ("on B only g-eu, its new name", "B has a group g as well")
    assert not checks_of(planned(*world()), "group-under-old-name")


def test_a_new_name_that_a_group_has_on_the_target_is_warned_of_with_what_it_would_move_or_has_elsewhere():
    source, target, mirror = world()
    offset = planned(source, target, mirror, group_map=TO_EU).rows.groups()["g"][0].target_offset
    target.commit("g-eu", "A.t", 0, 3)
    warning = result_of(planned(source, target, mirror, group_map=TO_EU), "group-name-taken")
    assert (warning.level, warning.subject) == (Level.WARN, "g")
    assert warning.seen == f"B has one: the plan would move it on A.t-0 from 3 to {offset}"
    assert "another application's" in warning.todo
    target.commit("g-eu", "A.t", 0, offset)
    assert not checks_of(planned(source, target, mirror, group_map=TO_EU), "group-name-taken"), "as after an apply"
    target.commit("g-eu", "A.u", 0, 7)
    wave = planned(source, target, mirror, group_map=TO_EU, filters=Filters.from_options(topics=["t"]))
    assert not checks_of(wave, "group-name-taken"), "that wave has set it"
    target.commit("g-eu", "local", 0, 7)
    warning = result_of(planned(source, target, mirror, group_map=TO_EU), "group-name-taken")
    assert warning.level is Level.WARN and "committed on A.u-0, local-0 as well" in warning.seen


@pytest.mark.parametrize("lines", [["g,h"], ["g,x", "h,x"], ["h,g"]])
def test_a_group_of_another_wave_that_would_have_the_same_name_blocks_until_accepted(lines):
    options = {"group_map": map_of(HEADING, *lines), "filters": ONLY_G}
    (block,) = [c for c in planned(*world(), **options).blocks() if c.check == "group-name-shared"]
    assert block.subject == "g" and block.seen.startswith("h would")
    accepted = Policies(waivers=(Waiver("group-name-shared", "g"),))
    assert not planned(*world(), policies=accepted, **options).blocked_groups()


def test_a_group_that_is_excluded_by_name_never_moves_and_is_in_nobodys_way():
    without_h = Filters.from_options(exclude_groups=["h"])
    plan = planned(*world(), group_map=map_of(HEADING, "g,h"), filters=without_h)
    assert plan.rows.renamed() == {"g": "h"} and not checks_of(plan, "group-name-shared")


def checkpoint(at: int) -> CheckpointRecord:
    return CheckpointRecord(at, at, "", 0, 0)


def test_checkpoints_are_looked_up_by_the_sources_name_and_by_the_targets_where_that_has_none():
    source, target, mirror = world()
    mirror.latest = {
        CheckpointKey("g", "A.t", 0): checkpoint(40),
        CheckpointKey("g-eu", "A.t", 0): checkpoint(41),
        CheckpointKey("g-eu", "A.t", 1): checkpoint(42),
    }
    plan = planned(source, target, mirror, group_map=TO_EU)
    assert [row.checkpoint_target_offset for row in plan.groups()["g"]] == [40, 42]
    assert not checks_of(plan, "checkpointed-groups-listed")


@pytest.mark.parametrize("lines", [["g,h", "h,k"], ["g,h", "h,g"]])
def test_a_checkpoint_of_a_group_whose_name_another_one_gets_is_never_the_other_ones(lines):
    """By h's checkpoint on t-1 g would be set to where h stood, and pass over all that it is owed before."""
    source, target, mirror = world()
    known = {("g", 0): 40, ("h", 0): 90, ("h", 1): 95}
    mirror.latest = {CheckpointKey(group, "A.t", p): checkpoint(at) for (group, p), at in known.items()}
    for down in (False, True):
        rows = planned(source, target, mirror, down=down, group_map=map_of(HEADING, *lines)).groups()["g"]
        shown = {row.partition: row.checkpoint_target_offset for row in rows}
        assert shown[0] == 40 and shown.get(1) is None
    assert {row.partition: row.reason for row in rows}[1] == "source-gone-without-checkpoint"


def test_mm2s_group_sync_of_an_excluded_group_with_the_new_name_writes_this_ones_offsets_and_its_checkpoints_do_not():
    source, target, mirror = world()
    flow = replace(planned_flow(), group_sync=True)
    without_h = {"group_map": map_of(HEADING, "g,h"), "filters": Filters.from_options(exclude_groups=["h"])}
    (block,) = [c for c in planned(source, target, mirror, flow=flow, **without_h).blocks() if c.check == "group-sync"]
    assert block.subject == "g" and "A has a group h as well" in block.seen
    mirror.latest = {CheckpointKey("h", "A.t", 0): checkpoint(90)}
    assert not planned(source, target, mirror, down=True, **without_h).rows


def test_with_the_source_down_groups_are_those_of_the_checkpoints_under_either_name():
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.t", 0): checkpoint(40), CheckpointKey("h-eu", "A.u", 0): checkpoint(50)}
    plan = planned(source, target, mirror, down=True, group_map=map_of(HEADING, "g,g-eu", "h,h-eu"))
    assert plan.rows.renamed() == {"g": "g-eu", "h": "h-eu"}
    assert plan.groups()["h"][0].checkpoint_target_offset == 50


def test_with_the_source_down_checkpoints_under_the_new_name_alone_may_be_another_groups_and_wait_for_a_reviewer():
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("g", "A.t", 0): checkpoint(40), CheckpointKey("h-eu", "A.u", 0): checkpoint(50)}
    both = map_of(HEADING, "g,g-eu", "h,h-eu")
    accepting_down = Policies(waivers=(Waiver("source-down"),))
    plan = planned(source, target, mirror, down=True, group_map=both, policies=accepting_down)
    (block,) = [c for c in plan.blocks() if c.check == "group-name-shared"]
    assert (block.subject, block.level) == ("h", Level.NOT_VISIBLE)
    assert "its checkpoints are under h-eu, and a group h-eu of A may have made them" in block.seen
    assert {row.decision for row in plan.groups()["h"]} == {Decision.BLOCK}
    accepted = replace(accepting_down, waivers=(*accepting_down.waivers, Waiver("group-name-shared", "h")))
    plan = planned(source, target, mirror, down=True, group_map=both, policies=accepted)
    assert not [c for c in plan.blocks() if c.check == "group-name-shared"]


def test_with_the_source_down_a_name_that_two_lines_lead_to_is_nobodys_in_particular():
    source, target, mirror = world()
    mirror.latest = {CheckpointKey("x", "A.t", 0): checkpoint(40)}
    plan = planned(source, target, mirror, down=True, group_map=map_of(HEADING, "g,x", "h,x"))
    assert {row.group for row in plan.rows} == {"x"} and not plan.rows.renamed()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([make_row("a", target_group="x"), make_row("b", target_group="x")], "'a' and 'b' have one name"),
        ([make_row("a", target_group="b"), make_row("b")], "'a' and 'b' have one name"),
        ([make_row("a", target_group="x"), make_row("a", partition=1)], "'a' has two names"),
    ],
)
def test_a_plan_in_which_names_collide_is_none(rows, said):
    with pytest.raises(ValueError, match=said):
        make_plan(rows)


def test_a_group_that_a_replacement_leaves_without_a_name_is_refused_once_it_is_to_move():
    names = map_of(r"regex:h(.*),\1", "regex:g,x")
    assert planned(*world(), group_map=names, filters=ONLY_G).rows.renamed() == {"g": "x"}
    with pytest.raises(UsageError, match="group h would be without a name on the target"):
        planned(*world(), group_map=names)

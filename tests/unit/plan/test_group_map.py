"""Groups that are called otherwise on the target: every fact of the target is that of the group with the new name."""

from dataclasses import replace

import pytest

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.model import Decision, Level
from migrate.survey.filters import Filters
from tests.builders import make_plan, make_row
from tests.fakes import ALIVE
from tests.unit.planscene import accepting, blocks_of, checkpoints, checks_of, planned, results_of, rows_of, world
from tests.unit.surveyscene import FLOW


def map_of(*lines: str) -> NameMap:
    return NameMap.from_lines("--group-map", "names.csv", "group", ["source_group,target_group", *lines])


ONLY_G, WITHOUT_H = Filters.from_options(groups=["g"]), Filters.from_options(exclude_groups=["h"])
TO_EU = map_of("g,g-eu")


def renamed(*scene, names=TO_EU, **options):
    return planned(*(scene or world()), group_map=names, **options)


def test_the_offsets_and_members_of_the_old_name_on_the_target_are_none_of_the_groups_business_but_warned_of():
    source, target, mirror = world()
    target.commit("g", "A.t", 0, 99)
    target.states["g"] = ALIVE
    plan = renamed(source, target, mirror)
    assert rows_of(plan) == rows_of(planned(*world())) and all(row.target_prior is None for row in plan.rows)
    assert {(r.group, r.target_group, r.group_on_target) for r in plan.rows} == {("g", "g-eu", "g-eu"), ("h", "", "h")}
    assert {s.group: s.state for s in plan.header.group_states if s.side == "target"}["g"] == "Absent"
    (warning,) = results_of(plan, "group-under-old-name")
    assert (warning.level, warning.subject) == (Level.WARN, "g")
    assert (warning.expected, warning.seen) == ("on B only g-eu, its new name", "B has a group g as well")
    assert not checks_of(planned(*world()), "group-under-old-name")


def test_a_line_that_decides_for_no_group_blocks_by_name_as_a_misspelt_group_does_and_one_of_another_wave_does_not():
    first, second = blocks_of(renamed(names=map_of("g,g-eu", "typo,x", "regex:none-.*,y")), "named-groups-exist")
    assert (first.subject, second.subject) == ("typo", "regex:none-.*") and "line 3 decides for none" in first.seen
    wave = renamed(names=map_of("g,x", "h,y"), filters=ONLY_G)
    assert wave.rows.renamed() == {"g": "x"} and not checks_of(wave, "named-groups-exist")


def test_a_new_name_that_a_group_has_on_the_target_is_warned_of_with_what_it_would_move_or_has_elsewhere():
    scene = world()
    target = scene[1]
    offset = renamed(*scene).groups()["g"][0].target_offset
    target.commit("g-eu", "A.t", 0, 3)
    (warning,) = results_of(renamed(*scene), "group-name-taken")
    assert (warning.level, warning.subject) == (Level.WARN, "g")
    assert warning.seen == f"B has one: the plan would move it on A.t-0 from 3 to {offset}"
    assert "another application's" in warning.todo
    target.commit("g-eu", "A.t", 0, offset)
    assert not checks_of(renamed(*scene), "group-name-taken"), "as after an apply"
    target.commit("g-eu", "A.u", 0, 7)
    wave = renamed(*scene, filters=Filters.from_options(topics=["t"]))
    assert not checks_of(wave, "group-name-taken"), "that wave has set it"
    target.commit("g-eu", "local", 0, 7)
    (warning,) = results_of(renamed(*scene), "group-name-taken")
    assert warning.level is Level.WARN and "committed on A.u-0, local-0 as well" in warning.seen


@pytest.mark.parametrize("lines", [["g,h"], ["g,x", "h,x"], ["h,g"]])
def test_a_group_of_another_wave_that_would_have_the_same_name_blocks_until_accepted(lines):
    options = {"names": map_of(*lines), "filters": ONLY_G}
    (block,) = blocks_of(renamed(**options), "group-name-shared")
    assert (block.subject, block.level) == ("g", Level.BLOCK) and block.seen.startswith("h would")
    assert not renamed(policies=accepting("group-name-shared:g"), **options).blocked_groups()


def test_a_group_that_is_excluded_by_name_never_moves_and_is_in_nobodys_way_but_for_what_mm2_syncs_of_it():
    source, target, mirror = world()
    without_h = {"names": map_of("g,h"), "filters": WITHOUT_H}
    plan = renamed(source, target, mirror, **without_h, flow=replace(FLOW, group_sync=True))
    assert plan.rows.renamed() == {"g": "h"} and not checks_of(plan, "group-name-shared")
    (block,) = blocks_of(plan, "group-sync")
    assert block.subject == "g" and "A has a group h as well" in block.seen
    mirror.latest = checkpoints(("h", "A.t", 0, 90))
    assert not renamed(source, target, mirror, down=True, **without_h).rows


@pytest.mark.parametrize("lines", [["g,h", "h,k"], ["g,h", "h,g"]])
def test_a_checkpoint_of_a_group_whose_name_another_one_gets_is_never_the_other_ones(lines):
    """By h's checkpoint on t-1 g would be set to where h stood, and pass over all that it is owed before."""
    source, target, mirror = world()
    mirror.latest = checkpoints(("g", "A.t", 0, 40), ("h", "A.t", 0, 90), ("h", "A.t", 1, 95))
    for down in (False, True):
        rows = renamed(source, target, mirror, names=map_of(*lines), down=down).groups()["g"]
        assert [row.checkpoint_target_offset for row in rows] == [40, None]
    assert rows[1].reason == "source-gone-without-checkpoint"


def test_with_the_source_down_groups_are_those_of_the_checkpoints_and_new_names_alone_wait_for_a_reviewer():
    source, target, mirror = world()
    mirror.latest = checkpoints(("g", "A.t", 0, 40), ("h-eu", "A.u", 0, 50))

    def down(*waivers, lines=("g,g-eu", "h,h-eu")):
        policies = accepting("source-down", *waivers)
        return renamed(source, target, mirror, names=map_of(*lines), down=True, policies=policies)

    plan = down()
    assert plan.rows.renamed() == {"g": "g-eu", "h": "h-eu"}
    assert plan.groups()["h"][0].checkpoint_target_offset == 50
    (block,) = blocks_of(plan, "group-name-shared")
    assert (block.subject, block.level) == ("h", Level.NOT_VISIBLE)
    assert "its checkpoints are under h-eu, and a group h-eu of A may have made them" in block.seen
    assert {row.decision for row in plan.groups()["h"]} == {Decision.BLOCK}
    assert not blocks_of(down("group-name-shared:h"), "group-name-shared")
    mirror.latest = checkpoints(("x", "A.t", 0, 40))
    plan = down(lines=("g,x", "h,x"))
    assert {row.group for row in plan.rows} == {"x"} and not plan.rows.renamed(), "two lines lead there: nobody's"


def test_a_plan_in_which_names_collide_is_none():
    for called, other, said in (
        ({"target_group": "x"}, make_row("b", target_group="x"), "'a' and 'b' have one name"),
        ({"target_group": "b"}, make_row("b"), "'a' and 'b' have one name"),
        ({"target_group": "x"}, make_row("a", partition=1), "'a' has two names"),
    ):
        with pytest.raises(ValueError, match=said):
            make_plan([make_row("a", **called), other])


def test_a_group_that_a_replacement_leaves_without_a_name_is_refused_once_it_is_to_move():
    names = map_of(r"regex:h(.*),\1", "regex:g,x")
    assert renamed(names=names, filters=ONLY_G).rows.renamed() == {"g": "x"}
    with pytest.raises(UsageError, match="group h would be without a name on the target"):
        renamed(names=names)

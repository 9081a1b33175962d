"""`follow` under a group map: written, judged, kept and undone by the target's names, and nobody shares one."""

import json
from dataclasses import replace
from functools import partial

import pytest

from migrate.extras.follow.judge import WhyNot
from migrate.extras.follow.seen_groups import survey_of_the_others
from migrate.mm2.name_map import NoNameOfItsOwn
from tests.extras.follow.followscene import DENIED, T0, FollowScene, G, H, reasons
from tests.fakes import ALIVE
from tests.unit.checkscene import SURVEY

OLD = {("A.t", 0): 7}  # of a group with the old name, and none of ours


def mapped(folder, *lines, is_expression=False):
    lines = tuple((source, target, is_expression) for source, target in lines)
    return FollowScene(folder, changes={"group_map": lines})


@pytest.fixture
def scene(tmp_path):
    made = mapped(tmp_path, ("g", "g-eu"))
    made.target.commit("g", "A.t", 0, 7)
    return made


def test_a_renamed_group_is_written_judged_and_told_by_its_new_name_alone(scene):
    scene.target.states["g"] = ALIVE
    first, second = scene.look(), scene.look()
    assert (scene.on_b("g-eu"), scene.on_b("h"), scene.on_b("g")) == (G, H, OLD)
    assert (first.rows_set, first.refused) == (3, {}), "a living group with the old name is another one"
    assert (second.rows_set, second.refused) == (0, {})
    scene.source.commit("g", "t", 0, 70)
    scene.target.script("alter", "g-eu", DENIED)
    assert reasons(scene.look()) == {"g": WhyNot.NOT_SET}
    scene.target.commit("g-eu", "A.t", 0, 90)
    scene.target.states["h"] = ALIVE
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.WRITTEN, "h": WhyNot.ALIVE}
    assert result.unsafe == ("g",) and result.target_names == {"g": "g-eu"}


def test_a_write_in_doubt_is_asked_for_and_taken_back_under_the_new_name(scene):
    scene.look()
    scene.kill_amid_a_write(is_made=False)
    rows = scene.undo().rows
    assert {r.target_partition: (r.target_group, r.target_prior) for r in rows}[T0] == ("g-eu", 55)
    assert {(row.group, row.target_group) for row in rows} == {("g", "g-eu"), ("h", "")}


def test_the_journal_says_the_new_name_beside_each_event_also_after_it_was_made_short(scene):
    def names():
        events = [json.loads(line) for line in scene.journal.path.read_text().splitlines()]
        return {(event["group"], event.get("target_group")) for event in events if "group" in event}

    scene.look()
    assert names() == {("g", "g-eu"), ("h", None)}
    scene._writer._limit = 0
    scene._writer.shorten(scene.journal.read())
    assert names() == {("g", "g-eu"), ("h", None)}


@pytest.mark.parametrize(("lines", "sharing", "name"), [
    ([("g", "h")], "gh", "h"),
    ([("h", "g")], "gh", "g"),
    ([("g", "x"), ("h", "x"), ("i", "x")], "ghi", "x"),
])  # fmt: skip
def test_all_groups_that_would_share_a_name_are_left_out_and_called_unsafe_until_one_of_them_is_left(
    tmp_path, lines, sharing, name
):
    scene = mapped(tmp_path, *lines)
    scene.source.commit("i", "u", 0, 30)
    result = scene.look()
    assert reasons(result) == dict.fromkeys(sharing, WhyNot.NAME) and result.unsafe == tuple(sharing)
    assert f"groups g and h would both be {name}" in result.refused["g"].sentence
    assert not any(map(scene.on_b, ("g", "h", "x")))
    assert scene.on_b("i") == ({} if "i" in sharing else {("A.u", 0): 30})
    for gone in "gi":
        scene.source.offsets.pop(gone)
    assert "h" not in scene.look().refused and scene.on_b(name) == H


def test_a_group_of_which_the_map_leaves_no_name_is_left_out(tmp_path):
    scene = mapped(tmp_path, ("g(.*)", "\\1"), is_expression=True)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.NAME} and scene.on_b("h") == H and result.target_names == {}


def test_a_group_with_the_name_that_another_was_written_under_is_never_written_over_it_also_once_that_is_gone(scene):
    scene.look()
    scene.source.commit("g-eu", "u", 0, 30)
    assert reasons(scene.look()) == {"g": WhyNot.NAME, "g-eu": WhyNot.NAME} and scene.on_b("g-eu") == G
    scene.source.offsets.pop("g")
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.GONE_FROM_SOURCE, "g-eu": WhyNot.NAME} and result.unsafe == ("g", "g-eu")
    assert "so was g, which was written" in result.refused["g-eu"].sentence and scene.on_b("g-eu") == G
    scene.rollback()
    assert (scene.on_b("g-eu"), scene.on_b("h")) == ({}, {})


def test_what_was_left_out_is_still_asked_for_where_the_others_are_judged_and_no_look_is_taken_for_ever():
    def take(request, is_shared_for_ever=False):
        if is_shared_for_ever or request == SURVEY.request:
            raise NoNameOfItsOwn("groups a and b would both be x.", "", ("a", "b"))
        return replace(SURVEY, request=request)

    assert survey_of_the_others(SURVEY.request, take)[0].request == SURVEY.request
    with pytest.raises(NoNameOfItsOwn):
        survey_of_the_others(SURVEY.request, partial(take, is_shared_for_ever=True))


@pytest.mark.parametrize("side", ["source", "target"])
def test_groups_whose_commits_a_cluster_does_not_show_are_left_out_and_called_unsafe_and_the_others_are_followed(
    tmp_path, side
):
    scene = FollowScene(tmp_path)
    cluster = getattr(scene, side)
    for hidden in ("h", "gh"):
        for group in hidden:
            cluster.script("commits", group, DENIED, DENIED)
        result = scene.look()
        assert reasons(result) == dict.fromkeys(hidden, WhyNot.COMMITS) and result.unsafe == tuple(hidden)
        assert "GROUP_AUTHORIZATION_FAILED" in result.refused["h"].sentence and not result.trouble
        assert (scene.on_b("g"), scene.on_b("h")) == (G, {})
        cluster.scripts.clear()
    assert scene.look().refused == {} and scene.on_b("h") == H

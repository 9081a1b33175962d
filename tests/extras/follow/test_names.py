"""`follow` under a group map: written, judged, kept and undone by the target's names, and nobody shares one."""

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.extras.follow.journal import Followed
from migrate.extras.follow.judge import WhyNot
from migrate.extras.follow.mandate import lines_of
from migrate.extras.follow.seen_groups import survey_of_the_others
from migrate.mm2.name_map import NoNameOfItsOwn
from migrate.model import Failure
from tests.extras.follow.followscene import T0, FollowScene, G, H, mandate, reasons
from tests.fakes import ALIVE, Script
from tests.unit.checkscene import SURVEY


def mapped(*lines, is_expression=False):
    return {"group_map": tuple((source, target, is_expression) for source, target in lines)}


@pytest.fixture
def scene(tmp_path):
    made = FollowScene(tmp_path, changes=mapped(("g", "g-eu")))
    made.target.commit("g", "A.t", 0, 7)  # a group with the old name, and none of ours
    return made


def events(scene):
    return [json.loads(line) for line in scene.journal.path.read_text().splitlines()]


def test_a_renamed_group_is_written_under_its_new_name_alone_and_the_next_pass_finds_it_there(scene):
    first, second = scene.look(), scene.look()
    assert (scene.on_b("g-eu"), scene.on_b("h"), scene.on_b("g")) == (G, H, {("A.t", 0): 7})
    assert (first.rows_set, second.rows_set, second.refused) == (3, 0, {})


def test_it_is_judged_by_who_is_alive_and_who_has_written_under_the_new_name(scene):
    scene.target.states["g"] = ALIVE
    assert scene.look().refused == {}, "a living group with the old name is another one"
    scene.target.commit("g-eu", "A.t", 0, 90)
    scene.target.states["h"] = ALIVE
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.WRITTEN, "h": WhyNot.ALIVE}
    assert result.unsafe == ("g",) and result.target_names == {"g": "g-eu"}


def test_its_way_back_is_under_the_new_name_and_exact(scene):
    scene.target.commit("g-eu", "A.t", 0, 5)
    scene.look()
    undo = scene.undo()
    assert {(row.group, row.target_group) for row in undo.rows} == {("g", "g-eu"), ("h", "")}
    scene.rollback()
    assert (scene.on_b("g-eu"), scene.on_b("g"), scene.on_b("h")) == ({("A.t", 0): 5}, {("A.t", 0): 7}, {})


def test_the_journal_says_the_new_name_beside_each_event_also_after_it_was_made_short(scene):
    scene.look()
    assert {(e["group"], e.get("target_group")) for e in events(scene) if "group" in e} == {("g", "g-eu"), ("h", None)}
    before = scene.journal.read()
    scene._writer._limit = 0
    scene._writer.shorten(before)
    assert {(e["group"], e.get("target_group")) for e in events(scene) if "group" in e} == {("g", "g-eu"), ("h", None)}
    now, was = scene.known("g"), Followed.by(before, "g")
    assert (now.prior, now.written, now.writes(T0)) == (was.prior, was.written, was.writes(T0))


@pytest.mark.parametrize("lines", [(("g", "h"),), (("h", "g"),), (("g", "x"), ("h", "x"))])
def test_groups_that_would_share_a_name_are_both_left_out_and_called_unsafe_and_the_others_followed(tmp_path, lines):
    scene = FollowScene(tmp_path, changes=mapped(*lines))
    scene.source.commit("i", "u", 0, 30)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.NAME, "h": WhyNot.NAME} and result.unsafe == ("g", "h")
    assert "groups g and h would both be" in result.refused["g"].sentence
    assert scene.on_b("i") == {("A.u", 0): 30} and not any(map(scene.on_b, ("g", "h", "x")))


def test_none_of_three_that_would_share_a_name_takes_it(tmp_path):
    scene = FollowScene(tmp_path, changes=mapped(("g", "x"), ("h", "x"), ("i", "x")))
    scene.source.commit("i", "u", 0, 30)
    assert reasons(scene.look()) == dict.fromkeys("ghi", WhyNot.NAME) and scene.on_b("x") == {}


def test_once_the_other_group_has_gone_a_group_that_shared_its_name_is_followed(tmp_path):
    scene = FollowScene(tmp_path, changes=mapped(("h", "g")))
    scene.look()
    scene.source.offsets.pop("g")
    assert scene.look().refused == {} and scene.on_b("g") == H


def test_a_group_of_which_the_map_leaves_no_name_is_left_out(tmp_path):
    scene = FollowScene(tmp_path, changes=mapped(("g(.*)", "\\1"), is_expression=True))
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.NAME} and scene.on_b("h") == H and result.target_names == {}


def test_a_group_that_turns_up_with_the_name_that_another_was_written_under_is_never_written_over_it(scene):
    scene.look()
    scene.source.offsets.pop("g")
    scene.source.commit("g-eu", "u", 0, 30)
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.GONE_FROM_SOURCE, "g-eu": WhyNot.NAME} and result.unsafe == ("g", "g-eu")
    assert "so was g, which was written" in result.refused["g-eu"].sentence
    assert scene.on_b("g-eu") == G
    scene.rollback()
    assert (scene.on_b("g-eu"), scene.on_b("h")) == ({}, {})


def test_of_groups_that_share_a_name_what_was_written_before_is_still_taken_back(scene):
    scene.look()
    scene.source.commit("g-eu", "u", 0, 30)
    assert reasons(scene.look()) == {"g": WhyNot.NAME, "g-eu": WhyNot.NAME} and scene.on_b("g-eu") == G
    scene.rollback()
    assert scene.on_b("g-eu") == {}


def test_a_refusal_of_the_cluster_is_told_by_the_sources_name(scene):
    scene.target.script("alter", "g-eu", Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    assert reasons(scene.look()) == {"g": WhyNot.NOT_SET} and scene.on_b("h") == H


def test_what_was_left_out_is_still_asked_for_where_the_others_are_judged():
    asked, shared = [], NoNameOfItsOwn("groups a and b would both be x.", "", ("a", "b"))

    def take(request, times=1):
        asked.append(request)
        if len(asked) <= times:
            raise shared
        return replace(SURVEY, request=request)

    survey, refused = survey_of_the_others(SURVEY.request, take)
    assert set(refused) == {"a", "b"} and asked[1].filters.group_verdict("a") == "exclude-group"
    assert survey.request == SURVEY.request
    with pytest.raises(NoNameOfItsOwn):  # and no look is taken for ever
        survey_of_the_others(SURVEY.request, partial(take, times=9))


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_group_whose_commits_a_cluster_does_not_show_is_left_out_and_called_unsafe_and_the_others_are_followed(
    tmp_path, side
):
    scene = FollowScene(tmp_path)
    denied = Script(Failure("GROUP_AUTHORIZATION_FAILED", "no right to DESCRIBE"))
    getattr(scene, side).script("commits", "h", denied, denied)
    result = scene.look()
    assert reasons(result) == {"h": WhyNot.COMMITS} and result.unsafe == ("h",) and not result.trouble
    assert "GROUP_AUTHORIZATION_FAILED" in result.refused["h"].sentence
    assert (scene.on_b("g"), scene.on_b("h")) == (G, {})
    getattr(scene, side).scripts.clear()
    assert scene.look().refused == {} and scene.on_b("h") == H


def test_where_no_group_can_be_read_all_are_named_and_none_is_written(tmp_path):
    scene = FollowScene(tmp_path)
    for group in "gh":
        scene.target.script("commits", group, Script(Failure("GROUP_AUTHORIZATION_FAILED", "no")))
    result = scene.look()
    assert reasons(result) == {"g": WhyNot.COMMITS, "h": WhyNot.COMMITS} and scene.target.calls["alter"] == 0


@given(
    st.lists(
        st.tuples(st.text("ab:regx", min_size=1), st.text("xy", min_size=1), st.booleans()),
        unique_by=lambda line: line[0],
    ),
    st.text("ab:regx", min_size=1),
)
def test_a_group_map_in_a_mandate_says_the_same_of_every_name(lines, source):
    made = mandate(group_map=tuple(lines))
    again = mandate(group_map=lines_of(made.names()))
    assert again.names().mapped(source) == made.names().mapped(source) and again.group_map == tuple(lines)

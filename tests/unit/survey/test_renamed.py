"""What groups are called on the target, and which map says so."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.survey.renamed import SAME_NAMES, TargetNames, refuse_map_of_other_clusters

NAMES = TargetNames({"orders": "orders-eu", "a": "b", "b": "a"})


def test_a_group_that_has_an_old_name_is_told_unless_another_group_takes_that_name_over():
    assert NAMES.under_old_names({"orders", "orders-eu", "a", "b", "x"}) == ("orders",)
    assert NAMES.under_old_names({"orders-eu"}) == ()


def test_names_are_those_of_the_map_that_differ():
    names = NameMap.from_lines("--group-map", "f", "group", ["source_group,target_group", "x,x", "a,b"])
    assert TargetNames.of(names, ["a", "x", "y"]).renamed == {"a": "b"}
    assert TargetNames.of(NameMap(), ["a"]) == SAME_NAMES
    with pytest.raises(UsageError, match="groups a and b would both be b"):
        TargetNames.of(names, ["a", "b"])


@given(st.permutations("abcd"), st.sets(st.sampled_from("abcd")))
def test_what_is_asked_under_any_names_comes_back_under_the_same(targets, asked):
    names = TargetNames({s: t for s, t in zip("abcd", targets, strict=True) if s != t})
    told = {group: group for group in names.asked(sorted(asked))}
    assert names.to_source(told) == {group: names.on_target(group) for group in asked}
    assert names.to_source(names.to_target(dict.fromkeys(asked))) == dict.fromkeys(asked)


@pytest.mark.parametrize(
    ("planned", "here", "is_refused"),
    [
        ("ab", ("b", "a"), False),
        ("ab", ("a", "c"), True),
        ("ab", ("a", ""), False),
        ("ab", ("", "c"), True),
        ("b", ("a", "b"), False),
        ("b", ("a", "c"), True),
        ("", ("a", "b"), False),
        # Each was planned without the other cluster: they may be the two of one flow.
        ("b", ("a", ""), False),
    ],
)
def test_a_map_of_other_clusters_is_refused_as_far_as_clusters_are_known(planned, here, is_refused):
    group_map = NameMap("--group-map", "a.plan", clusters=frozenset(planned))
    with pytest.raises(UsageError, match="a.plan is a plan for clusters") if is_refused else nullcontext():
        refuse_map_of_other_clusters(group_map, here)

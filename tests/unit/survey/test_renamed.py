"""Groups with another name on the target: asked for by it, told of by the source's, and no other name ever used."""

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.model import Commit, Failure, GroupState, TopicPartition
from migrate.survey.group_facts import NOT_ASKED
from migrate.survey.renamed import (
    SAME_NAMES,
    RenamedAdmin,
    RenamedGroupFacts,
    TargetNames,
    refuse_map_of_other_clusters,
    renamed_admin,
    renamed_facts,
)
from tests.fakes import ALIVE, FakeCluster, FakeGroupFacts

NAMES = TargetNames({"orders": "orders-eu", "a": "b", "b": "a"})
PLACE = TopicPartition("A.t", 0)


def committed(cluster: FakeCluster, group: str) -> int | None:
    commit = cluster.offsets.get(group, {}).get(PLACE)
    return None if commit is None else commit.offset


@pytest.fixture
def cluster():
    made = FakeCluster()
    for offset, group in enumerate(("orders", "orders-eu", "a", "b", "plain"), 1):
        made.commit(group, "A.t", 0, offset)
    return made


def test_commits_and_states_are_those_of_the_targets_names(cluster):
    cluster.states["orders-eu"] = ALIVE
    admin = RenamedAdmin(cluster, NAMES)
    asked = ["orders", "a", "b", "plain"]
    assert {g: c[PLACE].offset for g, c in admin.commits(asked).items()} == {"orders": 2, "a": 4, "b": 3, "plain": 5}
    states = admin.group_states(["orders", "plain"])
    assert (states["orders"], states["plain"]) == (ALIVE, GroupState("Empty"))


def test_what_is_written_and_removed_is_under_the_targets_name_alone(cluster):
    admin = RenamedAdmin(cluster, NAMES).renewed().holding(7)
    assert admin.alter({"orders": {PLACE: Commit(20)}, "a": {PLACE: Commit(30)}}) == {
        "orders": {PLACE: None},
        "a": {PLACE: None},
    }
    assert [committed(cluster, g) for g in ("orders", "orders-eu", "a", "b")] == [1, 20, 3, 30]
    assert admin.delete_offsets({"b": [PLACE]}) == {"b": {PLACE: None}}
    assert [committed(cluster, g) for g in ("a", "b")] == [None, 30]
    assert admin.delete_groups(["orders"]) == {"orders": None}
    assert "orders-eu" not in cluster.offsets and committed(cluster, "orders") == 1


def test_a_listing_has_the_sources_names_and_no_group_that_merely_has_an_old_one(cluster):
    assert RenamedAdmin(cluster, NAMES).groups() == {"orders", "a", "b", "plain"}
    del cluster.offsets["orders-eu"], cluster.states["orders-eu"]
    assert RenamedAdmin(cluster, NAMES).groups() == {"a", "b", "plain"}


def test_a_group_that_has_an_old_name_is_told_unless_another_group_takes_that_name_over():
    assert NAMES.under_old_names({"orders", "orders-eu", "a", "b", "x"}) == ("orders",)
    assert NAMES.under_old_names({"orders-eu"}) == ()


def test_facts_of_groups_are_asked_by_the_targets_names():
    class Facts(FakeGroupFacts):
        def group_records(self, groups):
            return {group: f"record of {group}" for group in groups}

        commit_records = group_records

        def group_kinds(self):
            return {"orders": "share", "orders-eu": "consumer"}

    facts = RenamedGroupFacts(Facts(), NAMES)
    assert facts.group_records(["orders", "plain"]) == {"orders": "record of orders-eu", "plain": "record of plain"}
    assert facts.commit_records(["a"]) == {"a": "record of b"}
    assert facts.group_kinds() == {"orders": "consumer"}


def test_a_failure_to_tell_stays_one():
    class Silent(FakeGroupFacts):
        def group_records(self, groups):
            return NOT_ASKED

    assert isinstance(RenamedGroupFacts(Silent(), NAMES).group_records(["a"]), Failure)


def test_without_another_name_the_edges_are_themselves(cluster):
    assert renamed_admin(cluster, SAME_NAMES) is cluster
    assert renamed_facts(None, NAMES) is None


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
        ("ab", ("c", "d"), True),
        ("ab", ("a", ""), False),
        ("ab", ("", "c"), True),
        ("b", ("a", "b"), False),
        ("b", ("a", "c"), True),
        # Each was planned without the other cluster: they may be the two of one flow.
        ("b", ("a", ""), False),
        ("", ("a", "b"), False),
    ],
)
def test_a_map_of_other_clusters_is_refused_as_far_as_clusters_are_known(planned, here, is_refused):
    group_map = NameMap("--group-map", "a.plan", clusters=frozenset(planned))
    with pytest.raises(UsageError, match="a.plan is a plan for clusters") if is_refused else nullcontext():
        refuse_map_of_other_clusters(group_map, here)

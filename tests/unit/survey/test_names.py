"""What groups and topics are called on the target, by which map, and who shares a name."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import UsageError
from migrate.mm2.flow import ANY
from migrate.mm2.name_map import NameMap
from migrate.mm2.other_names import MappedNames
from migrate.model import GroupPartition, LogRange, Side, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.names import refuse_doubled_places, with_names
from migrate.survey.policies import Policies, parse_untranslatable
from migrate.survey.renamed import SAME_NAMES, TargetNames, refuse_map_of_other_clusters
from migrate.survey.survey import Clusters, PlanRequest
from tests.fakes import FakeCluster
from tests.unit.planscene import FakeMirror
from tests.unit.surveyscene import FLOW, request

MAP = NameMap.from_lines("--topic-map", "m.csv", "topic", [r"regex:x-(.*),\1"])
MAPPED = replace(FLOW, policy=MappedNames("A", "B", MAP), replicator=ANY)


def asked(made: PlanRequest) -> PlanRequest:
    sides = [FakeCluster(Side.SOURCE, "A", "a"), FakeCluster(Side.TARGET, "B", "b")]
    for topic in ("x-t", "t", "x-u"):
        # On a failback the originals are on the plan's target.
        sides[made.flow.failback].ranges[TopicPartition(topic, 0)] = LogRange(0, 9)
    return with_names(made, Clusters(*sides, FakeMirror()))


@pytest.mark.parametrize(("flow", "topic", "copy"), [(MAPPED, "x-u", "u"), (MAPPED.reversed(), "u", "x-u")])
def test_names_that_two_topics_share_are_found_on_the_cluster_that_is_copied_from(flow, topic, copy):
    found = asked(request(flow=flow)).flow
    assert found.why_not_replicated("t") and found.policy.target_topic(topic) == copy


def test_a_topic_that_the_filters_leave_out_shares_no_name_but_one_of_another_wave_does():
    """What that wave sets later would be taken for the group's own place in this one's records."""
    without = Filters(exclude_topics=(re.compile("t"),))
    assert not asked(request(flow=MAPPED, filters=without)).flow.why_not_replicated("x-t")
    for topic in ("t", "x-t"):
        found = asked(request(flow=MAPPED, filters=Filters(topics=(re.compile(topic),)))).flow
        assert found.why_not_replicated("t") and found.why_not_replicated("x-t")


@pytest.mark.parametrize("choices", [("earliest",), ("topic-not-replicated=latest",)])
def test_no_group_gets_two_offsets_for_one_place_where_topics_share_a_name(choices):
    """It would have two rows for one partition, and its journal no end."""
    both = [GroupPartition("g", "t", 0), GroupPartition("g", "x-t", 0)]
    made = asked(request(flow=MAPPED, policies=Policies((), *parse_untranslatable(choices))))
    with pytest.raises(UsageError, match="g has offsets on t and x-t, which would both be t on B"):
        refuse_doubled_places(made, both)
    refuse_doubled_places(made, [both[0], GroupPartition("h", "x-t", 0), GroupPartition("g", "x-t", 1)])
    skipping = Policies((), *parse_untranslatable([*choices, "topic-not-replicated=skip"]))
    refuse_doubled_places(asked(request(flow=MAPPED, policies=skipping)), both)
    refuse_doubled_places(request(flow=FLOW, policies=Policies((), *parse_untranslatable(choices))), both)


def test_a_group_that_has_an_old_name_is_told_unless_another_group_takes_that_name_over():
    names = TargetNames({"orders": "orders-eu", "a": "b", "b": "a"})
    assert names.under_old_names({"orders", "orders-eu", "a", "b", "x"}) == ("orders",)
    assert names.under_old_names({"orders-eu"}) == ()


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


def test_a_map_of_other_clusters_is_refused_as_far_as_clusters_are_known():
    """Of two plans that were each made without the other cluster nobody knows: they may be of one flow."""

    def refuse(planned, here):
        refuse_map_of_other_clusters(NameMap("--group-map", "a.plan", clusters=frozenset(planned)), here)

    for planned, here in (("ab", ("b", "a")), ("ab", ("a", "")), ("b", ("a", "b")), ("", ("a", "b")), ("b", ("a", ""))):
        refuse(planned, here)
    for planned, here in (("ab", ("a", "c")), ("ab", ("", "c")), ("b", ("a", "c"))):
        with pytest.raises(UsageError, match="a.plan is a plan for clusters"):
            refuse(planned, here)

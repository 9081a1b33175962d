"""Rows are decided group by group."""

from dataclasses import replace

import pytest

from migrate.commit_table import GroupCommits
from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.mm2.other_names import MappedNames
from migrate.model import Commit, LogRange, TopicPartition
from migrate.plan.rows import decide, translate
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, parse_untranslatable
from tests.randomsurveys import KINDS, random_survey
from tests.unit.planscene import planned, planned_flow, world


@pytest.mark.parametrize("kind", KINDS)
def test_every_commit_becomes_one_row_in_the_order_of_their_places(kind):
    for seed in range(10):
        _, survey = random_survey(seed, kind)
        rows = PlanRows(decide(survey))
        assert [(r.group, r.source_topic, r.partition) for r in rows] == [tuple(key) for key in survey.keys]
        assert [r.source_committed for r in rows] == [c and c.offset for c in survey.keys.values()]


def test_a_group_that_would_get_two_offsets_for_one_place_has_no_plan_and_neither_has_another_owner():
    """Topics t and u share a name on the target, and whoever has read both would have two rows for one partition."""
    names = NameMap.from_lines("--topic-map", "m.csv", "topic", ["source_topic,target_topic", "t,x", "u,x"])
    shared = replace(planned_flow(), policy=MappedNames("A", "B", names).knowing(["t", "u"]))
    chosen = Policies((), *parse_untranslatable(["earliest"]))
    source, target, mirror = world()
    target.ranges[TopicPartition("x", 0)] = LogRange(0, 100)
    planned(source, target, mirror, flow=shared, policies=chosen)
    source.commit("g", "u", 0, 5)
    with pytest.raises(UsageError, match="g has offsets on t and u, which would both be x on B"):
        planned(source, target, mirror, flow=shared, policies=chosen)
    request, survey = random_survey(1, KINDS[0])
    places = GroupCommits({"job": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)}})
    with pytest.raises(UsageError, match="job has offsets on t and u, which would both be x on B"):
        translate(replace(survey, request=replace(request, flow=shared, policies=chosen)), places)

"""Rows are decided group by group, and a part of the groups with what it needs is decided as among all."""

import pickle
from dataclasses import replace

import pytest

from migrate.commit_table import GroupCommits
from migrate.errors import UsageError
from migrate.mm2.name_map import NameMap
from migrate.mm2.other_names import MappedNames
from migrate.model import Commit, LogRange, TopicPartition
from migrate.plan.build import plan_of
from migrate.plan.decide import Undecided, decide, rows_by_rules, undecided, undecided_positions
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies, parse_untranslatable
from tests.randomsurveys import KINDS, PASSWORD, random_survey
from tests.unit.planscene import planned, planned_flow, world

NOW = 1_800_000_000_000


class InParts:
    """Decides as Spark's tasks do: in parts of three groups, each with what it needs, there and back as bytes."""

    def decide(self, asked):
        cases, known = list(asked.groups), {}
        for start in range(0, len(cases), 3):
            part = pickle.dumps(asked.of_groups(tuple(cases[start : start + 3])))
            back = pickle.dumps(list(decide(pickle.loads(part))))
            for rows in pickle.loads(back):
                yield rows.shared(known)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_the_same_to_the_byte_wherever_its_rows_are_decided(kind):
    for seed in range(10):
        request, survey = random_survey(seed, kind)
        here, there = plan_of(request, survey, NOW), plan_of(request, survey, NOW, InParts())
        assert len(here.rows) == len(survey.keys) > 0
        assert here.rows == there.rows and here.fingerprint == there.fingerprint
        assert here.header == there.header


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_rules_in_the_order_of_their_places(kind):
    for seed in range(10):
        request, survey = random_survey(seed, kind)
        rows = PlanRows(decide(undecided(request, survey)))
        asked = undecided(request, survey)
        assert list(rows) == [row for case in asked.groups for row in rows_by_rules(asked, case, {})]
        assert [(r.group, r.source_topic, r.partition) for r in rows] == [tuple(key) for key in survey.keys]


def test_a_part_holds_what_its_groups_need_and_no_more():
    asked = undecided(*random_survey(7, "mixed", groups=40))
    cases = tuple(asked.groups)
    part = asked.of_groups(cases[:2])
    assert part.partitions.keys() == {place for case in cases[:2] for place in case.commits}
    for place, facts in part.partitions.items():
        committed = {c.offset for case in cases[:2] if (c := case.commits.get(place))}
        assert set(facts.places) == committed & set(asked.partitions[place].places)
    assert {key.group for key in part.checkpoints} <= {case.group for case in cases[:2]}
    size = len(pickle.dumps(part))
    whole = Undecided(asked.rules, asked.partitions, dict(asked.checkpoints), cases[:2])
    facts = {place: (each.places, each.equality) for place, each in whole.partitions.items()}
    assert size < len(pickle.dumps((facts, whole.checkpoints, cases[:2])))


def test_what_travels_has_no_secret():
    request, survey = random_survey(3, "mixed")
    asked = undecided(request, survey)
    part = pickle.dumps(asked.of_groups(tuple(asked.groups)))
    assert PASSWORD.encode() in pickle.dumps(request.flow.source.properties) and PASSWORD.encode() not in part


def test_a_group_that_would_get_two_offsets_for_one_place_has_no_plan_and_neither_has_a_holder():
    """Topics t and u share a name on the target, and whoever has read both would have two rows for one partition."""
    names = NameMap.from_lines("--topic-map", "m.csv", "topic", ["source_topic,target_topic", "t,x", "u,x"])
    shared = replace(planned_flow(), policy=MappedNames("A", "B", names).knowing(["t", "u"]))
    chosen = Policies((), *parse_untranslatable(["earliest"]))
    source, target, mirror = world()
    target.ranges[TopicPartition("x", 0)] = LogRange(0, 100)
    planned(source, target, mirror, flow=shared, policies=chosen)
    source.commit("g", "u", 0, 5)
    with pytest.raises(UsageError, match="group g has offsets on t and u, which would both be x on B"):
        planned(source, target, mirror, flow=shared, policies=chosen)
    request, survey = random_survey(1, KINDS[0])
    held = GroupCommits({"job": {TopicPartition("t", 0): Commit(1), TopicPartition("u", 0): Commit(1)}})
    with pytest.raises(UsageError, match="holder job has offsets on t and u, which would both be x on B"):
        undecided_positions(replace(request, flow=shared, policies=chosen), survey, held)

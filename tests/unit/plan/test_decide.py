"""Rows are decided group by group, and a part of the groups with what it needs is decided as among all."""

import pickle

import pytest

from migrate.plan.build import plan_of
from migrate.plan.decide import Undecided, decide, rows_by_rules, undecided
from migrate.row_table import PlanRows
from tests.randomsurveys import KINDS, PASSWORD, random_survey

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

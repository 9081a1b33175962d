"""Rows that are made by columns are those that the rules make."""

import pytest

from migrate.plan.decide import Undecided, decide, rows_by_rules, undecided
from migrate.plan.usual_rows import CaseNames, Commonplace, usual_rows
from tests.randomsurveys import KINDS, random_survey


def by_columns(asked: Undecided) -> list[tuple]:
    """Each group of which all is usual: its rows by columns, and by the rules."""
    commonplace = Commonplace(asked.partitions, asked.checkpoints)
    pairs = [
        (
            usual_rows(
                CaseNames(case.group, case.target_group, case.checkpointed_as),
                case.commits,
                case.priors,
                commonplace,
                {},
            ),
            rows_by_rules(asked, case, {}),
        )
        for case in asked.groups
    ]
    return [(rows, by_rules) for rows, by_rules in pairs if rows is not None]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("source-down", "as-of")])
def test_columns_say_of_every_usual_group_what_the_rules_say(kind):
    usual = 0
    for seed in range(30):
        for rows, by_rules in by_columns(undecided(*random_survey(seed, kind))):
            usual += 1
            assert list(rows) == list(by_rules)
            assert rows.document() == by_rules.document(), "or the same rows would have two fingerprints"
    assert usual == 0 if kind == "no-match" else usual > 10


def test_most_groups_are_usual_where_nothing_is_special():
    surveys = [random_survey(seed, "usual") for seed in range(30)]
    groups = sum(len(survey.groups) for _, survey in surveys)
    assert sum(len(by_columns(undecided(*each))) for each in surveys) > groups / 2


@pytest.mark.parametrize("kind", ["source-down", "as-of"])
def test_no_row_is_taken_for_usual_where_the_rules_ask_for_more(kind):
    for seed in range(20):
        asked = undecided(*random_survey(seed, kind))
        cases = list(asked.groups)
        decided = decide(Undecided(asked.rules, asked.partitions, asked.checkpoints, cases))
        assert [list(rows) for rows in decided] == [list(rows_by_rules(asked, case, {})) for case in cases]

"""A group that is called otherwise on the target: both names wherever it is told, and found by either."""

import json

import pytest

from migrate.plan.diff import diff
from migrate.show import review
from migrate.show.aftermath import Aftermath
from migrate.show.diff import diff_lines
from migrate.show.explain import explanation
from migrate.show.plan_export import FORMATS, select
from migrate.show.plan_table import Page
from migrate.show.report_data import report_data
from tests.builders import make_plan, make_row

PLAN = make_plan([make_row("orders", target_group="orders-eu"), make_row("plain")])


def told(form: str) -> str:
    return "\n".join(FORMATS[form](PLAN, PLAN.rows, Page("cutover.plan", 200)))


def test_the_table_says_how_many_are_renamed_and_both_names_at_the_head_of_the_group():
    text = told("table")
    assert "1 group with another name on B" in text
    assert "orders -> orders-eu  SET" in text and "\nplain  SET" in text


@pytest.mark.parametrize("pattern", ["orders", "orders-eu", ".*-eu"])
def test_rows_are_selected_by_either_name(pattern):
    assert [row.group for row in select(PLAN.rows, [pattern])] == ["orders"]


@pytest.mark.parametrize("group", ["orders", "orders-eu"])
def test_a_group_is_explained_by_either_name(group):
    text = "\n".join(explanation(PLAN, group, width=200))
    assert text.startswith("orders -> orders-eu, in plan") and "On B it is called orders-eu, by --group-map." in text


def test_another_name_on_the_target_is_a_difference_of_plans():
    other = make_plan([make_row("orders", target_group="orders-us"), make_row("plain")])
    text = "\n".join(diff_lines(diff(PLAN, other), ("a", "b"), 200))
    assert "DECIDED OTHERWISE" in text and "target group orders-eu -> orders-us" in text


def test_the_report_shows_both_names():
    assert "orders -> orders-eu" in json.dumps(report_data(PLAN, Aftermath(), "p", 10).page)


def test_notebooks_have_the_name_of_each_group_and_row():
    assert list(review.groups_table(PLAN)["target_group"]) == ["orders-eu", "plain"]
    assert list(review.rows_table(PLAN)["target_group"]) == ["orders-eu", ""]

"""`show`: one plan in five formats, its difference from another, and several waves added up."""

import json

import pytest

from migrate.plan.file import write_plan
from tests.builders import make_plan, make_row
from tests.unit.commands import run


@pytest.fixture
def rehearsal(tmp_path):
    path = tmp_path / "rehearsal.plan"
    write_plan(make_plan([make_row(group="billing", target_offset=1), make_row(group="gone")]), path)
    return path


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv", "kcg"])
def test_show_writes_results_to_stdout_in_every_format(plan_file, form):
    shown = run("show", str(plan_file), "--format", form)
    assert shown.exit_code == 0 and "billing" in shown.stdout and "refunds" in shown.stdout
    assert ("kafka-consumer-groups" in shown.stderr) == (form == "kcg")


def test_show_of_one_group_shows_only_that_group(plan_file):
    shown = run("show", str(plan_file), "--format", "csv", "--group", "billing")
    assert "billing" in shown.stdout and "refunds" not in shown.stdout


def test_a_difference_is_of_the_groups_that_were_asked_for_also_of_one_that_is_gone(plan_file, rehearsal):
    words = ("show", str(plan_file), "--diff", str(rehearsal), "--format", "json")
    whole, one = (json.loads(run(*words, *more).stdout) for more in ((), ("--group", "gone")))
    assert [row["group"] for row in whole["new"]] == ["refunds"] and whole["changed"]
    assert [row["group"] for row in one["gone"]] == ["gone"] and not one["new"] and not one["changed"]


def test_several_plans_are_added_up_and_each_may_be_named_once(plan_file, rehearsal):
    both = run("show", str(plan_file), str(rehearsal))
    assert both.exit_code == 0 and "cutover.plan" in both.stdout and "rehearsal.plan" in both.stdout
    twice = run("show", str(plan_file), str(plan_file))
    assert twice.exit_code == 2 and "are one plan" in twice.stderr


@pytest.mark.parametrize("option", [("--group", "billing"), ("--only", "set"), ("--diff", "other.plan")])
def test_several_plans_are_added_up_as_a_whole_only(plan_file, rehearsal, option):
    shown = run("show", str(plan_file), str(rehearsal), *option)
    assert shown.exit_code == 2 and "for one plan" in shown.stderr


def test_differences_and_waves_are_a_table_or_json(plan_file, rehearsal):
    for words in (("--diff", str(rehearsal)), (str(rehearsal),)):
        shown = run("show", str(plan_file), *words, "--format", "csv")
        assert shown.exit_code == 2 and "no format csv" in shown.stderr


def test_without_a_plan_it_is_wrong_use():
    shown = run("show")
    assert shown.exit_code == 2 and "Missing argument 'PLAN...'" in shown.stderr

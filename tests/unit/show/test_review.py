"""The notebooks' tables: the numbers that `show` adds up, also of a plan without rows."""

import pytest

from migrate.model import Decision
from migrate.plan.file import write_plan
from migrate.plan.totals import group_totals
from migrate.show import review
from tests.builders import make_plan, make_row, make_untranslated
from tests.unit.goldenplan import golden_plan


def test_every_table_of_an_empty_plan_has_its_columns_and_no_line():
    empty = make_plan()
    for table in (review.rows_table, review.groups_table, review.attention_table, review.checks_table):
        made = table(empty)
        assert len(made) == 0 and len(made.columns) > 5


def test_a_groups_line_has_the_sums_of_show():
    plan = golden_plan()
    table = review.groups_table(plan)
    for group, rows in plan.groups().items():
        sums = group_totals(rows)
        line = table.loc[group]
        for column, number in (("lag", sums.lag), ("rereads", sums.rereads)):
            assert line[column] is review.extra_module("pandas").NA if number is None else line[column] == number
        assert line[str(Decision.SET)] == sums.decisions.get(Decision.SET, 0)


def test_the_next_commands_sign_and_apply_this_fingerprint():
    plan = make_plan([make_row()])
    first, sign, apply = review.next_commands(plan, "my plan").split("\n")
    assert first == f"Fingerprint {plan.fingerprint}" and sign.startswith("mm2-migrate sign 'my plan' --by")
    assert apply == f"mm2-migrate apply 'my plan' --approve {plan.fingerprint} --execute"
    assert review.next_commands(make_plan(), "p").endswith("There is nothing that may be applied.")


def test_a_command_that_leaves_blocked_groups_out_is_never_given_without_saying_so():
    plan = make_plan([make_row(), make_untranslated(Decision.BLOCK, "commit-beyond-log-end", "bad")])
    *_, said, apply = review.next_commands(plan, "p").split("\n")
    assert "leave the blocked groups out" in said and "--allow-partial" in apply


def test_a_plan_of_rules_is_no_plan_to_review(tmp_path):
    write_plan(make_plan([], kind="rules"), tmp_path / "m.plan")
    with pytest.raises(review.ReviewStopped, match="holds rules"):
        review.open_plan(tmp_path / "m.plan")

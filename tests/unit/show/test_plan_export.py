"""A plan for other programs: cells that no spreadsheet runs, columns with their own fields' names."""

import csv

import pytest

from migrate.errors import UsageError
from migrate.model import Decision
from migrate.show.plan_export import OWN_FIELDS, csv_lines, kcg_companion, kcg_lines, refuse_unprintable
from tests.builders import make_plan, make_row


def cells(row):
    (read,) = csv.DictReader(csv_lines(make_plan([row]), [row]))
    return read


def test_each_field_with_a_column_of_its_own_name_is_in_it():
    row = make_row(why="proven", missing_on_target=3)
    read = cells(row)
    for field in OWN_FIELDS:
        value = getattr(row, field)
        assert read[field.replace("_", " ").upper()] == ("" if value is None else str(value)), field


def test_how_far_an_offset_moves_is_told_only_where_one_is_set():
    assert cells(make_row(target_prior=100, target_offset=650))["DELTA"] == "550"
    assert cells(make_row(target_prior=100, target_offset=650, decision=Decision.KEEP))["DELTA"] == ""


def test_text_that_begins_like_a_formula_is_quoted_with_an_apostrophe():
    assert cells(make_row("=1+1"))["GROUP"] == "'=1+1"


def test_what_a_file_for_kafkas_tool_cannot_remove_is_said_beside_it():
    rows = [make_row("a"), make_row("b", decision=Decision.REMOVE, target_offset=None)]
    assert list(kcg_lines(rows)) == ["a,A.orders,0,650"]
    undo = make_plan(rows, kind="undo")
    for chosen in (rows, rows[1:]):
        assert "LEFT OUT: 1 offset to be removed" in kcg_companion(undo, "undo.plan", chosen)
    assert "LEFT OUT" not in kcg_companion(undo, "undo.plan", rows[:1])


def test_other_tools_are_given_the_targets_name_of_a_group_and_a_spreadsheet_both():
    row = make_row("orders", target_group="orders-eu")
    assert list(kcg_lines([row])) == ["orders-eu,A.orders,0,650"]
    assert (cells(row)["GROUP"], cells(row)["TARGET GROUP"]) == ("orders", "orders-eu")
    assert cells(make_row("orders"))["TARGET GROUP"] == "orders"
    companion = kcg_companion(make_plan([row]), "cutover.plan", [row])
    assert " --group orders-eu --dry-run" in companion


def test_what_a_terminal_would_obey_is_looked_for_in_the_name_that_is_printed():
    refuse_unprintable([make_row("a\x1b", target_group="a")])
    with pytest.raises(UsageError, match="control characters"):
        refuse_unprintable([make_row("a", target_group="a\x1b")])
    assert list(kcg_lines([make_row("a\n", target_group="b")])) == ["b,A.orders,0,650"]

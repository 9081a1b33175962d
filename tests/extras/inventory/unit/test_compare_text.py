"""`groups compare` in its three forms: the loss comes first, no name is obeyed, nothing unseen looks fine."""

import csv
import json
from io import StringIO
from itertools import starmap
from pathlib import Path

import pytest

from migrate.extras.inventory.compare import CompareVerdict, GroupComparison, Loss
from migrate.extras.inventory.compare_text import (
    CompareView,
    comparison_csv,
    comparison_document,
    comparison_lines,
    verdict_text,
)
from migrate.model import CheckResult, Grade, Level, Scope
from migrate.text import Colour
from tests.extras.inventory.unit.comparedscene import row
from tests.unit.goldenfiles import compare_with_golden

FIELDS = (
    "group", "source_topic", "target_topic", "partition", "source_committed", "target_committed", "translated",
    "difference", "difference_is_records", "verdict", "grade", "loss", "rereads_at_most", "source_moved_to", "reason",
    "sentence", "target_group",
)  # fmt: skip
EVIL = "evil\x1b[2J,=cmd"
TIME = 1_700_000_000_000
AHEAD = row(
    "crm", CompareVerdict.AHEAD, target_committed=65, difference=5, loss=Loss.LIKELY, rereads_at_most=None,
    sentence="The record at the translated offset is owed, and has no later copy: the commit is past it. A group that "
    "starts there loses it and what it is owed up to the commit.",
)  # fmt: skip
ROWS = (
    row(),
    row("billing", CompareVerdict.BEHIND, partition=1, target_committed=48, difference=-12, rereads_at_most=12,
        sentence="From the commit to the translated offset it is 12 records, to be read again; none is lost."),
    AHEAD,
    row(
        EVIL, CompareVerdict.UNDECIDED, grade=Grade.BOUNDED, target_committed=63, difference=3,
        difference_is_records=False, loss=Loss.POSSIBLE, reason="above-lower-bound",
        sentence="60 is a lower bound (bounded): the group's place is there or above it.",
    ),
    row(
        "gone", CompareVerdict.MISSING, target_committed=None, difference=None, difference_is_records=False,
        loss=Loss.POSSIBLE, rereads_at_most=None, sentence="The target has no commit.",
    ),
    row(
        "stranger", CompareVerdict.ONLY_ON_TARGET, source_committed=None, translated=None, difference=None,
        difference_is_records=False, grade=None, loss=Loss.POSSIBLE, rereads_at_most=None,
        sentence="The source has no such commit.",
    ),
)  # fmt: skip
PREMISE = CheckResult(
    "listing-complete", Level.BLOCK, Scope.CLUSTER, "A", "the right DESCRIBE", "it is missing", "Grant it.", False,
    Level.BLOCK,
)  # fmt: skip

GOLDEN = Path(__file__).parents[1] / "golden"


def comparison(*rows, premises=(), unstable=()):
    return GroupComparison(TIME, "A", "B", rows or ROWS, premises, frozenset(unstable))


def text(made, within=0, width=100, **view):
    return "\n".join(comparison_lines(made, CompareView(within, **{"no_match": False} | view), width, False))


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_is_the_golden_one_and_keeps_to_its_width(width):
    made = comparison(*ROWS, premises=(PREMISE,), unstable=("crm",))
    shown = text(made, width=width)
    compare_with_golden(f"compare-{width}.txt", shown + "\n", GOLDEN)
    assert all(len(line) <= width for line in shown.splitlines())


def test_json_is_the_golden_one():
    lines = comparison_document(comparison(*ROWS, premises=(PREMISE,)), CompareView(12, False))
    compare_with_golden("compare.json", "\n".join(lines) + "\n", GOLDEN)


def test_csv_is_the_golden_one():
    compare_with_golden("compare.csv", "\n".join(comparison_csv(comparison())) + "\n", GOLDEN)


def test_json_and_csv_have_every_row_and_the_same_fields():
    made = comparison()
    document = json.loads("\n".join(comparison_document(made, CompareView(12, False))))
    cells = list(csv.DictReader(StringIO("\n".join(comparison_csv(made)))))
    assert len(document["rows"]) == len(cells) == len(ROWS)
    assert set(document["rows"][0]) == {*FIELDS, "beyond"} and list(cells[0]) == list(FIELDS)
    assert [entry["beyond"] for entry in document["rows"]] == [False, False, True, True, True, True]
    assert document["beyond"] == 4


def test_what_is_likely_lost_is_said_first_and_stands_first():
    shown = text(comparison(), width=160).splitlines()
    losses = "1 LOSE RECORDS, unless consumers have run there; 1 may lose records"
    assert shown[1] == f"NOT EQUAL: 5 of 6 commits of 5 groups; {losses}"
    rows = [line.split()[-2] for line in text(comparison(), width=160).splitlines() if " orders " in line]
    assert rows == ["ahead", "undecided", "missing-on-target", "only-on-target", "behind"]
    assert "LOST? The record at the translated offset" in text(comparison(), width=160)


def test_all_equal_is_said_in_one_line_and_no_row_is_shown():
    shown = text(comparison(row(), row("crm")))
    assert "EQUAL: 2 commits of 2 groups" in shown and "GROUP" not in shown


def test_equal_that_is_not_proven_is_not_said_as_if_it_were():
    estimated = row("crm", grade=Grade.ESTIMATED, rereads_at_most=None, loss=Loss.POSSIBLE, reason="not-proven")
    shown = text(comparison(row(), estimated), width=160)
    assert "NOT PROVEN: 1 of 2 commits of 2 groups equal, and may lose records all the same" in shown
    bounded = row("crm", grade=Grade.BOUNDED, rereads_at_most=9)
    made = comparison(row(), bounded)
    assert "EQUAL: 2 commits of 2 groups; 1 at a lower bound of their place" in text(made, width=160)
    assert verdict_text(made, 0)[1] is Colour.YELLOW and verdict_text(comparison(row()), 0)[1] is Colour.GREEN


def test_records_that_mm2_has_not_brought_over_are_told_though_the_commit_is_equal():
    shown = text(comparison(row(loss=Loss.POSSIBLE, reason="missing-on-target", sentence="7 records lack.")), width=160)
    assert "1 whose records MM2 has not all brought over" in shown and "7 records lack." in shown


def test_what_is_let_pass_is_not_called_equal():
    shown = text(comparison(row(), ROWS[1]), within=12)
    assert "WITHIN 12 records: 2 commits of 1 group, 1 of them behind, none ahead" in shown


def test_nothing_to_compare_is_no_success():
    made = GroupComparison(TIME, "A", "B", (), (), frozenset())
    assert "NOTHING TO COMPARE" in text(made)


def test_equal_rows_of_a_listing_that_may_be_short_are_not_all_that_there_is():
    shown = text(comparison(row(), premises=(PREMISE,)))
    assert "NOT ALL WAS SEEN: EQUAL: 1 commit of 1 group" in shown and "listing-complete A: it is missing" in shown


def test_what_rests_on_syncs_alone_is_said():
    shown = text(comparison(row()), no_match=True, unread_syncs=7)
    assert "lower bounds" in shown and "7 records at its beginning were not read" in shown


def test_many_rows_are_cut_off_with_their_number_and_names_obey_nobody():
    many = tuple(starmap(lambda n: row(f"g{n}", CompareVerdict.BEHIND, difference=-1), ((n,) for n in range(230))))
    assert "and 30 more; --format json and csv have every row" in text(comparison(*many))
    for form in (text(comparison()), "\n".join(comparison_csv(comparison()))):
        assert "\x1b" not in form
    assert all(not line.startswith("=") for line in comparison_csv(comparison()))

"""`groups compare` in its three forms: the loss comes first, no name is obeyed, nothing unseen looks fine."""

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

EVIL = "evil\x1b[2J,=cmd"
TIME = 1_700_000_000_000
ROWS = (
    row(),
    row("billing", CompareVerdict.BEHIND, partition=1, target_committed=48, difference=-12, rereads_at_most=12,
        sentence="From the commit to the translated offset it is 12 records, to be read again; none is lost."),
    row(
        "crm", CompareVerdict.AHEAD, target_committed=65, difference=5, loss=Loss.LIKELY, rereads_at_most=None,
        sentence="The record at the translated offset is owed, and has no later copy: the commit is past it. A group "
        "that starts there loses it and what it is owed up to the commit.",
    ),
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


FORMS = {
    "80.txt": lambda made: comparison_lines(made, CompareView(0, False), 80, False),
    "160.txt": lambda made: comparison_lines(made, CompareView(0, False), 160, False),
    "json": lambda made: comparison_document(made, CompareView(12, False)),
    "csv": comparison_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_golden_one_and_no_name_in_it_is_obeyed(form):
    lines = list(FORMS[form](comparison(*ROWS, premises=(PREMISE,), unstable=("crm",))))
    compare_with_golden(f"compare.{form}", "\n".join(lines) + "\n", GOLDEN)
    assert not any("\x1b" in line or line.startswith("=") for line in lines)
    assert not form.endswith("txt") or all(len(line) <= int(form[:-4]) for line in lines)


ESTIMATED = row("crm", grade=Grade.ESTIMATED, rereads_at_most=None, loss=Loss.POSSIBLE, reason="not-proven")
BOUNDED = row("crm", grade=Grade.BOUNDED, rereads_at_most=9)
LACKING = row(loss=Loss.POSSIBLE, reason="missing-on-target", sentence="7 records lack.")


@pytest.mark.parametrize(("made", "view", "words"), [
    (comparison(row(), row("crm")), {}, ["EQUAL: 2 commits of 2 groups"]),
    (comparison(row(), ESTIMATED), {},
     ["NOT PROVEN: 1 of 2 commits of 2 groups equal, and may lose records all the same"]),
    (comparison(row(), BOUNDED), {}, ["EQUAL: 2 commits of 2 groups; 1 at a lower bound of their place"]),
    (comparison(LACKING), {}, ["1 whose records MM2 has not all brought over", "7 records lack."]),
    (comparison(row(), ROWS[1]), {"within": 12},
     ["WITHIN 12 records: 2 commits of 1 group, 1 of them behind, none ahead"]),
    (GroupComparison(TIME, "A", "B", (), (), frozenset()), {}, ["NOTHING TO COMPARE"]),
    (comparison(row(), premises=(PREMISE,)), {},
     ["NOT ALL WAS SEEN: EQUAL: 1 commit of 1 group", "listing-complete A: it is missing"]),
    (comparison(row()), {"no_match": True, "unread_syncs": 7},
     ["lower bounds", "7 records at its beginning were not read"]),
])  # fmt: skip
def test_the_verdict_says_no_more_than_was_seen(made, view, words):
    shown = text(made, width=160, **view)
    assert all(each in shown for each in words)


def test_only_equal_commits_that_lose_nothing_are_green_and_are_no_table():
    assert "GROUP" not in text(comparison(row(), row("crm")))
    assert verdict_text(comparison(row()), 0)[1] is Colour.GREEN
    assert verdict_text(comparison(row(), BOUNDED), 0)[1] is Colour.YELLOW


def test_many_rows_are_cut_off_with_their_number():
    many = [row(f"g{n}", CompareVerdict.BEHIND, difference=-1) for n in range(230)]
    assert "and 30 more; --format json and csv have every row" in text(comparison(*many))

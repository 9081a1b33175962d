"""What a comparison adds up to: counts, what is beyond, and whether it is good."""

from dataclasses import replace

import pytest

from migrate.extras.inventory.compare import CompareVerdict, GroupComparison, Loss
from migrate.model import CheckResult, Level, Scope
from tests.extras.inventory.unit.comparedscene import row

BEHIND = row("b", CompareVerdict.BEHIND, difference=-7)


def comparison(*rows, premises=()):
    return GroupComparison(0, "A", "B", rows, premises, frozenset())


def test_only_equal_rows_and_rows_a_little_behind_are_within():
    assert [row().is_within(0), BEHIND.is_within(6), BEHIND.is_within(7)] == [True, False, True]
    others = [v for v in CompareVerdict if v not in (CompareVerdict.EQUAL, CompareVerdict.BEHIND)]
    assert not any(row("x", v, difference=0).is_within(10**9) for v in others)


def test_a_commit_behind_that_auto_offset_reset_decides_about_is_not_within():
    assert not row("b", CompareVerdict.BEHIND, difference=-1, loss=Loss.POSSIBLE).is_within(10**9)


def test_what_the_source_moved_on_meanwhile_is_added_to_the_distance():
    moved = row("b", CompareVerdict.BEHIND, difference=-7, source_moved_to=123)
    assert moved.is_within(10) and not moved.is_within(9)


def test_a_comparison_counts_verdicts_and_names_what_is_beyond():
    made = comparison(row(), BEHIND)
    assert made.counts() == {"equal": 1, "behind": 1}
    assert made.beyond(0) == (BEHIND,) and made.is_good(7) and not made.is_good(0)


def test_a_premise_that_only_warns_is_said_and_one_that_blocks_fails():
    def premise(level):
        return CheckResult("topics-visible", level, Scope.CLUSTER, "A", "all", "not told", "", False, level)

    assert comparison(row(), premises=(premise(Level.WARN),)).is_good(0)
    assert not comparison(row(), premises=(premise(Level.BLOCK),)).is_good(0)
    assert not comparison().is_good(0)


def test_offsets_with_a_transaction_pending_are_no_success():
    made = GroupComparison(0, "A", "B", (row(),), (), frozenset())
    assert made.is_good(0) and not replace(made, unstable=frozenset({"billing"})).is_good(0)


@pytest.mark.parametrize("verdict", [CompareVerdict.EQUAL, CompareVerdict.BEHIND])
def test_what_may_lose_records_is_within_no_tolerance(verdict):
    assert row(verdict=verdict).is_within(0) and not row(verdict=verdict, loss=Loss.POSSIBLE).is_within(1000)

"""What is missing, and what nobody can tell: the verdict says neither too much."""

import pytest

from migrate.extras.audit.verdict import (
    Bounds,
    Category,
    PartitionFacts,
    TopicAudit,
    Verdict,
    bounds_of,
    total,
    verdict_of,
)
from migrate.match.equality import Equality
from migrate.model import LogRange

NOTHING_SHOWN = 100


def bounds(**changed):
    facts = {
        "source": LogRange(0, NOTHING_SHOWN), "target": LogRange(0, 90), "next_to_copy": 80, "first_copied": 10,
        "last_copied": 70, "target_is_open": False, "is_certain": True,
    }  # fmt: skip
    return bounds_of(PartitionFacts(**facts | changed))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Bounds(0, 80)),
        ({"next_to_copy": None}, Bounds(0, 71)),
        ({"next_to_copy": None, "last_copied": None}, Bounds(0, 0)),
        # A position beyond the log is that of another log.
        ({"next_to_copy": 101}, Bounds(0, 71)),
        # What the target's retention took may have been a copy of whatever lies before the first copy that is left.
        ({"target": LogRange(5, 90)}, Bounds(10, 80)),
        ({"target": LogRange(5, 90), "first_copied": None}, Bounds(NOTHING_SHOWN, 80)),
        ({"target": LogRange(5, 5), "first_copied": None}, Bounds(NOTHING_SHOWN, 80)),
        # A replay may be on its way to what was copied before, and removed.
        ({"target": LogRange(5, 90), "next_to_copy": None}, Bounds(NOTHING_SHOWN, 71)),
        ({"target": LogRange(5, 90), "target_is_open": True}, Bounds(NOTHING_SHOWN, 71)),
        # Behind the last copy that is visible an open transaction may hide further ones.
        ({"target_is_open": True}, Bounds(0, 71)),
        ({"is_certain": False}, Bounds(NOTHING_SHOWN, 80)),
        # A target that never had a record has no copy, whatever records look like.
        ({"is_certain": False, "target": LogRange(0, 0)}, Bounds(0, 80)),
    ],
)
def test_records_without_a_copy_are_missing_only_where_their_copies_would_be_seen(changed, expected):
    assert bounds(**changed) == expected


def audit(equality=Equality.ALL, unproven=(), **counts):
    found = {Category[name]: count for name, count in counts.items()}
    return TopicAudit("t", "t", equality, found, unproven=unproven)


@pytest.mark.parametrize(("verdict", "code", "found"), [
    (Verdict.COMPLETE, 0, audit(COPIED=3)),
    (Verdict.COMPLETE, 0, audit()),
    # Whatever else is on the target.
    (Verdict.COMPLETE, 0, audit(SUPERSEDED=1, COPIED_AGAIN=2, FOREIGN=1, ABORTED_COPY=1, NO_ORIGINAL_VISIBLE=1)),
    (Verdict.COMPLETE, 0, audit(Equality.KEY_AND_VALUE, COPIED=1)),
    (Verdict.NOT_PROVEN, 4, audit(COPIED=3, NOT_COPIED_YET=1)),
    (Verdict.NOT_PROVEN, 4, audit(COPIED=3, CHANGED=1)),
    (Verdict.NOT_PROVEN, 4, audit(COPIED=3, MAYBE_COPIED=1)),
    (Verdict.NOT_PROVEN, 4, audit(COPIED=3, REMOVED=1)),
    (Verdict.NOT_PROVEN, 4, audit(COPIED=3, unproven=("a transaction is open",))),
    (Verdict.NOT_PROVEN, 4, audit(Equality.TIME_AND_KEY, COPIED=3)),
    (Verdict.INCOMPLETE, 1, audit(COPIED=3, MISSING=1, NOT_COPIED_YET=1)),
])  # fmt: skip
def test_complete_is_what_has_all_copies_incomplete_what_is_shown_missing_and_whatever_is_open_is_said(
    verdict, code, found
):
    assert found.verdict is verdict and found.verdict.exit_code == code
    assert bool(found.reasons) is (verdict is not Verdict.COMPLETE)


def test_the_verdict_on_all_is_the_worst_and_of_nothing_nothing_is_proven():
    complete, open_, short = audit(COPIED=1), audit(NOT_COPIED_YET=1), audit(MISSING=1)
    assert verdict_of([complete]) is Verdict.COMPLETE
    assert verdict_of([complete, open_]) is Verdict.NOT_PROVEN and verdict_of([]) is Verdict.NOT_PROVEN
    assert verdict_of([complete, open_, short]) is Verdict.INCOMPLETE
    assert total([complete, complete, short]) == {Category.COPIED: 2, Category.MISSING: 1}

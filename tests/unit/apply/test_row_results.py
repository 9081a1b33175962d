"""What became of a row, by the cluster's answer and by what was read back; whole runs are in `test_engine.py`."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from migrate.apply.assess import Assessment, Fate, GroupAssessment
from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN, JournalState
from migrate.apply.row_results import RowResult, RowStatus, results_of, what_became
from migrate.model import UNACKNOWLEDGED, Commit, Commits, Decision, Failure, Row, TopicPartition
from tests.unit.plans import plan, row

P0, P1 = TopicPartition("A.orders", 0), TopicPartition("A.orders", 1)

ANSWERS = (SET, REMOVED, FAILED, UNKNOWN)


@pytest.mark.parametrize("answer", [SET, UNKNOWN])
def test_a_row_that_is_read_back_as_planned_is_set_also_where_the_answer_was_lost(answer: str) -> None:
    assert what_became(row("g"), answer, True) is RowStatus.SET


def test_a_removed_row_that_is_gone_is_removed() -> None:
    assert what_became(row("g", offset=None, decision=Decision.REMOVE), REMOVED, True) is RowStatus.REMOVED


def test_a_row_that_failed_for_sure_and_is_as_planned_was_there_already() -> None:
    assert what_became(row("g"), FAILED, True) is RowStatus.ALREADY


def test_an_acknowledged_row_that_is_read_back_elsewhere_has_failed() -> None:
    assert what_became(row("g"), SET, False) is RowStatus.FAILED


@pytest.mark.parametrize("is_as_planned", [False, None])
def test_where_no_reading_settles_it_a_lost_answer_stays_unknown_and_a_sure_failure_a_failure(
    is_as_planned: bool | None,
) -> None:
    assert what_became(row("g"), UNKNOWN, is_as_planned) is RowStatus.UNKNOWN
    assert what_became(row("g"), FAILED, is_as_planned) is RowStatus.FAILED


@pytest.mark.parametrize("answer", ANSWERS)
def test_nothing_is_called_set_that_was_not_read_back(answer: str) -> None:
    assert what_became(row("g"), answer, None) is (RowStatus.FAILED if answer == FAILED else RowStatus.UNKNOWN)


@pytest.mark.parametrize("is_as_planned", [True, False, None])
def test_no_reading_proves_a_row_that_needs_an_acknowledgement(is_as_planned: bool | None) -> None:
    needing = row("g", reason=UNACKNOWLEDGED)
    assert what_became(needing, UNKNOWN, is_as_planned) is RowStatus.UNKNOWN
    assert what_became(needing, SET, True) is RowStatus.SET


LOST = Failure("X", "y", outcome_unknown=True)
AFTERWARDS: list[Commits | Failure | None] = [
    {P0: Commit(60), P1: Commit(61)}, {P0: Commit(60)}, {P0: Commit(60), P1: Commit(61, "m")},
    {P0: Commit(60), P1: Commit(62)}, {}, Failure("X", "y"), None,
]  # fmt: skip
SECOND_ANSWERS = (SET, REMOVED, Failure("X", "y"), LOST, None)
SECOND_ROWS: list[dict[str, Any]] = [
    {}, {"target_metadata": "m"}, {"reason": UNACKNOWLEDGED}, {"offset": None, "decision": Decision.REMOVE},
]  # fmt: skip


@pytest.mark.parametrize("removes", [False, True], ids=["set", "removed"])
@pytest.mark.parametrize(("after", "answer", "changes"), [*product(AFTERWARDS, SECOND_ANSWERS, SECOND_ROWS)])
def test_a_whole_group_is_judged_as_its_rows_are_one_by_one(
    after: Commits | Failure | None, answer: str | Failure | None, changes: dict[str, Any], removes: bool
) -> None:
    bare: dict[str, Any] = {"offset": None, "decision": Decision.REMOVE} if removes else {}
    made = plan(row("g", **bare), row("g", partition=1, **{"offset": 61, **bare, **changes}))
    rows = made.groups()["g"]
    answers = {P0: REMOVED if removes else SET} | ({} if answer is None else {P1: answer})
    back = {} if after is None else {"g": after}

    def results(pending: Sequence[Row]) -> tuple[RowResult, ...]:
        assessment = Assessment(
            made, (GroupAssessment("g", Fate.WRITE, (), pending),), (), (), {"g": {}}, JournalState()
        )
        return results_of(assessment, {"g": answers}, back, True)

    # Only rows that are the plan's own table are judged as a whole.
    assert results(rows) == results(tuple(rows))

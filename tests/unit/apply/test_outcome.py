"""What became of a row, by the cluster's answer and by what was read back; whole runs are in `test_engine.py`."""

import pytest

from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN
from migrate.apply.outcome import RowStatus, what_became
from migrate.model import UNACKNOWLEDGED, Decision, TopicPartition
from tests.unit.plans import row

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

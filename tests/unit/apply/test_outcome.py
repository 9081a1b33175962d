"""Where a row is, and in which word, by the answer and by what was read; whole runs are in `test_engine.py`."""

import pytest

from migrate.apply.history import REMOVED, SET, GroupTrace
from migrate.apply.outcome import RowStatus, State, state_of, written
from migrate.model import UNACKNOWLEDGED, Commit, Decision, Failure, TopicPartition
from tests.unit.answers import DENIED, TIMED_OUT
from tests.unit.plans import row

P0 = TopicPartition("A.orders", 0)
UNREAD = Failure("_TIMED_OUT", "no answer")
GONE = row("g", offset=None, decision=Decision.REMOVE, target_prior=60)
KEPT = row("g", decision=Decision.KEEP, target_prior=70)
MOVED = row("g", target_prior=10, target_prior_metadata="was")
READ_BACK, READ_ONLY = GroupTrace({P0: 60}, {P0: SET}, True), GroupTrace({}, {}, True)
NEEDING = row("g", reason=UNACKNOWLEDGED)
LOST, SURE = TIMED_OUT, DENIED


@pytest.mark.parametrize(
    ("planned", "trace", "commit", "state"),
    [
        (MOVED, None, Commit(60), State.AS_PLANNED),
        (MOVED, None, Commit(60, leader_epoch=7), State.AS_PLANNED),
        (MOVED, None, Commit(60, "m"), State.CHANGED),
        (MOVED, None, Commit(10, "was"), State.PENDING),
        (MOVED, None, Commit(10), State.CHANGED),
        (MOVED, None, Commit(75), State.CHANGED),
        (MOVED, None, None, State.CHANGED),
        (MOVED, None, UNREAD, State.UNKNOWN),
        (GONE, None, None, State.AS_PLANNED),
        # What was read back once has moved on, and not what lies before it.
        (row("g"), READ_BACK, Commit(75), State.MOVED_ON),
        (row("g"), READ_BACK, Commit(60, "m"), State.MOVED_ON),
        (row("g"), READ_BACK, Commit(59), State.CHANGED),
        (row("g"), READ_ONLY, Commit(75), State.CHANGED),
        (KEPT, READ_ONLY, Commit(75), State.MOVED_ON),
        (KEPT, None, Commit(75), State.CHANGED),
        (GONE, GroupTrace({P0: None}, {P0: REMOVED}, True), Commit(3), State.MOVED_ON),
        # The plan holds nothing of these.
        *((row("g", decision=each), None, Commit(60), State.NOT_HELD) for each in (Decision.BLOCK, Decision.SKIP)),
    ],
)
def test_a_row_is_as_planned_as_it_was_moved_on_or_changed_by_offset_and_metadata(planned, trace, commit, state):
    assert state_of(planned, trace, commit) is state


@pytest.mark.parametrize(
    ("planned", "answer", "is_in_doubt", "after", "status"),
    [
        (row("g"), SET, False, Commit(60), RowStatus.SET),
        (row("g"), LOST, False, Commit(60), RowStatus.SET),
        (row("g"), SURE, False, Commit(60), RowStatus.ALREADY),
        (GONE, REMOVED, False, None, RowStatus.REMOVED),
        # Elsewhere, whatever is there: a failure, unless nobody knows what became of the write.
        *((row("g", target_prior=10), SET, False, Commit(o), RowStatus.FAILED) for o in (10, 75)),
        *((row("g", target_prior=10), LOST, False, Commit(o), RowStatus.UNKNOWN) for o in (10, 75)),
        (row("g"), SURE, False, None, RowStatus.FAILED),
        (row("g"), SURE, True, None, RowStatus.UNKNOWN),
        (row("g"), SET, False, UNREAD, RowStatus.UNKNOWN),
        (row("g"), SURE, False, UNREAD, RowStatus.FAILED),
        # No reading proves a row that needs an acknowledgement.
        *((NEEDING, LOST, False, after, RowStatus.UNKNOWN) for after in (Commit(60), Commit(10), UNREAD)),
        (NEEDING, SET, False, Commit(60), RowStatus.SET),
    ],
)
def test_nothing_is_called_set_that_was_not_read_back_nor_failed_where_the_answer_was_lost(
    planned, answer, is_in_doubt, after, status
):
    assert written(planned, answer, is_in_doubt, after).status is status


def test_one_cause_of_a_write_and_of_its_reading_back_is_said_once():
    outcome = written(row("g"), LOST, False, UNREAD)
    assert outcome.detail.count("no answer") == 1 and "nor could it be read back" in outcome.detail

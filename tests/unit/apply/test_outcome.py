"""Where a row is, and in which word, by the answer and by what was read; whole runs are in `test_engine.py`."""

import pytest

from migrate.apply.history import FAILED, REMOVED, SET, UNKNOWN, GroupTrace
from migrate.apply.outcome import RowStatus, State, is_as_planned, state_of, status_of, written
from migrate.model import UNACKNOWLEDGED, Commit, Decision, Failure, TopicPartition
from tests.unit.plans import row

P0 = TopicPartition("A.orders", 0)
UNREAD = Failure("_TIMED_OUT", "no answer")
GONE = row("g", offset=None, decision=Decision.REMOVE, target_prior=60)


ELSEWHERE = dict.fromkeys((SET, REMOVED, FAILED), RowStatus.FAILED) | {UNKNOWN: RowStatus.UNKNOWN}


@pytest.mark.parametrize(
    ("commit", "state"),
    [
        (Commit(60), State.AS_PLANNED),
        (Commit(60, leader_epoch=7), State.AS_PLANNED),
        (Commit(60, "m"), State.CHANGED),
        (Commit(10, "was"), State.PENDING),
        (Commit(10), State.CHANGED),
        (Commit(75), State.CHANGED),
        (None, State.CHANGED),
        (UNREAD, State.UNKNOWN),
    ],
)
def test_a_row_is_as_planned_as_it_was_or_changed_by_offset_and_metadata(commit: Commit | Failure | None, state: State):
    planned = row("g", target_prior=10, target_prior_metadata="was")
    assert state_of(planned, None, commit) is state
    assert isinstance(commit, Failure) or is_as_planned(planned, commit) is (state is State.AS_PLANNED)


def test_what_was_read_back_once_has_moved_on_and_not_what_lies_before_it():
    trace = GroupTrace({P0: 60}, {P0: SET}, True)
    assert state_of(row("g"), trace, Commit(75)) is state_of(row("g"), trace, Commit(60, "m")) is State.MOVED_ON
    assert state_of(row("g"), trace, Commit(59)) is State.CHANGED
    kept = row("g", decision=Decision.KEEP, target_prior=70)
    nothing_written = GroupTrace({}, {}, True)
    assert state_of(kept, nothing_written, Commit(75)) is State.MOVED_ON
    assert state_of(kept, None, Commit(75)) is state_of(row("g"), nothing_written, Commit(75)) is State.CHANGED
    removed = GroupTrace({P0: None}, {P0: REMOVED}, True)
    assert state_of(GONE, removed, Commit(3)) is State.MOVED_ON and state_of(GONE, None, None) is State.AS_PLANNED


@pytest.mark.parametrize("decision", [Decision.BLOCK, Decision.SKIP])
def test_what_the_plan_holds_nothing_of_has_no_place_to_be_at(decision: Decision):
    assert state_of(row("g", decision=decision), None, Commit(60)) is State.NOT_HELD


@pytest.mark.parametrize(
    ("state", "by_answer"),
    [
        (
            State.AS_PLANNED,
            {SET: RowStatus.SET, UNKNOWN: RowStatus.SET, FAILED: RowStatus.ALREADY, None: RowStatus.ALREADY},
        ),
        (State.PENDING, ELSEWHERE),
        (State.CHANGED, ELSEWHERE),
        (State.MOVED_ON, ELSEWHERE),
        (State.UNKNOWN, dict.fromkeys((SET, REMOVED, UNKNOWN), RowStatus.UNKNOWN) | {FAILED: RowStatus.FAILED}),
    ],
)
def test_nothing_is_called_set_that_was_not_read_back_nor_failed_where_the_answer_was_lost(state, by_answer):
    assert {answer: status_of(row("g"), state, answer) for answer in by_answer} == by_answer
    assert status_of(GONE, State.AS_PLANNED, SET) is status_of(GONE, State.AS_PLANNED, UNKNOWN) is RowStatus.REMOVED


@pytest.mark.parametrize("after", [Commit(60), Commit(10), UNREAD])
def test_no_reading_proves_a_row_that_needs_an_acknowledgement(after: Commit | Failure):
    needing = row("g", reason=UNACKNOWLEDGED)
    lost = Failure("_TIMED_OUT", "no answer", outcome_unknown=True)
    assert written(needing, lost, False, after).status is RowStatus.UNKNOWN
    assert written(needing, SET, False, Commit(60)).status is RowStatus.SET


def test_a_sure_failure_after_an_earlier_try_in_doubt_is_unknown():
    denied = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    for is_in_doubt, status in ((False, RowStatus.FAILED), (True, RowStatus.UNKNOWN)):
        assert written(row("g"), denied, is_in_doubt, None).status is status


def test_one_cause_of_a_write_and_of_its_reading_back_is_said_once():
    gone = Failure("NO_ANSWER", "target B cannot be reached", retriable=True, outcome_unknown=True)
    outcome = written(row(0), gone, False, Failure("NO_ANSWER", "target B cannot be reached"))
    assert outcome.status is RowStatus.UNKNOWN and outcome.detail.count("cannot be reached") == 1
    assert "nor could it be read back" in outcome.detail

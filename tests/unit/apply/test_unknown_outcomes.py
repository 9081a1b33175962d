"""What becomes of writes whose outcome nobody knows: brokers hide errors that arise after the append."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate.apply.history import UNKNOWN
from migrate.apply.outcome import RowStatus
from migrate.model import UNACKNOWLEDGED, Commit, Commits, Decision, Failure, TopicPartition
from migrate.ports import Outcomes
from tests.fakes import Crash, Script
from tests.unit.answers import DENIED
from tests.unit.applyscene import Scene, killed, statuses
from tests.unit.plans import plan, row

P0 = TopicPartition("A.orders", 0)
MOVED_ROW, SECOND_ROW = row("a", target_prior=10), row("a", partition=1, target_prior=11)
HIDDEN = Failure("COORDINATOR_NOT_AVAILABLE", "not available", retriable=True, outcome_unknown=True)
LOADING = Failure("COORDINATOR_LOAD_IN_PROGRESS", "loading", retriable=True)
ALIVE = Failure("UNKNOWN_MEMBER_ID", "the group has active members")
BETWEEN = "another client has committed this offset since the check"


@pytest.fixture
def one(tmp_path: Path) -> Scene:
    """One group at 10, which moves to 60."""
    return Scene(plan(MOVED_ROW), tmp_path)


@pytest.fixture
def hidden(tmp_path: Path) -> Scene:
    """An apply of a group that had no offset has ended; its one write was not acknowledged and is not seen yet."""
    scene = Scene(plan(row("a")), tmp_path)
    scene.target.script("alter", "a", Script(HIDDEN, late=True))
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 4
    return scene


def surface_all(scene: Scene):
    while scene.target.unseen["a"]:
        scene.target.surface("a")


def test_a_row_that_crashed_before_its_answer_is_restored_although_the_prior_offset_is_read(one):
    one.target.when("alter", killed)
    with pytest.raises(Crash):
        one.apply()
    one.target.calm()
    assert one.target.held("a") == {("A.orders", 0): 10}
    (undone,) = one.undo().rows
    assert (undone.decision, undone.reason, undone.target_offset) == (Decision.SET, UNACKNOWLEDGED, 10)
    before = one.target.calls["alter"]
    result = one.rollback()
    assert result.exit_code == 0 and statuses(result) == {undone.key: RowStatus.SET}
    assert one.target.calls["alter"] == before + 1, "the prior offset must be acknowledged, not only read"
    assert one.rollback().executed is False and one.target.calls["alter"] == before + 1, "and once is enough"


@pytest.mark.parametrize("others", [False, True])
def test_an_append_that_no_reading_shows_does_not_come_back_after_the_rollback(hidden, others):
    """Coordinators up to Kafka 3.9 write no tombstone for what they do not hold, and load the append when they move."""
    if others:
        hidden.target.commit("a", "A.bills", 0, 5)
    result = hidden.rollback()
    assert result.exit_code == 0 and list(statuses(result).values()) == [RowStatus.REMOVED]
    assert hidden.target.calls["delete_offsets"] == others
    surface_all(hidden)
    assert hidden.target.held("a") == ({("A.bills", 0): 5} if others else {})


@pytest.mark.parametrize(
    ("failure", "exit_code", "status"), [(ALIVE, 1, RowStatus.FAILED), (HIDDEN, 4, RowStatus.UNKNOWN)]
)
def test_a_removal_is_not_said_to_be_done_where_the_hidden_append_could_not_be_overtaken(
    hidden, failure, exit_code, status
):
    hidden.target.script("alter", "a", Script(failure))
    result = hidden.rollback(group_timeout_seconds=0.0)
    assert result.exit_code == exit_code and list(statuses(result).values()) == [status]
    assert hidden.target.calls["delete"] == 0
    assert hidden.rollback().exit_code == 0 and not hidden.target.unseen["a"] and hidden.target.held("a") == {}


def test_a_group_that_could_not_be_read_before_its_removal_is_not_removed_over_a_hidden_append(hidden):
    judged = hidden.target.calls["commits"] + 1

    def fail_once():
        if hidden.target.calls["commits"] == judged:
            hidden.target.script("commits", "a", Script(LOADING))

    hidden.target.when("commits", fail_once)
    assert hidden.rollback().exit_code == 0
    surface_all(hidden)
    assert hidden.target.held("a") == {}


def test_a_failure_for_sure_does_not_undo_that_an_earlier_try_may_be_written_and_how_that_ended_is_still_told(one):
    lost = Failure("JVM_LOST", "Java ended by SIGKILL.", retriable=True, outcome_unknown=True)
    one.target.script("alter", "a", Script(lost), Script(LOADING), Script(LOADING), Script(DENIED))
    result = one.apply()
    assert result.exit_code == 4 and list(statuses(result).values()) == [RowStatus.UNKNOWN]
    assert "Java ended by SIGKILL. After that: not allowed" in result.rows[0].detail
    assert "loading" not in result.rows[0].detail
    assert one.journal.read().applied["a"].results == {P0: UNKNOWN} and len(one.undo().rows) == 1
    one.target.offsets["a"][P0] = Commit(77)
    assert one.rollback().exit_code == 3 and one.target.held("a") == {("A.orders", 0): 77}, "that is somebody else's"


@pytest.mark.parametrize(("answer", "exit_code"), [(HIDDEN, 4), (LOADING, 1)])
@pytest.mark.parametrize("rows", [[MOVED_ROW], [MOVED_ROW, SECOND_ROW]], ids=["one row", "one of two rows"])
def test_what_somebody_has_committed_between_two_tries_is_not_overwritten_nor_the_rest_of_its_group_written(
    tmp_path, answer, exit_code, rows
):
    scene = Scene(plan(*rows), tmp_path)
    before = scene.target.held("a")
    scene.target.script("alter", "a", Script(answer))
    scene.target.when("commits", lambda: scene.target.offsets["a"].update({P0: Commit(65)}), once_written=True)
    result = scene.apply()
    assert result.exit_code == exit_code and BETWEEN in result.rows[0].detail
    assert scene.target.held("a") == before | {("A.orders", 0): 65} and scene.target.calls["alter"] == 1


def test_a_group_that_could_not_be_read_between_two_tries_is_read_again_before_the_next_one(one):
    one.target.script("alter", "a", *[Script(LOADING)] * 8)
    moved: list[str] = []

    def move(call):
        if call == "alter" and one.target.calls["alter"]:
            one.target.script("commits", "a", Script(LOADING))  # the look between this try and the next
        if call == "commits" and one.clock.waited > 20 and not moved:
            moved.append(call)
            one.target.offsets["a"][P0] = Commit(65)

    one.target.on_call = move
    result = one.apply()
    assert one.clock.waited > 20 and one.target.held("a") == {("A.orders", 0): 65}
    assert result.exit_code == 1 and BETWEEN in result.rows[0].detail


def test_a_partition_that_the_answer_leaves_out_is_unknown_and_written_again(tmp_path):
    scene = Scene(plan(MOVED_ROW, SECOND_ROW), tmp_path)
    alter = scene.target.alter

    def forgetful(wanted: Mapping[str, Commits]) -> Outcomes:
        # Neither carried out nor answered.
        first = scene.target.calls["alter"] == 0
        return alter({g: {p: c for p, c in commits.items() if p == P0 or not first} for g, commits in wanted.items()})

    scene.target.alter = forgetful
    result = scene.apply()
    assert result.exit_code == 0 and scene.target.calls["alter"] == 2
    assert scene.target.held("a") == {("A.orders", 0): 60, ("A.orders", 1): 60}

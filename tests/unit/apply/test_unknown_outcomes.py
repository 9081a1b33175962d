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
HIDDEN = Failure("COORDINATOR_NOT_AVAILABLE", "not available", retriable=True, outcome_unknown=True)
LOADING = Failure("COORDINATOR_LOAD_IN_PROGRESS", "loading", retriable=True)
ALIVE = Failure("UNKNOWN_MEMBER_ID", "the group has active members")


def crashing(scene: Scene):
    """Run an apply that is killed while its first write is in flight, before anything of it is visible."""
    scene.target.when("alter", killed)
    with pytest.raises(Crash):
        scene.apply()
    scene.target.calm()


def hidden(folder: Path, prior: int | None = 10, **script: bool) -> Scene:
    """An apply of one group has ended, whose one write was not acknowledged and is not seen."""
    scene = Scene(plan(row("a", target_prior=prior)), folder)
    scene.target.script("alter", "a", Script(HIDDEN, **script))
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 4
    return scene


def surface_all(scene: Scene):
    while scene.target.unseen["a"]:
        scene.target.surface("a")


def test_a_row_that_crashed_before_its_answer_is_restored_although_the_prior_offset_is_read(tmp_path):
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    crashing(scene)
    assert scene.target.held("a") == {("A.orders", 0): 10}
    (undone,) = scene.undo().rows
    assert (undone.decision, undone.reason, undone.target_offset) == (Decision.SET, UNACKNOWLEDGED, 10)
    before = scene.target.calls["alter"]
    result = scene.rollback()
    assert result.exit_code == 0 and statuses(result) == {undone.key: RowStatus.SET}
    assert scene.target.calls["alter"] == before + 1, "the prior offset must be acknowledged, not only read"
    assert scene.rollback().executed is False and scene.target.calls["alter"] == before + 1, "and once is enough"


@pytest.mark.parametrize("others", [False, True])
def test_an_append_that_no_reading_shows_does_not_come_back_after_the_rollback(tmp_path, others):
    """Coordinators up to Kafka 3.9 write no tombstone for what they do not hold, and load the append when they move."""
    scene = hidden(tmp_path, prior=None, late=True)
    if others:
        scene.target.commit("a", "A.bills", 0, 5)
    result = scene.rollback()
    assert result.exit_code == 0 and list(statuses(result).values()) == [RowStatus.REMOVED]
    assert scene.target.calls["delete_offsets"] == others
    surface_all(scene)
    assert scene.target.held("a") == ({("A.bills", 0): 5} if others else {})


@pytest.mark.parametrize(
    ("failure", "exit_code", "status"), [(ALIVE, 1, RowStatus.FAILED), (HIDDEN, 4, RowStatus.UNKNOWN)]
)
def test_a_removal_is_not_said_to_be_done_where_the_hidden_append_could_not_be_overtaken(
    tmp_path, failure, exit_code, status
):
    scene = hidden(tmp_path, prior=None, late=True)
    scene.target.script("alter", "a", Script(failure))
    result = scene.rollback(group_timeout_seconds=0.0)
    assert result.exit_code == exit_code and list(statuses(result).values()) == [status]
    assert scene.target.calls["delete"] == 0
    assert scene.rollback().exit_code == 0 and not scene.target.unseen["a"] and scene.target.held("a") == {}


def test_a_group_that_could_not_be_read_before_its_removal_is_not_removed_over_a_hidden_append(tmp_path):
    scene = hidden(tmp_path, prior=None, late=True)
    judged = scene.target.calls["commits"] + 1

    def fail_once():
        if scene.target.calls["commits"] == judged:
            scene.target.script("commits", "a", Script(LOADING))

    scene.target.when("commits", fail_once)
    assert scene.rollback().exit_code == 0
    surface_all(scene)
    assert scene.target.held("a") == {}


def test_a_failure_for_sure_does_not_undo_that_an_earlier_try_may_be_written(tmp_path):
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    scene.target.script("alter", "a", Script(HIDDEN), Script(ALIVE))
    result = scene.apply()
    assert list(statuses(result).values()) == [RowStatus.UNKNOWN] and result.exit_code == 4
    assert scene.journal.read().applied["a"].results == {P0: UNKNOWN}
    assert len(scene.undo().rows) == 1


def test_an_unanswered_row_that_somebody_else_has_moved_is_refused(tmp_path):
    scene = hidden(tmp_path)
    scene.target.offsets["a"][P0] = Commit(77)
    assert scene.rollback().exit_code == 3 and scene.target.held("a") == {("A.orders", 0): 77}


def test_how_the_first_try_in_doubt_ended_is_still_told_when_later_ones_fail_for_sure(tmp_path):
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    lost = Failure("JVM_LOST", "Java ended by SIGKILL.", retriable=True, outcome_unknown=True)
    scene.target.script("alter", "a", Script(lost), Script(LOADING), Script(LOADING), Script(DENIED))
    result = scene.apply()
    assert result.exit_code == 4 and list(statuses(result).values()) == [RowStatus.UNKNOWN]
    assert "Java ended by SIGKILL. After that: not allowed" in result.rows[0].detail
    assert "loading" not in result.rows[0].detail


def moves_between_tries(scene: Scene):
    scene.target.when("commits", lambda: scene.target.offsets["a"].update({P0: Commit(65)}), once_written=True)


@pytest.mark.parametrize(("answer", "exit_code"), [(HIDDEN, 4), (LOADING, 1)])
def test_what_somebody_has_committed_between_two_tries_is_not_overwritten(tmp_path, answer, exit_code):
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    scene.target.script("alter", "a", Script(answer))
    moves_between_tries(scene)
    result = scene.apply()
    assert result.exit_code == exit_code and scene.target.held("a") == {("A.orders", 0): 65}
    assert "another client has committed this offset since the check" in result.rows[0].detail
    assert scene.target.calls["alter"] == 1


def test_one_row_that_somebody_has_moved_between_two_tries_leaves_all_of_its_group_alone(tmp_path):
    scene = Scene(plan(row("a", target_prior=10), row("a", partition=1, target_prior=11)), tmp_path)
    scene.target.script("alter", "a", Script(LOADING))
    moves_between_tries(scene)
    assert scene.apply().exit_code == 1
    assert scene.target.held("a") == {("A.orders", 0): 65, ("A.orders", 1): 11} and scene.target.calls["alter"] == 1


def test_a_group_that_could_not_be_read_between_two_tries_is_read_again_before_the_next_one(tmp_path):
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)
    scene.target.script("alter", "a", *[Script(LOADING)] * 8)
    moved: list[str] = []

    def move(call):
        if call == "alter" and scene.target.calls["alter"]:
            scene.target.script("commits", "a", Script(LOADING))  # the look between this try and the next
        if call == "commits" and scene.clock.waited > 20 and not moved:
            moved.append(call)
            scene.target.offsets["a"][P0] = Commit(65)

    scene.target.on_call = move
    result = scene.apply()
    assert scene.clock.waited > 20 and scene.target.held("a") == {("A.orders", 0): 65}
    assert result.exit_code == 1 and "another client has committed this offset since the check" in result.rows[0].detail


def test_a_partition_that_the_answer_leaves_out_is_unknown_and_written_again(tmp_path):
    scene = Scene(plan(row("a", target_prior=10), row("a", partition=1, target_prior=11)), tmp_path)
    alter = scene.target.alter

    def forgetful(wanted: Mapping[str, Commits]) -> Outcomes:
        # Neither carried out nor answered.
        first = scene.target.calls["alter"] == 0
        return alter({g: {p: c for p, c in commits.items() if p == P0 or not first} for g, commits in wanted.items()})

    scene.target.alter = forgetful
    result = scene.apply()
    assert result.exit_code == 0 and scene.target.calls["alter"] == 2
    assert scene.target.held("a") == {("A.orders", 0): 60, ("A.orders", 1): 60}

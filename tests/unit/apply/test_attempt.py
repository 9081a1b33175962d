"""One try at some groups: what they hold is looked at again where the last look is old."""

from pathlib import Path

import pytest

from migrate.apply.history import FAILED
from migrate.apply.write import FRESH_SECONDS
from migrate.model import Failure, TopicPartition
from tests.fakes import Script
from tests.unit.applyscene import Scene
from tests.unit.plans import plan, row

P0 = TopicPartition("A.orders", 0)


@pytest.mark.parametrize(("seconds", "there"), [(FRESH_SECONDS + 1, 65), (FRESH_SECONDS - 1, 60)])
def test_what_somebody_has_committed_since_the_look_is_not_overwritten_where_that_look_is_old(
    tmp_path: Path, seconds: float, there: int
) -> None:
    scene = Scene(plan(row("a", target_prior=10), row("b", target_prior=20)), tmp_path)

    def reset(call: str) -> None:
        if call == "log_ranges" and scene.clock.waited == 0:
            scene.clock.wait(seconds)
            scene.target.commit("a", *P0, 65)

    scene.target.on_call = reset
    result = scene.apply()
    assert scene.target.held("a") == {("A.orders", 0): there} and scene.target.held("b") == {("A.orders", 0): 60}
    (of_a,) = [each for each in result.rows if each.key[0] == "a"]
    assert ("somebody else has committed there meanwhile" in of_a.detail) == (there == 65)
    assert result.exit_code == (4 if there == 65 else 0)
    assert scene.rollback().exit_code == 0 and scene.target.held("b") == {("A.orders", 0): 20}
    assert scene.target.held("a") == {("A.orders", 0): 65 if there == 65 else 10}


def test_a_group_that_cannot_be_read_again_before_it_is_written_is_not_written(tmp_path: Path) -> None:
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)

    def wait(call: str) -> None:
        if call == "log_ranges" and scene.clock.waited == 0:
            scene.clock.wait(FRESH_SECONDS + 1)
            scene.target.script("commits", "a", Script(Failure("GROUP_AUTHORIZATION_FAILED", "not allowed")))

    scene.target.on_call = wait
    result = scene.apply()
    assert (
        result.exit_code == 1 and scene.target.calls["alter"] == 0 and scene.target.held("a") == {("A.orders", 0): 10}
    )


def test_a_write_that_was_not_sent_because_the_group_could_not_be_read_leaves_nothing_to_undo(tmp_path: Path) -> None:
    """Of a write that code would prove nothing."""
    scene = Scene(plan(row("a", target_prior=10)), tmp_path)

    def wait(call: str) -> None:
        if call == "log_ranges" and scene.clock.waited == 0:
            scene.clock.wait(FRESH_SECONDS + 1)
            scene.target.script("commits", "a", Script(Failure("NOT_COORDINATOR", "moved", retriable=True)))

    scene.target.on_call = wait
    assert scene.apply(group_timeout_seconds=0.0).exit_code == 1 and scene.target.calls["alter"] == 0
    assert scene.journal.read().applied["a"].results == {P0: FAILED}
    assert scene.undo().rows == ()

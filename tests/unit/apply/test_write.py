"""The writing by itself: what a signal stops, what is deleted whole, what a reading at the end brings back."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.apply.history import FAILED
from migrate.apply.restore import goes_whole
from migrate.apply.write import FRESH_SECONDS, SIGNALS, Interruption, PendingRows
from migrate.model import Commit, Decision, Failure, TopicPartition
from tests.fakes import Script
from tests.unit.applyscene import Scene
from tests.unit.plans import plan, row

P0 = TopicPartition("A.orders", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_a_wish_and_the_handlers_are_back_after_it(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as interrupted:
        assert not interrupted
        os.kill(os.getpid(), number)
        assert interrupted
        assert [signal.getsignal(each) for each in SIGNALS] == before, "the second one acts as it always does"
    assert interrupted and [signal.getsignal(each) for each in SIGNALS] == before


def test_a_terminal_that_closes_says_so_twice_and_ends_no_write() -> None:
    """Its shell sends SIGHUP, and so does the kernel: what is being written is finished, read back and told."""
    before = signal.getsignal(signal.SIGHUP)
    try:
        with Interruption() as outer, Interruption() as inner:
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGHUP)
            assert inner and outer and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_one_inside_another_tells_it_of_the_signal_that_it_took() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as outer:
        with Interruption() as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            assert inner and outer
            assert [signal.getsignal(each) for each in SIGNALS] == before, "the second one acts as it always does"
        assert outer
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interrupted:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interrupted
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_it_is_never_true() -> None:
    seen: list[bool] = []

    def enter() -> None:
        with Interruption() as interrupted:
            seen.append(bool(interrupted))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False]


def test_a_group_is_deleted_whole_only_if_every_row_removes_and_nothing_else_is_committed() -> None:
    first, second = (row("g", partition=p, offset=None, decision=Decision.REMOVE) for p in (0, 1))
    commits = {r.target_partition: Commit(60) for r in (first, second)}
    assert goes_whole([first, second], commits) and goes_whole([first, second], {})
    assert not goes_whole([first], commits), "another offset would go with it"
    assert not goes_whole([first, row("g", partition=1)], commits), "the other row is set"


def test_a_signal_that_comes_while_the_handlers_are_being_set_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    handler, set_one = signal.getsignal(SIGNALS[0]), signal.signal
    interrupted = Interruption()

    def interrupting(number: signal.Signals, action: Any) -> Any:
        before = set_one(number, action)
        if action == interrupted._note and not interrupted:
            interrupted._note(number, None)
        return before

    monkeypatch.setattr(signal, "signal", interrupting)
    with interrupted:
        assert interrupted
    assert signal.getsignal(SIGNALS[0]) == handler


@given(st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 99), st.sampled_from(["", "AAA=\x00"])), min_size=1))
def test_what_is_planned_and_what_is_committed_is_what_each_row_says(given: dict[int, tuple[int, str]]) -> None:
    rows = [row("g", partition=p, offset=offset, target_metadata=metadata) for p, (offset, metadata) in given.items()]
    pending = PendingRows(rows)
    assert pending.planned() == {r.target_partition: r.target_offset for r in rows}
    assert pending.commits() == {r.target_partition: r.target_commit for r in rows}
    assert pending == {r.target_partition: r for r in rows}


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
    assert ("another client has committed this offset since the check" in of_a.detail) == (there == 65)
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

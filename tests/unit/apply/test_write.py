"""The writing by itself: what a signal stops, what is deleted whole, what a reading at the end brings back."""

import os
import signal
import threading
from typing import Any

import pytest

from migrate.apply.write import SIGNALS, Interruption, goes_whole
from migrate.model import Commit, Decision, TopicPartition
from tests.unit.plans import row

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

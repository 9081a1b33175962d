import os
import signal
import threading

import pytest

from migrate.interruption import SIGNALS, Interruption


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_a_wish_and_the_handlers_are_back_after_it(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with Interruption() as interrupted:
        assert not interrupted
        os.kill(os.getpid(), number)
        assert interrupted
        assert [signal.getsignal(each) for each in SIGNALS] == before, "the second one acts as it always does"
    assert interrupted and [signal.getsignal(each) for each in SIGNALS] == before


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

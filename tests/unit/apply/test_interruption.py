import logging
import os
import signal
import threading

import pytest

from migrate.apply.write import SIGNALS, Interruption
from migrate.spark.session import _quieten_py4j


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


def test_what_py4j_logs_by_the_root_logger_is_kept_off_the_terminal_and_nothing_else_is() -> None:
    root, before = logging.getLogger(), list(logging.getLogger().filters)

    def shown(path: str) -> bool:
        said = "KeyboardInterrupt while sending command."
        return bool(root.filter(logging.LogRecord("root", logging.INFO, path, 1, said, None, None)))

    try:
        _quieten_py4j()
        assert not shown("/venv/site-packages/py4j/clientserver.py")
        assert shown("/app/migrate/py4j_like.py") and not logging.getLogger("py4j").propagate
    finally:
        root.filters[:] = before

"""Ctrl-C, a closed terminal and `kill` as wishes: what is under way is brought to its end, and nothing more begun."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """True once one of the signals came while it was entered; the second one acts as it always does.

    Signals can only be taken in the main thread: elsewhere it is never true.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self._came

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # What is ignored already stays so: `nohup` means it.
            heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came = True
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

"""Consumers are closed where nobody waits for ever."""

import threading

from migrate.kafka.read_pass import close_consumers

WAIT_SECONDS = 30.0


class Closing:
    """A consumer whose close takes until `may_end`."""

    def __init__(self, may_end: threading.Event) -> None:
        self.may_end = may_end
        self.is_closed = threading.Event()

    def close(self) -> None:
        self.may_end.wait(WAIT_SECONDS)
        self.is_closed.set()


def test_one_that_never_ends_is_left_behind_and_the_others_are_closed():
    never, at_once = threading.Event(), threading.Event()
    at_once.set()
    hanging, well = Closing(never), Closing(at_once)
    close_consumers([hanging, well], seconds=0.1)
    assert well.is_closed.wait(WAIT_SECONDS) and not hanging.is_closed.is_set()
    never.set()

"""What goes on beside a test: a writer or a reader that does the same again and again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.lab.proxy import Network

END_SECONDS = 120.0


@contextmanager
def again_and_again(what: Callable[[], None], pause_seconds: float) -> Iterator[None]:
    """Do something in a thread until the end of the block; what it raises is raised there."""
    stop, trouble = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not stop.is_set():
                what()
                stop.wait(pause_seconds)
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(END_SECONDS)
    assert not thread.is_alive() and not trouble, trouble


def breaking(network: Network, every_seconds: float) -> AbstractContextManager[None]:
    """Break all connections of a network again and again."""
    return again_and_again(network.reset, every_seconds)

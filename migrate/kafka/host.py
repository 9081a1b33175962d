"""The process in which librdkafka works for `migrate.kafka.cluster`: it answers calls, and may die of them.

Run as `python -m migrate.kafka.host DESCRIPTOR`, with a socket to the process that it works for; its settings come
through that socket, since a command line is seen by everybody. It ends as soon as the other side has: at once, also in
the middle of a call, so that nothing is written for a process that is gone.
"""

import gc
import importlib
import os
import queue
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from migrate.errors import MigrateError
from migrate.kafka.frames import HEARD, receive, send
from migrate.mm2.secrets import forbid_core_dumps


def main(descriptor: int) -> None:
    """Serve until the other side is gone."""
    forbid_core_dumps()
    # Answers by the hundred thousand are no garbage: looking for some takes a tenth of the time.
    gc.set_threshold(200_000, 50, 50)
    channel = socket.socket(fileno=descriptor)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(channel, calls), daemon=True).start()
    with suppress(ImportError):  # the first call runs into it again, and reports it
        importlib.import_module("migrate.kafka.admin")
    settings, deadline_seconds, concurrency = calls.get()
    admin: Any = None
    while True:
        method, arguments, options = calls.get()
        try:
            # librdkafka never forgets a coordinator that has moved: a new client asks for it anew.
            if admin is None or method == "renewed":
                from migrate.kafka.admin import ConfluentAdmin

                admin = ConfluentAdmin(settings, deadline_seconds, concurrency, _reporting(channel))
            value: Any = None if method == "renewed" else getattr(admin, method)(*arguments, **options)
            answer: Any = ("done", value)
        except MigrateError as error:
            answer = ("error", (type(error), error.problem, error.todo))
        except BaseException:
            answer = ("fault", traceback.format_exc())
        try:
            send(channel, answer)
        except OSError:
            os._exit(1)


def _reporting(channel: socket.socket) -> Callable[[], None]:
    """Return what says, once a second at most, that the cluster goes on answering; from any thread of a call."""
    lock, said_at = threading.Lock(), [0.0]

    def heard() -> None:
        with lock:
            if (now := time.monotonic()) - said_at[0] >= 1.0:
                said_at[0] = now
                with suppress(OSError):  # `_listen` ends us
                    send(channel, HEARD)

    return heard


def _listen(channel: socket.socket, calls: "queue.SimpleQueue[Any]") -> None:
    """Hand over calls, and end the process when the other side is gone."""
    try:
        while True:
            calls.put(receive(channel))
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))

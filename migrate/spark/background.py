"""A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING

from migrate.spark.dead_jvm import needing_machine
from migrate.spark.python_workers import start_workers
from migrate.spark.session import break_off_start, keep_classes, spark_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long a JVM waits to be started until it is known how much there is to read.
SIZE_SECONDS = 5.0
_LOOK_SECONDS = 0.05

Session = Callable[[], "SparkSession"]
"""Waits for a session that may still be starting; raises what its start raised."""


@dataclass(frozen=True)
class Wishes:
    """What is done beside a start and after it, of a Spark that makes a plan.

    `small` finds out, in the background, whether little is to be read; `prepare` runs in every Python worker. In the
    end the classes of the JVM are kept for the next one, unless one of the `secrets` is among them; `announce` is
    called before.
    """

    small: Callable[[], bool]
    prepare: Callable[[], None]
    secrets: Collection[str] = field(repr=False)
    announce: Callable[[], None]


@contextmanager
def background_spark(master: str | None, conf: Mapping[str, str], wishes: Wishes | None = None) -> Iterator[Session]:
    """Start Spark in the background, and yield what gives its session.

    In the end the session is stopped, with its JVM; a start that nobody waits for any more is broken off. Without
    `wishes`, little is asked of it, and nothing is kept. Raises `ClusterError` if the JVM ends before.
    """
    pool, over = ThreadPoolExecutor(1, "spark-start"), Event()

    def begin() -> "SparkSession":
        small = wishes is None or _in_time(wishes.small, over)
        return spark_session(master, conf, small, recording=wishes is not None)

    start = pool.submit(begin)
    if wishes is not None:
        pool.submit(lambda: start_workers(start.result(), wishes.prepare))
    try:
        with needing_machine():
            yield start.result
        if wishes is not None and start.done():
            keep_classes(wishes.secrets, wishes.announce)
    finally:
        over.set()
        if not start.done():
            break_off_start(lambda seconds: bool(wait([start], seconds).done))
        pool.shutdown(wait=True)
        if start.exception() is None:
            stop_session(start.result())


def _in_time(small: Callable[[], bool], over: Event) -> bool:
    """Return what it finds out; False where that takes too long, or nobody wants to know any more."""
    found: list[bool] = []

    def ask() -> None:
        with suppress(Exception):  # whoever needs the answer itself asks again, and is told
            found.append(small())

    asking, deadline = Thread(target=ask, daemon=True), time.monotonic() + SIZE_SECONDS
    asking.start()
    while asking.is_alive() and not over.is_set() and time.monotonic() < deadline:
        asking.join(_LOOK_SECONDS)
    return any(found)

"""A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from migrate.progress import in_background
from migrate.spark.dead_jvm import needing_machine
from migrate.spark.executors import refuse_lacking
from migrate.spark.python_workers import start_workers
from migrate.spark.session import break_off_start, keep_classes, spark_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Waits for a session that may still be starting; raises what its start raised."""


@dataclass(frozen=True)
class Start:
    """How Spark starts: `small` where little is to be read.

    `compares` says that records will be compared: then Python workers are started, and the classes are kept in the end.
    """

    small: bool
    compares: bool = False


@dataclass(frozen=True)
class Wishes:
    """What a Spark is started for that makes a plan.

    `start` is given once the clusters have said how much there is to read; whoever needs the session before gets one
    for much. `prepare` runs in Python workers. `announce` is called before classes are kept, which hold no `secrets`.
    """

    prepare: Callable[[], None]
    secrets: Collection[str] = field(repr=False)
    announce: Callable[[], None]
    start: "Future[Start]" = field(default_factory=Future)

    def settle(self, start: Start) -> None:
        """Say how to start, if nobody has yet."""
        with suppress(InvalidStateError):
            self.start.set_result(start)


class _NotWanted(Exception):
    """Raised instead of a start that nobody waits for any more."""


@contextmanager
def background_spark(master: str | None, conf: Mapping[str, str], wishes: Wishes | None = None) -> Iterator[Session]:
    """Start Spark in the background, and yield what gives its session.

    In the end the session is stopped, with its JVM; a start that nobody waits for any more is broken off. Without
    `wishes`, it starts at once, little is asked of it, and nothing is kept.
    Raises `ClusterError` if the JVM ends before.
    """
    pool, over = ThreadPoolExecutor(1, "spark-start"), Event()

    def begin() -> "SparkSession":
        how = Start(small=True) if wishes is None else wishes.start.result()
        if over.is_set():
            raise _NotWanted
        session = spark_session(master, conf, how.small, how.compares)
        try:
            if how.compares:
                refuse_lacking(session)
        except BaseException:
            stop_session(session)
            raise
        if wishes is not None and how.compares:
            prepare = wishes.prepare
            in_background(lambda: start_workers(session, prepare), "spark-workers")
        return session

    def settle() -> None:
        if wishes is not None:
            wishes.settle(Start(small=False))

    start = pool.submit(begin)

    def session() -> "SparkSession":
        settle()
        return start.result()

    try:
        with needing_machine():
            yield session
        if wishes is not None and start.done() and start.exception() is None:
            keep_classes(wishes.secrets, wishes.announce)
    finally:
        over.set()
        settle()
        if not start.done():
            break_off_start(lambda seconds: bool(wait([start], seconds).done))
        pool.shutdown(wait=True)
        if start.exception() is None:
            stop_session(start.result())

"""A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from migrate.progress import in_background
from migrate.spark.dead_jvm import needing_machine
from migrate.spark.executors import refuse_lacking
from migrate.spark.machine import break_off_start
from migrate.spark.session import spark_session, stop_session, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Waits for a session that may still be starting; raises what its start raised."""


class BackgroundSpark:
    """A Spark that may still be starting, and that may end before whoever started it does; `background_spark` makes it.

    Called, it waits for the session, and raises what its start raised.
    """

    def __init__(self, master: str | None, conf: Mapping[str, str], small: bool, compares: bool) -> None:
        self._how, self._compares = (master, conf, small), compares
        self._machine_up: Future[Any] = Future()
        self._starter = ThreadPoolExecutor(1, "spark-start")
        self._endings: list[Future[None]] = []
        self._start = self._starter.submit(self._begin)

    def __call__(self) -> "SparkSession":
        """Return the session."""
        return self._start.result()

    def machine(self) -> Any:
        """Return py4j's view of the JVM as soon as Kafka's classes can be used in it; raises what the start raised."""
        wait([self._machine_up, self._start], return_when=FIRST_COMPLETED)
        return self._machine_up.result() if self._machine_up.done() else self._start.result()._jvm

    def end_session(self) -> None:
        """Say that the session is not needed any more; it ends meanwhile."""
        self._begin_to_end(stop_spark)

    def end(self) -> None:
        """Say that all went well and the JVM is not needed any more; it ends meanwhile, and keeps its classes."""
        self._begin_to_end(partial(stop_session, keep_classes=True))

    def close(self) -> None:
        """Return once Spark has ended, and its JVM; a start that nobody waits for any more is broken off."""
        if not self._start.done():
            break_off_start(lambda seconds: bool(wait([self._start], seconds).done))
        self._starter.shutdown(wait=True)
        wait(self._endings)
        if self._has_started():
            stop_session(self._start.result())

    def _begin(self) -> "SparkSession":
        session = spark_session(*self._how, records=True, machine_up=self._machine_up.set_result)
        if self._compares:
            try:
                refuse_lacking(session)
            except BaseException:
                stop_session(session)
                raise
        return session

    def _has_started(self) -> bool:
        return self._start.done() and self._start.exception() is None

    def _begin_to_end(self, stop: Callable[["SparkSession"], None]) -> None:
        if not self._has_started():
            return
        session, before = self._start.result(), tuple(self._endings)

        def in_turn() -> None:
            wait(before)
            stop(session)

        self._endings.append(in_background(in_turn, "spark-end"))


@contextmanager
def background_spark(
    master: str | None, conf: Mapping[str, str], small: bool = True, compares: bool = False
) -> Iterator[BackgroundSpark]:
    """Start Spark in the background, and yield what gives its session.

    In the end the session is stopped, with its JVM, whose classes are kept where all went well; a start that nobody
    waits for any more is broken off. `small`: a quick start counts more than fast code. `compares`: records will be
    compared, so that executors are looked at.
    Raises `ClusterError` if the JVM ends before.
    """
    spark = BackgroundSpark(master, conf, small, compares)
    try:
        with needing_machine():
            yield spark
        spark.end()
    finally:
        spark.close()

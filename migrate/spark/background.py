"""A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from threading import Event
from typing import TYPE_CHECKING, Any

from migrate.progress import in_background
from migrate.spark.dead_jvm import needing_machine
from migrate.spark.executors import refuse_lacking
from migrate.spark.machine import break_off_start, keep_classes, records_classes
from migrate.spark.python_workers import start_workers
from migrate.spark.session import Start, spark_session, stop_session, stop_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Waits for a session that may still be starting; raises what its start raised."""


@dataclass(frozen=True)
class SparkPurpose:
    """What a Spark is started for: `is_small` where little is to be read.

    `compares` says that records will be compared: then Python workers are started, and the classes are kept in the end.
    """

    is_small: bool
    compares: bool = False


@dataclass(frozen=True)
class Wishes:
    """What a Spark is started for that makes a plan.

    `purpose` is given once the clusters have said how much there is to read; who needs the session earlier gets one for
    a large plan. `daemon` names the module that Python workers of this machine are forked from, and `prepare` runs in
    them. `announce` is called before classes are kept, which hold no `secrets`.
    """

    daemon: str
    prepare: Callable[[], None]
    secrets: Collection[str] = field(repr=False)
    announce: Callable[[], None]
    purpose: "Future[SparkPurpose]" = field(default_factory=Future)

    def settle(self, purpose: SparkPurpose) -> None:
        """Say what to start for, if nobody has yet."""
        with suppress(InvalidStateError):
            self.purpose.set_result(purpose)


class _NotWanted(Exception):
    """Raised instead of a start that nobody waits for any more."""


class BackgroundSpark:
    """A Spark that may still be starting, and that may end before whoever started it does; `background_spark` makes it.

    Called, it waits for the session, and raises what its start raised.
    """

    def __init__(self, master: str | None, conf: Mapping[str, str], wishes: Wishes | None) -> None:
        self._master = master
        self._conf = conf
        self._wishes = wishes
        self._over = Event()
        self._machine_up: Future[Any] = Future()
        self._starter = ThreadPoolExecutor(1, "spark-start")
        self._endings: list[Future[None]] = []
        self._start = self._starter.submit(self._begin)

    def __call__(self) -> "SparkSession":
        """Return the session."""
        self._settle()
        return self._start.result()

    def machine(self) -> Any:
        """Return py4j's view of the JVM as soon as Kafka's classes can be used in it; raises what the start raised."""
        self._settle()
        wait([self._machine_up, self._start], return_when=FIRST_COMPLETED)
        return self._machine_up.result() if self._machine_up.done() else self._start.result()._jvm

    def end_session(self) -> None:
        """Say that the session is not needed any more; it ends meanwhile."""
        self._begin_to_end(stop_spark)

    def end(self) -> None:
        """Say that the JVM is not needed any more; it ends meanwhile."""
        self._begin_to_end(stop_session)

    def keep_classes(self) -> None:
        """Keep the classes that the JVM has loaded, where that was asked for."""
        if self._wishes is not None and self._has_started():
            keep_classes(self._wishes.secrets, self._wishes.announce)

    def close(self) -> None:
        """Return once Spark has ended, and its JVM; a start that nobody waits for any more is broken off."""
        self._over.set()
        self._settle()
        if not self._start.done():
            break_off_start(lambda seconds: bool(wait([self._start], seconds).done))
        self._starter.shutdown(wait=True)
        wait(self._endings)
        if self._has_started():
            stop_session(self._start.result())

    def _begin(self) -> "SparkSession":
        wishes, purpose = self._wishes, SparkPurpose(is_small=True)
        if wishes is not None:
            # It takes a while to import, and whoever waits for the session waits for this too.
            import_module("pyspark.sql")
            purpose = wishes.purpose.result()
        if self._over.is_set():
            raise _NotWanted
        daemon = wishes.daemon if wishes else ""
        how = Start(purpose.is_small, purpose.compares, daemon, self._machine_up.set_result)
        session = spark_session(self._master, self._conf, how)
        if wishes is not None and purpose.compares:
            try:
                refuse_lacking(session)
            except BaseException:
                stop_session(session)
                raise
            prepare = wishes.prepare
            in_background(lambda: start_workers(session, prepare), "spark-workers")
        return session

    def _settle(self) -> None:
        if self._wishes is not None:
            self._wishes.settle(SparkPurpose(is_small=False))

    def _has_started(self) -> bool:
        return self._start.done() and self._start.exception() is None

    def _begin_to_end(self, stop: Callable[["SparkSession"], None]) -> None:
        # Where classes are to be kept, that is the last thing that is done: it takes long, and can be broken off.
        if not self._has_started() or records_classes():
            return
        session, before = self._start.result(), tuple(self._endings)

        def in_turn() -> None:
            wait(before)
            stop(session)

        self._endings.append(in_background(in_turn, "spark-end"))


class LentSpark:
    """A Spark that several plans use, one after another: none of them ends it."""

    def __init__(self, spark: BackgroundSpark) -> None:
        self._spark = spark

    def __call__(self) -> "SparkSession":
        """Return the session."""
        return self._spark()

    def machine(self) -> Any:
        """Return py4j's view of the JVM."""
        return self._spark.machine()

    def end_session(self) -> None:
        """Do nothing: the next plan needs the session."""

    def end(self) -> None:
        """Do nothing: the next plan needs the JVM."""


@contextmanager
def background_spark(
    master: str | None, conf: Mapping[str, str], wishes: Wishes | None = None
) -> Iterator[BackgroundSpark]:
    """Start Spark in the background, and yield what gives its session.

    In the end the session is stopped, with its JVM; a start that nobody waits for any more is broken off. Without
    `wishes`, it starts at once, little is asked of it, and nothing is kept.
    Raises `ClusterError` if the JVM ends before.
    """
    spark = BackgroundSpark(master, conf, wishes)
    try:
        with needing_machine():
            yield spark
        spark.keep_classes()
    finally:
        spark.close()

"""One cluster behind `migrate.ports.JavaAdmin`: Kafka's Java client in a JVM that may die; then a new one is asked.

- What was asked is asked again of a new JVM, `DEATHS_BORNE` times in a row.
- What was being written is `outcome_unknown`: the caller reads it back.
- A later error does not make it certain: an append that nobody acknowledged can show up after it.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import Any, TypeVar

from migrate.errors import ClusterError
from migrate.model import Commits, Failure, TopicPartition
from migrate.ports import Outcomes, Progress
from migrate.spark.dead_jvm import LostMachine, asking_machine
from migrate.spark.java_client import JavaClient
from migrate.spark.java_settings import JavaSettings
from migrate.spark.machine import java_machine, stop_java_machine

DEATHS_BORNE = 3
LOST = "JAVA_CLIENT_DIED"
RETRY_SECONDS = 60.0

T = TypeVar("T")


class JavaMachine:
    """A JVM with Kafka's classes, started when it is first asked for, or in the background where it will be."""

    def __init__(self, progress: Progress, at_once: bool) -> None:
        self._progress = progress
        self._pool = ThreadPoolExecutor(1, "java-start")
        self._one_change = Lock()
        # When the newest start was over, well or not.
        self._ended = 0.0
        self._jvm: Future[Any] | None = self._start() if at_once else None

    def jvm(self) -> Any:
        """Return py4j's view of the JVM, waiting for its start; raises `EnvironmentLacks` as often as it is asked.

        A start that failed is tried again after `RETRY_SECONDS`: a `follow` of days outlives a full disk.
        """
        with self._one_change:
            if self._jvm is None or self._has_failed_long_ago(self._jvm):
                self._progress.step("starting Kafka's Java client")
                self._jvm = self._start()
            starting = self._jvm
        return starting.result()

    def _start(self) -> "Future[Any]":
        def start() -> Any:
            try:
                return java_machine()
            finally:
                self._ended = time.monotonic()

        return self._pool.submit(start)

    def _has_failed_long_ago(self, starting: "Future[Any]") -> bool:
        has_failed = starting.done() and starting.exception() is not None
        return has_failed and time.monotonic() - self._ended >= RETRY_SECONDS

    def lost(self, jvm: Any) -> None:
        """Give up a JVM that does not answer; the next call of `jvm` starts another."""
        with self._one_change:
            # The other cluster's client may have noticed before, and another JVM may be there, or be starting.
            now = self._jvm
            if now is not None and now.done() and now.exception() is None and now.result() is jvm:
                stop_java_machine()
                self._jvm = None

    def close(self) -> None:
        """End the JVM, if it was started."""
        self._pool.shutdown(wait=True)
        if self._jvm is not None:
            stop_java_machine()


class KafkaJava:
    """Kafka's Java client to one cluster, made when first asked for.

    `machine` gives py4j's view of a JVM that has Kafka's classes. `lost` is told of a JVM that did not answer: what was
    asked is asked again of the one that `machine` gives then. None where there is no other: Spark's own.
    """

    def __init__(
        self,
        machine: Callable[[], Any],
        settings: JavaSettings,
        deadline_seconds: float,
        lost: Callable[[Any], None] | None = None,
    ) -> None:
        self._machine = machine
        self._settings = settings
        self._deadline_seconds = deadline_seconds
        self._lost = lost
        self._made: JavaClient | None = None

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, with metadata as it is stored."""
        try:
            return self._asked(lambda client: client.commits(groups, require_stable))
        except LostMachine as lost:
            return dict.fromkeys(groups, Failure(LOST, lost.problem, retriable=True))

    def prove(self) -> None:
        """Start the JVM, if it does not run, and reach the cluster."""
        self._asked(lambda client: client.reach())

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata."""
        return self._written(commits, lambda client: client.alter(commits))

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets of groups."""
        return self._written(offsets, lambda client: client.delete_offsets(offsets))

    def hosted_topics(self) -> frozenset[str] | Failure:
        """Return the names of all topics with a replica on any broker, through a client of its own."""
        jvm, millis = self._machine(), str(int(self._deadline_seconds * 1000))
        timed = {**self._settings.admin, "default.api.timeout.ms": millis, "request.timeout.ms": millis}
        try:
            client = JavaClient(jvm, replace(self._settings, admin=timed), self._deadline_seconds)
        except ClusterError as refused:
            return Failure("JAVA_CLIENT_UNUSABLE", refused.problem)
        with closing(client):
            return client.topics_in_log_directories()

    def close(self) -> None:
        """Close the client, if one was made."""
        if self._made is not None:
            with suppress(Exception):  # a JVM that is gone has nothing to close, and we have all its answers
                self._made.close()

    def _written(
        self, partitions: Mapping[str, Collection[TopicPartition]], write: Callable[[JavaClient], Outcomes]
    ) -> Outcomes:
        client = self._asked(lambda client: client)
        try:
            with self._asking(client.jvm):
                return write(client)
        except LostMachine as lost:
            unknown = Failure(LOST, lost.problem, retriable=True, outcome_unknown=True)
            return {group: dict.fromkeys(places, unknown) for group, places in partitions.items()}

    def _asked(self, ask: Callable[[JavaClient], T]) -> T:
        """Ask, and ask again in a new JVM where one died over the question; raises `LostMachine` in the end."""
        for deaths in range(1, DEATHS_BORNE + 1):
            jvm = self._machine()
            if self._lost is None:
                return ask(self._in(jvm))
            try:
                with self._asking(jvm):
                    return ask(self._in(jvm))
            except LostMachine:
                if deaths == DEATHS_BORNE:
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def _asking(self, jvm: Any) -> Iterator[None]:
        try:
            with asking_machine():
                yield
        except LostMachine:
            self._made = None
            if self._lost is not None:
                self._lost(jvm)
            raise

    def _in(self, jvm: Any) -> JavaClient:
        if self._made is None or self._made.jvm is not jvm:
            self._made = JavaClient(jvm, self._settings, self._deadline_seconds)
        return self._made

"""What plans read through: both clusters of a flow, and a Spark that starts meanwhile."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from migrate.clock import Clock
from migrate.errors import MigrateError
from migrate.kafka.cluster import ByJava
from migrate.kafka.reader_pair import prepare
from migrate.match.log_reader import LogReader
from migrate.mm2.flow import Flow
from migrate.mm2.secrets import secret_values
from migrate.mm2.topics import MOST_HELD
from migrate.model import LogRange, Side
from migrate.ports import Progress
from migrate.progress import in_background
from migrate.session.clusters import (
    DAEMON,
    Endpoint,
    endpoints,
    mm2_worker_of,
    parse_spark_conf,
    readers_of,
    status_session,
)
from migrate.session.options import SessionOptions, SparkOptions
from migrate.spark.background import BackgroundSpark, LentSpark, SparkPurpose, Wishes, background_spark
from migrate.spark.java_admin import KafkaJava
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.mm2_topics import pinned_log
from migrate.survey.offsets_export import pin_offsets_topic
from migrate.survey.source_memory import SourceMemory
from migrate.survey.survey import Clusters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate.spark.group_records import SparkGroupRecords

# Offsets of either of MM2's topics up to which a JVM with one compiler and a serial collector is no slower: it takes
# half the memory.
MOST_FOR_SMALL = 500_000


class PlanSession(Clusters):
    """What `plan` and `groups compare` read through: both clusters, and a Spark that starts meanwhile.

    Kafka's Java client reads all commits, in Spark's JVM. That starts as large as it takes to read what there is, which
    both clusters are asked for as soon as they have answered anything; who needs it earlier gets a large one.
    """

    def __init__(
        self,
        flow: Flow,
        source_down: bool,
        spark: BackgroundSpark | LentSpark,
        wishes: Wishes,
        options: SessionOptions,
        memory: SourceMemory | None = None,
    ) -> None:
        from migrate.match.compare import Comparer
        from migrate.spark.mm2_topics import SparkMirrorReader
        from migrate.spark.tasks import SparkTasks

        deadline = options.request_timeout
        source, target = sides = endpoints(flow, deadline)
        asked = sides[source_down:]
        self._spark = spark
        self._java = [KafkaJava(self._machine, of.java, deadline) for of in asked]
        self._asked = [of.admin(java=java, exact=ByJava.EVERY) for of, java in zip(asked, self._java, strict=True)]
        self._positions = target.records()
        settings = {Side.SOURCE: source.java, Side.TARGET: target.java}
        mirror = SparkMirrorReader(self.spark_session, flow, settings, positions=self._positions)
        comparer = offsets_topic = None
        if not source_down:
            comparer = Comparer(SparkTasks(self.spark_session, lambda: mirror.chains, readers_of(flow, source, target)))
        if options.reads_offsets_topic:
            from migrate.spark.topic_commits import SparkTopicCommits

            offsets_topic = SparkTopicCommits(self.spark_session, source.java)
        super().__init__(
            None if source_down else self._asked[0],
            self._asked[-1],
            mirror,
            comparer,
            mm2_worker_of(flow, deadline),
            starts_late=True,
            looks_for_hidden=True,
            offsets_topic=offsets_topic,
            memory=memory,
        )
        self._keeps_spark = options.keeps_spark
        self._is_over = Event()
        compares = not (source_down or options.no_match)
        self._sized = in_background(
            lambda: self._size(wishes, flow, compares, options.reads_offsets_topic), "sizing Spark"
        )

    def _size(self, wishes: Wishes, flow: Flow, compares: bool, reads_topic: bool) -> None:
        """Say what kind of Spark is to start, once both clusters have answered."""
        for cluster in self._asked:
            cluster.client.has_answered.wait()
        is_small = _is_small(flow, self.source, self.target)
        is_small = is_small and not (reads_topic and _has_long_offsets_topic(self.source))
        # Nothing is to start for a command that is over.
        if not self._is_over.is_set():
            wishes.settle(SparkPurpose(is_small, compares))

    def _wait_until_sized(self) -> None:
        if all(cluster.client.has_answered.is_set() for cluster in self._asked):
            self._sized.result()

    def _machine(self) -> Any:
        self._wait_until_sized()
        return self._spark.machine()

    def spark_session(self) -> "SparkSession":
        """Return the Spark session, once it has started."""
        self._wait_until_sized()
        return self._spark()

    def wait_for_commits(self) -> None:
        """Return once there is a JVM with Kafka's classes."""
        self._machine()

    def wait_for_records(self) -> None:
        """Return once there is a Spark session."""
        self.spark_session()

    def end_records(self) -> None:
        """End the Spark session, unless it is asked for by itself, while other things are read; its JVM goes on."""
        if not self._keeps_spark:
            self._spark.end_session()

    def end(self) -> None:
        """End the JVM, while the plan is decided."""
        for java in self._java:
            java.close()
        self._positions.close()
        self._spark.end()

    def close(self) -> None:
        """End both clusters' clients."""
        self._is_over.set()
        for cluster in self._asked:
            cluster.close()


@contextmanager
def plan_session(flow: Flow, source_down: bool, progress: Progress, options: SessionOptions) -> Iterator[PlanSession]:
    """Yield what `plan` reads through; Spark starts in the background meanwhile, and is stopped at the end."""
    wishes = plan_wishes([flow], progress)
    with (
        background_spark(options.spark.master, parse_spark_conf(options.spark.spark_conf), wishes) as spark,
        closing(PlanSession(flow, source_down, spark, wishes, options)) as session,
    ):
        yield session


SessionOf = Callable[[Flow, bool, SessionOptions], AbstractContextManager[Clusters]]
"""Gives what one of several plans reads through: of its flow, whether the source is down, and its options."""


@contextmanager
def session_of_several_plans(flows: Collection[Flow], progress: Progress, options: SparkOptions) -> Iterator[SessionOf]:
    """Yield what gives each of several plans what it reads through, one after another.

    They share one Spark, which is started for what the first of them has to read, and what they read of a source: one
    is the same where its properties are, since with others brokers may show other groups.
    """
    wishes, memories = plan_wishes(flows, progress), defaultdict[frozenset[tuple[str, str]], SourceMemory](SourceMemory)
    with background_spark(options.master, parse_spark_conf(options.spark_conf), wishes) as spark:

        def session_of(flow: Flow, source_down: bool, of_plan: SessionOptions) -> AbstractContextManager[Clusters]:
            memory = memories[frozenset(flow.source.properties.items())]
            return closing(PlanSession(flow, source_down, LentSpark(spark), wishes, of_plan, memory))

        yield session_of


def plan_wishes(flows: Collection[Flow], progress: Progress) -> Wishes:
    """Return what a Spark is started for that makes plans of these flows."""
    secrets = {secret for flow in flows for of in (flow.source, flow.target) for secret in secret_values(of.properties)}
    return Wishes(
        DAEMON,
        prepare,
        secrets,
        lambda: progress.step("keeping the classes that Spark has loaded, so that the next plan starts sooner"),
    )


def _is_small(flow: Flow, source: ClusterAdmin | None, target: ClusterAdmin) -> bool:
    """True if MM2's topics are short: it decides how the JVM starts, and no answer."""
    asked = [
        (target, flow.checkpoints_topic),
        (source if flow.syncs_side is Side.SOURCE else target, flow.offset_syncs_topic),
    ]
    try:
        logs = [pinned_log(admin, topic) for admin, topic in asked if admin is not None and topic]
    except MigrateError:
        return False
    return all(log.end - log.start <= MOST_FOR_SMALL for log in logs if isinstance(log, LogRange))


def _has_long_offsets_topic(source: ClusterAdmin | None) -> bool:
    if source is None:
        return False
    try:
        return pin_offsets_topic(source, None).offsets > MOST_HELD
    except MigrateError:
        return True  # who reads it says why it cannot


@dataclass(frozen=True)
class CompareSession:
    """What `groups compare` looks through; `records` reads the target's log, and is None where none are to be read.

    `unread_syncs` tells how many offset syncs at the beginning of a long topic were left unread.
    """

    clusters: Clusters
    records: LogReader | None
    unread_syncs: Callable[[], int]


@contextmanager
def compare_session(flow: Flow, clock: Clock, progress: Progress, options: SessionOptions) -> Iterator[CompareSession]:
    """Yield what `plan` reads through, and with `no_match` of `options` what `status` does: neither Spark nor Java."""
    if options.no_match:
        with status_session(flow, clock, options) as edges:
            syncs = flow.syncs_side, flow.offset_syncs_topic
            yield CompareSession(edges.clusters(source_down=False), None, lambda: edges.mirror.news(*syncs).left_out)
        return
    target = endpoints(flow, options.request_timeout)[1]
    with (
        plan_session(flow, False, progress, options) as clusters,
        closing(target.records(flow.target_isolation_level)) as records,
    ):
        yield CompareSession(clusters, records, lambda: 0)


@contextmanager
def group_records_by_spark(of: Endpoint, master: str | None, conf: Mapping[str, str]) -> "Iterator[SparkGroupRecords]":
    """Yield what reads groups' records in an offsets topic of any length; Spark starts for it."""
    from migrate.spark.group_records import SparkGroupRecords

    wishes = Wishes(DAEMON, lambda: None, of.java.secrets, lambda: None)
    wishes.settle(SparkPurpose(is_small=False))
    with background_spark(master, conf, wishes) as spark:
        yield SparkGroupRecords(spark, of.java)

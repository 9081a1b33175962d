"""What plans read through: both clusters of a flow, and a Spark that starts meanwhile."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING

from migrate.kafka.cluster import ByJava
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side
from migrate.session.clusters import (
    endpoints,
    mm2_worker_of,
    parse_spark_conf,
    readers_of,
)
from migrate.session.options import SessionOptions, SparkOptions
from migrate.spark.background import BackgroundSpark, background_spark
from migrate.spark.java_admin import KafkaJava
from migrate.survey.source_memory import SourceMemory
from migrate.survey.survey import Clusters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PlanSession(Clusters):
    """What plans read through: both clusters, and a Spark that starts meanwhile.

    Kafka's Java client reads all commits, in Spark's JVM.
    """

    def __init__(
        self,
        flow: Flow,
        source_down: bool,
        spark: BackgroundSpark,
        options: SessionOptions,
        memory: SourceMemory | None = None,
        ends_spark: bool = True,
    ) -> None:
        from migrate.match.compare import Comparer
        from migrate.spark.mm2_topics import SparkMirrorReader
        from migrate.spark.tasks import SparkTasks

        deadline = options.request_timeout
        source, target = sides = endpoints(flow, deadline)
        asked = sides[source_down:]
        self._spark, self._ends_spark = spark, ends_spark
        self._java = [KafkaJava(spark.machine, of.java, deadline) for of in asked]
        self._asked = [of.admin(java=java, exact=ByJava.EVERY) for of, java in zip(asked, self._java, strict=True)]
        self._readers = [of.records() for of in asked]
        held = ConsumedMm2Topics(flow, None if source_down else self._readers[0], self._readers[-1])
        settings = {Side.SOURCE: source.java, Side.TARGET: target.java}
        mirror = SparkMirrorReader(spark, flow, settings, held)
        comparer = offsets_topic = None
        if not source_down:
            comparer = Comparer(SparkTasks(spark, lambda: mirror.chains, readers_of(flow, source, target)))
        if options.reads_offsets_topic:
            from migrate.spark.topic_commits import SparkTopicCommits

            offsets_topic = SparkTopicCommits(spark, source.java)
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
        self._keeps_session = options.keeps_spark or not ends_spark

    def spark_session(self) -> "SparkSession":
        """Return the Spark session, once it has started."""
        return self._spark()

    def wait_for_commits(self) -> None:
        """Return once there is a JVM with Kafka's classes."""
        self._spark.machine()

    def wait_for_records(self) -> None:
        """Return once there is a Spark session."""
        self._spark()

    def end_records(self) -> None:
        """End the Spark session, unless it is asked for by itself, while other things are read; its JVM goes on."""
        if not self._keeps_session:
            self._spark.end_session()

    def end(self) -> None:
        """End the JVM, while the plan is decided."""
        for java in self._java:
            java.close()
        for reader in self._readers:
            reader.close()
        if self._ends_spark:
            self._spark.end()

    def close(self) -> None:
        """End both clusters' clients."""
        for cluster in self._asked:
            cluster.close()


@contextmanager
def plan_session(flow: Flow, source_down: bool, options: SessionOptions) -> Iterator[PlanSession]:
    """Yield what `plan` reads through; Spark starts in the background meanwhile, and is stopped at the end."""
    conf, compares = parse_spark_conf(options.spark.spark_conf), not (source_down or options.no_match)
    with (
        # An offsets topic is often long, and all of it is read.
        background_spark(options.spark.master, conf, not options.reads_offsets_topic, compares) as spark,
        closing(PlanSession(flow, source_down, spark, options)) as session,
    ):
        yield session


SessionOf = Callable[[Flow, bool, SessionOptions], AbstractContextManager[Clusters]]
"""Gives what one of several plans reads through: of its flow, whether the source is down, and its options."""


@contextmanager
def session_of_several_plans(options: SparkOptions, small: bool, compares: bool) -> Iterator[SessionOf]:
    """Yield what gives each of several plans what it reads through, one after another.

    `small` and `compares` are what Spark has to be fit for: no topic is long, and records are compared.

    They share one Spark, and what they read of a source: one is the same where its properties are, since with others
    brokers may show other groups.
    """
    memories = defaultdict[frozenset[tuple[str, str]], SourceMemory](SourceMemory)
    with background_spark(options.master, parse_spark_conf(options.spark_conf), small, compares) as spark:

        def session_of(flow: Flow, source_down: bool, of_plan: SessionOptions) -> AbstractContextManager[Clusters]:
            memory = memories[frozenset(flow.source.properties.items())]
            return closing(PlanSession(flow, source_down, spark, of_plan, memory, ends_spark=False))

        yield session_of

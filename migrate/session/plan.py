"""What plans read through: both clusters of a flow, and a Spark that starts meanwhile."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from migrate.kafka.cluster import ByJava
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side
from migrate.session.clusters import (
    endpoints,
    mm2_worker_of,
    readers_of,
    starting_spark,
)
from migrate.session.options import SessionOptions
from migrate.spark.background import BackgroundSpark
from migrate.spark.java_admin import KafkaJava
from migrate.survey.commits_source import FROM_COORDINATORS, CommitsSource
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
        commits: CommitsSource,
        spark: BackgroundSpark,
        options: SessionOptions,
    ) -> None:
        from migrate.match.compare import compare_records
        from migrate.spark.mm2_topics import SparkMirrorReader
        from migrate.spark.tasks import SparkTasks

        deadline = options.request_timeout
        source, target = sides = endpoints(flow, deadline)
        asked = sides if commits.asks_source else sides[1:]
        self._spark = spark
        self._java = [KafkaJava(spark.machine, of.java, deadline) for of in asked]
        self._asked = [of.admin(java=java, exact=ByJava.EVERY) for of, java in zip(asked, self._java, strict=True)]
        self._readers = [of.records() for of in asked]
        held = ConsumedMm2Topics(flow, self._readers[0] if commits.asks_source else None, self._readers[-1])
        settings = {Side.SOURCE: source.java, Side.TARGET: target.java}
        mirror = SparkMirrorReader(spark, flow, settings, held)
        comparer = offsets_topic = None
        if commits.asks_source:
            tasks = SparkTasks(spark, lambda: mirror.chains, readers_of(flow, source, target))
            comparer = partial(compare_records, tasks)
        if commits.reads_topic:
            from migrate.spark.topic_commits import topic_commits

            offsets_topic = partial(topic_commits, spark, source.java)
        super().__init__(
            self._asked[0] if commits.asks_source else None,
            self._asked[-1],
            mirror,
            comparer,
            mm2_worker_of(flow, deadline),
            starts_late=True,
            looks_for_hidden=True,
            offsets_topic=offsets_topic,
        )
        self._keeps_session = options.keeps_spark

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

    def end_readers(self) -> None:
        """Close what no more is read through, but for Spark."""
        for java in self._java:
            java.close()
        for reader in self._readers:
            reader.close()

    def end(self) -> None:
        """End the JVM, while the plan is decided."""
        self.end_readers()
        self._spark.end()

    def close(self) -> None:
        """End both clusters' clients."""
        for cluster in self._asked:
            cluster.close()


@contextmanager
def plan_session(
    flow: Flow, options: SessionOptions, commits: CommitsSource = FROM_COORDINATORS
) -> Iterator[PlanSession]:
    """Yield what `plan` reads through; Spark starts in the background meanwhile, and is stopped at the end."""
    # An offsets topic is often long, and all of it is read.
    small, compares = not commits.reads_topic, commits.asks_source and not options.no_match
    with (
        starting_spark(options.spark, flow.source, flow.target, small=small, compares=compares) as spark,
        closing(PlanSession(flow, commits, spark, options)) as session,
    ):
        yield session

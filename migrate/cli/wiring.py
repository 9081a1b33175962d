"""Where the real things are plugged in: clients from a flow, and a Spark session that starts in the background."""

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.apply.exact_admin import ExactAdmin
from migrate.errors import UsageError
from migrate.kafka.client_config import librdkafka_config
from migrate.kafka.hosted import HostedAdmin
from migrate.kafka.reader_pair import KafkaReaders, ReaderSettings
from migrate.kafka.rights import ConfluentRights
from migrate.match.comparison import Comparison, Limits, Listener, Work
from migrate.match.next_record import NextRecordReader
from migrate.mm2.connector_status import TaskReader
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.secrets import secret_values
from migrate.mm2.topics import CheckpointReading, SyncReading, WindowQuestion
from migrate.model import Commits, Failure, LogRange, Side, TopicPartition
from migrate.ports import CommitReader, PositionReader, Progress
from migrate.survey.group_facts import GroupFactsReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from migrate.kafka.record_reader import RecordReader
    from migrate.spark.exact_client import JavaMachine
    from migrate.spark.mm2_topics import SparkMirrorReader
    from migrate.spark.syncs import Syncs


def _client(cluster: Cluster) -> tuple[Mapping[str, str], frozenset[str]]:
    """Return one cluster's settings for librdkafka, and what no message may show of them."""
    mapped = librdkafka_config(cluster.properties, cluster.origin or f"{cluster.side} {cluster.alias}")
    return mapped.config, secret_values(cluster.properties)


def admin_of(cluster: Cluster, deadline_seconds: float, concurrency: int = 100) -> HostedAdmin:
    """Return the confluent-kafka admin of one cluster, in a process of its own; the first call starts it."""
    config, secrets = _client(cluster)
    return HostedAdmin(cluster, config, deadline_seconds, concurrency, secrets)


def rights_of(cluster: Cluster, deadline_seconds: float) -> ConfluentRights:
    """Return an admin that is also asked what it may do."""
    config, secrets = _client(cluster)
    return ConfluentRights(cluster, config, deadline_seconds, secrets=secrets)


def group_facts_of(cluster: Cluster, deadline_seconds: float) -> GroupFactsReader:
    """Return what tells of one cluster's groups beyond the admin client; nothing is opened before its first call."""
    from migrate.kafka.group_facts import ConfluentGroupFacts

    config, secrets = _client(cluster)
    return ConfluentGroupFacts(cluster, config, deadline_seconds, secrets)


def record_reader_of(
    cluster: Cluster, deadline_seconds: float, isolation_level: str = "read_committed"
) -> NextRecordReader:
    """Return the reader of single records of one cluster; nothing is opened before its first call."""
    from migrate.kafka.next_record import ConsumerOfNextRecords

    config, _ = _client(cluster)
    return ConsumerOfNextRecords(cluster, config, deadline_seconds, isolation_level)


def log_reader_of(cluster: Cluster, deadline_seconds: float) -> "RecordReader":
    """Return a reader of one cluster's logs for this process; nothing is opened before its first call."""
    from migrate.kafka.record_reader import RecordReader

    settings = _reader_settings(cluster)
    return RecordReader(settings.name, settings.config, deadline_seconds, settings.secrets)


def position_reader_of(flow: Flow, deadline_seconds: float) -> PositionReader | None:
    """Return what tells MM2's own positions without its offsets topic; None where no Connect worker is known."""
    if not flow.runtime.url:
        return None
    from migrate.mm2.connect_worker import WorkerPositions, connect_worker

    worker = connect_worker(flow.runtime.url, deadline_seconds)
    return WorkerPositions(worker, flow.runtime.source_connectors, flow.source.alias)


def task_reader_of(flow: Flow, deadline_seconds: float) -> TaskReader | None:
    """Return what tells the state of MM2's connectors; None where no Connect worker is known."""
    if not flow.runtime.url:
        return None
    from migrate.mm2.connect_worker import WorkerTasks, connect_worker
    from migrate.mm2.connectors import Role

    roles = dict.fromkeys(flow.runtime.source_connectors, Role.SOURCE)
    roles |= dict.fromkeys(flow.runtime.checkpoint_connectors, Role.CHECKPOINT)
    secrets = secret_values(flow.source.properties) | secret_values(flow.target.properties)
    return WorkerTasks(connect_worker(flow.runtime.url, deadline_seconds), roles, secrets)


def parse_spark_conf(pairs: Collection[str]) -> dict[str, str]:
    """Read `--spark-conf KEY=VALUE` values; raises `UsageError` for one without `=`."""
    conf = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair}: expected KEY=VALUE.", "For example spark.driver.memory=2g.")
        conf[key.strip()] = value
    return conf


class BackgroundSpark:
    """A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

    def __init__(self, master: str | None, conf: Mapping[str, str]) -> None:
        self._pool = ThreadPoolExecutor(1, "spark-start")
        self._session: Future[SparkSession] = self._pool.submit(self._start, master, conf)

    @staticmethod
    def _start(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
        from migrate.spark.session import spark_session

        return spark_session(master, conf)

    def session(self) -> "SparkSession":
        """Return the session, waiting for it; raises what its start raised."""
        return self._session.result()

    def stop(self) -> None:
        """Stop the session, if it started, and end its JVM. A start that nobody waits for any more is broken off."""
        from migrate.spark.session import break_off_start, stop_session

        if not self._session.done():
            break_off_start(lambda seconds: bool(wait([self._session], seconds).done))
        self._pool.shutdown(wait=True)
        if self._session.exception() is None:
            stop_session(self._session.result())


@contextmanager
def background_spark(master: str | None, conf: Mapping[str, str]) -> Iterator[BackgroundSpark]:
    """Start Spark in the background, and stop it at the end; raises `ClusterError` if its JVM ends before."""
    from migrate.spark.dead_jvm import needing_machine

    spark = BackgroundSpark(master, conf)
    try:
        with needing_machine():
            yield spark
    finally:
        spark.stop()


def hosted_by(spark: BackgroundSpark, cluster: Cluster, deadline_seconds: float) -> frozenset[str] | Failure:
    """Return the topics that a cluster has, whether it shows them to us or not."""
    from migrate.spark.hosted_topics import hosted_topics

    return hosted_topics(spark.session(), cluster, deadline_seconds)


class SparkCommits:
    """Commits read through Kafka's Java Admin in Spark's JVM, made when first asked for."""

    def __init__(self, spark: BackgroundSpark, cluster: Cluster, deadline_seconds: float) -> None:
        self._make: Callable[[], CommitReader] = lambda: self._reader(spark, cluster, deadline_seconds)
        self._made: CommitReader | None = None

    @staticmethod
    def _reader(spark: BackgroundSpark, cluster: Cluster, deadline_seconds: float) -> CommitReader:
        from migrate.spark.java_client import JavaClient
        from migrate.spark.java_commits import JavaCommitReader

        return JavaCommitReader(JavaClient(spark.session()._jvm, cluster, deadline_seconds))

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group."""
        if self._made is None:
            self._made = self._make()
        return self._made.commits(groups, require_stable)


@contextmanager
def java_on_demand(progress: Progress, at_once: bool) -> "Iterator[JavaMachine]":
    """Have a JVM for what only Kafka's Java client can do, and end it."""
    from migrate.spark.exact_client import JavaMachine

    machine = JavaMachine(progress, at_once)
    try:
        yield machine
    finally:
        machine.stop()


def exact_admin_of(
    cluster: Cluster,
    machine: "JavaMachine",
    groups_with_metadata: Collection[str],
    deadline_seconds: float,
    concurrency: int = 100,
) -> ExactAdmin:
    """Return the confluent-kafka admin of one cluster, which leaves to Java what it cannot do byte for byte."""
    from migrate.spark.exact_client import JavaExactClient

    usual = admin_of(cluster, deadline_seconds, concurrency)
    return ExactAdmin(usual, JavaExactClient(machine, cluster, deadline_seconds), groups_with_metadata)


class SparkMirror:
    """MM2's topics read through Spark's Kafka source, once its session is up."""

    def __init__(self, spark: BackgroundSpark, flow: Flow) -> None:
        self._spark = spark
        self._flow = flow
        self._made: SparkMirrorReader | None = None

    def _reader(self) -> "SparkMirrorReader":
        if self._made is None:
            from migrate.spark.mm2_topics import SparkMirrorReader

            self._made = SparkMirrorReader(self._spark.session(), self._flow)
        return self._made

    def syncs(self) -> "Syncs | None":
        """Return the offset syncs that `windows` has read; None where it has read none."""
        return self._made.syncs if self._made else None

    def checkpoints(self, topic: str, pinned: LogRange) -> CheckpointReading:
        """Read the checkpoints topic."""
        return self._reader().checkpoints(topic, pinned)

    def windows(self, side: Side, topic: str, pinned: LogRange, questions: Collection[WindowQuestion]) -> SyncReading:
        """Read the offset-syncs topic and find each question's window."""
        return self._reader().windows(side, topic, pinned, questions)

    def positions(self, topic: str, pinned: Mapping[int, LogRange]) -> Mapping[TopicPartition, int]:
        """Read MM2's own positions from the Connect offsets topic."""
        return self._reader().positions(topic, pinned)


class SparkRecordComparer:
    """Records compared by Spark's tasks, once its session is up; the offset syncs are those that `mirror` has read."""

    def __init__(self, spark: BackgroundSpark, flow: Flow, mirror: SparkMirror, deadline_seconds: float) -> None:
        self._spark = spark
        self._mirror = mirror
        source, target = (_reader_settings(cluster) for cluster in (flow.source, flow.target))
        target = replace(target, isolation_level=flow.target_isolation_level)
        self._readers = KafkaReaders(source, target, deadline_seconds)

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, inverted: bool = False
    ) -> Comparison:
        """Place the commits of every work."""
        from migrate.spark.comparer import SparkComparer

        comparer = SparkComparer(self._spark.session(), self._mirror.syncs, self._readers)
        return comparer.compare(works, limits, listener, inverted)


def _reader_settings(cluster: Cluster) -> ReaderSettings:
    name = f"{cluster.side} {cluster.alias} ({cluster.bootstrap})"
    return ReaderSettings(name, *_client(cluster))

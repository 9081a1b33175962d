"""One cluster and the ways to it, and what `apply`, `rollback` and `verify` go through: its clients, and a JVM."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from migrate.errors import UsageError
from migrate.kafka.client_config import client_settings
from migrate.kafka.cluster import ByJava, KafkaCluster
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.settings import ClientSettings
from migrate.match.next_record import ReadNext
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.secrets import is_spark_secret, secret_values
from migrate.ports import Progress
from migrate.session.options import SessionOptions, SparkOptions
from migrate.spark.background import BackgroundSpark, background_spark
from migrate.spark.java_admin import JavaMachine, KafkaJava
from migrate.spark.java_settings import JavaSettings, java_settings, out_of_reach, takes_printed_tokens
from migrate.spark.session_settings import is_local, master_of
from migrate.survey.cluster import ClusterAdmin, JavaAdmin
from migrate.survey.group_facts import AnswerMemory
from migrate.survey.renamed import SAME_NAMES, TargetNames

if TYPE_CHECKING:
    from migrate.kafka.record_reader import RecordReader
    from migrate.mm2.connect_worker import ConnectWorker


@dataclass(frozen=True)
class Endpoint:
    """One cluster and the ways to it; `deadline_seconds` is how long any one request may take.

    Its properties become the settings of each family of clients once, when the first of the family is made.
    """

    cluster: Cluster
    deadline_seconds: float

    @cached_property
    def kafka(self) -> ClientSettings:
        """The settings of librdkafka's clients; raises `ConfigError` for properties that it cannot use."""
        return client_settings(self.cluster)

    @cached_property
    def java(self) -> JavaSettings:
        """The settings of Kafka's Java clients and of Spark's Kafka source."""
        return java_settings(self.cluster)

    def admin(
        self,
        concurrency: int = 100,
        java: JavaAdmin | None = None,
        exact: Collection[str] | ByJava = (),
        memory: AnswerMemory | None = None,
    ) -> KafkaCluster:
        """Return the cluster; the first call opens what it needs. Parameters are those of `KafkaCluster`."""
        return KafkaCluster(self.kafka, self.deadline_seconds, concurrency, java, exact, memory)

    def records(self, isolation_level: str = "read_committed") -> "RecordReader":
        """Return the reader of records."""
        from migrate.kafka.record_reader import RecordReader

        return RecordReader(self.kafka, self.deadline_seconds, isolation_level)

    def next_records(self, isolation_level: str = "read_committed") -> ReadNext:
        """Return what reads single records."""
        from migrate.kafka.next_record import next_records

        return partial(next_records, self.kafka, self.deadline_seconds, isolation_level)


def endpoints(flow: Flow, deadline_seconds: float) -> tuple[Endpoint, Endpoint]:
    """Return source and target."""
    return Endpoint(flow.source, deadline_seconds), Endpoint(flow.target, deadline_seconds)


def mm2_worker_of(flow: Flow, deadline_seconds: float) -> "ConnectWorker | None":
    """Return what reports MM2's positions and the state of its connectors; None where no Connect worker is known."""
    if not flow.runtime.url:
        return None
    from migrate.mm2.connect_worker import connect_worker
    from migrate.mm2.connectors import Role

    roles = dict.fromkeys(flow.runtime.source_connectors, Role.SOURCE)
    roles |= dict.fromkeys(flow.runtime.checkpoint_connectors, Role.CHECKPOINT)
    secrets = secret_values(flow.source.properties) | secret_values(flow.target.properties)
    worker = connect_worker(flow.runtime.url, deadline_seconds)
    return replace(worker, connectors=roles, source_alias=flow.mm2_source_alias, secrets=secrets)


def parse_spark_conf(pairs: Collection[str]) -> dict[str, str]:
    """Read `--spark-conf KEY=VALUE` values; raises `UsageError` for one without `=`, and for a secret.

    Spark's JVM is started with all of them on its command line, which the process list shows.
    """
    conf = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair}: expected KEY=VALUE.", "For example spark.driver.memory=2g.")
        if is_spark_secret(key.strip(), value):
            raise UsageError(
                f"--spark-conf {key.strip()} has a secret, which the process list would show.",
                "Write it into spark-defaults.conf, in a folder that SPARK_CONF_DIR names.",
            )
        conf[key.strip()] = value
    return conf


def readers_of(flow: Flow, source: Endpoint, target: Endpoint) -> KafkaReaders:
    """Return what opens a reader of each cluster's records, here or in a task of Spark's."""
    return KafkaReaders(source.kafka, target.kafka, target.deadline_seconds, flow.target_isolation_level)


@dataclass(frozen=True)
class ApplySession:
    """What reads and writes the clusters of a plan, with a JVM for what only Kafka's Java client can do."""

    source: Endpoint
    target: Endpoint
    machine: JavaMachine
    concurrency: int

    def exact_admin(
        self, of: Endpoint, groups_with_metadata: Collection[str], names: TargetNames = SAME_NAMES
    ) -> ClusterAdmin:
        """Return one cluster, which leaves to Java what librdkafka cannot do byte for byte.

        `names` are what groups are called there: it is asked by those on the source, as `groups_with_metadata` are.
        """
        return of.admin(self.concurrency, self.java(of), names.asked(groups_with_metadata)).named(names)

    def java(self, of: Endpoint) -> KafkaJava:
        """Return Kafka's Java client to one cluster; the JVM starts when it is first asked."""
        return KafkaJava(self.machine.jvm, of.java, of.deadline_seconds, self.machine.lost)


@contextmanager
def apply_session(flow: Flow, progress: Progress, needs_java: bool, options: SessionOptions) -> Iterator[ApplySession]:
    """Yield what `apply`, `rollback` and `verify` go through; the JVM starts at once where Java is needed."""
    source, target = endpoints(flow, options.request_timeout)
    with closing(JavaMachine(progress, needs_java)) as machine:
        yield ApplySession(source, target, machine, options.concurrency)


@contextmanager
def starting_spark(
    options: SparkOptions, *clusters: Cluster, small: bool = True, compares: bool = False
) -> Iterator[BackgroundSpark]:
    """Start Spark in the background, and yield it: `background_spark`, for a command that reads these clusters by it.

    Raises `UsageError` for settings that cannot be, and where executors could not log in to one of the clusters.
    """
    conf = parse_spark_conf(options.spark_conf)
    if any(map(takes_printed_tokens, clusters)) and not is_local(master_of(options.master, conf)):
        raise out_of_reach()
    with background_spark(options.master, conf, small, compares) as spark:
        yield spark

"""Where the real things are plugged in: what the commands read and write through, behind the ports of the core.

Heavy libraries are imported when something of theirs is first made, and nothing is opened before it is first asked.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from migrate.apply.exact_admin import ExactAdmin
from migrate.clock import Clock
from migrate.errors import MigrateError, UsageError
from migrate.holders.reader import HolderReader
from migrate.kafka.client_config import client_settings
from migrate.kafka.hosted import HostedAdmin
from migrate.kafka.reader_pair import KafkaReaders, prepare
from migrate.kafka.settings import ClientSettings
from migrate.match.log_reader import LogReader
from migrate.match.next_record import NextRecordReader
from migrate.match.tail_comparer import TailComparer
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.secrets import secret_values
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.mm2.topics import MOST_HELD
from migrate.model import LogRange, Side
from migrate.plan.decide import HERE, RowDecider
from migrate.ports import ClusterAdmin, Progress
from migrate.spark.background import BackgroundSpark, LentSpark, SparkPurpose, Wishes, background_spark
from migrate.spark.decider import SparkDecider
from migrate.spark.exact_client import JavaExactClient, JavaMachine
from migrate.spark.java_client import JavaClient
from migrate.spark.java_settings import JavaSettings, java_settings
from migrate.survey.group_facts import GroupFactsReader, RememberedGroupFacts
from migrate.survey.mm2_topics import pinned_log
from migrate.survey.offsets_export import pin_offsets_topic
from migrate.survey.policies import CommitsFrom
from migrate.survey.positions import PositionReader
from migrate.survey.renamed import SAME_NAMES, TargetNames, renamed_admin
from migrate.survey.survey import Clusters

if TYPE_CHECKING:
    from migrate.mm2.connect_worker import Mm2Worker

# By name: it is for Spark's Python workers to import.
DAEMON = "migrate.cli.python_daemon"
# Offsets of either of MM2's topics up to which a JVM with one compiler and a serial collector is no slower: it takes
# half the memory.
MOST_FOR_SMALL = 500_000


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

    def admin(self, concurrency: int = 100) -> HostedAdmin:
        """Return the confluent-kafka admin, in a process of its own; the first call starts it."""
        return HostedAdmin(self.kafka, self.deadline_seconds, concurrency)

    def group_facts(self) -> GroupFactsReader:
        """Return what tells of the cluster's groups beyond the admin client."""
        from migrate.kafka.group_facts import ConfluentGroupFacts

        return ConfluentGroupFacts(self.kafka, self.deadline_seconds)

    def next_records(self, isolation_level: str = "read_committed") -> NextRecordReader:
        """Return the reader of single records."""
        from migrate.kafka.next_record import ConsumerOfNextRecords

        return ConsumerOfNextRecords(self.kafka, self.deadline_seconds, isolation_level)


def endpoints(flow: Flow, deadline_seconds: float) -> tuple[Endpoint, Endpoint]:
    """Return source and target."""
    return Endpoint(flow.source, deadline_seconds), Endpoint(flow.target, deadline_seconds)


def mm2_worker_of(flow: Flow, deadline_seconds: float) -> "Mm2Worker | None":
    """Return what reports MM2's positions and the state of its connectors; None where no Connect worker is known."""
    if not flow.runtime.url:
        return None
    from migrate.mm2.connect_worker import Mm2Worker, connect_worker
    from migrate.mm2.connectors import Role

    roles = dict.fromkeys(flow.runtime.source_connectors, Role.SOURCE)
    roles |= dict.fromkeys(flow.runtime.checkpoint_connectors, Role.CHECKPOINT)
    secrets = secret_values(flow.source.properties) | secret_values(flow.target.properties)
    return Mm2Worker(connect_worker(flow.runtime.url, deadline_seconds), roles, flow.source.alias, secrets)


def parse_spark_conf(pairs: Collection[str]) -> dict[str, str]:
    """Read `--spark-conf KEY=VALUE` values; raises `UsageError` for one without `=`."""
    conf = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--spark-conf {pair}: expected KEY=VALUE.", "For example spark.driver.memory=2g.")
        conf[key.strip()] = value
    return conf


@dataclass(frozen=True)
class PlanEdges:
    """What `plan` reads through, and what decides its rows."""

    clusters: Clusters
    decider: RowDecider


@contextmanager
def plan_edges(flow: Flow, source_down: bool, progress: Progress, options: Mapping[str, Any]) -> Iterator[PlanEdges]:
    """Yield what `plan` reads through; Spark starts in the background meanwhile, and is stopped at the end.

    `options` are those of the command: `request_timeout`, `master`, `spark_conf` and what else `plan` has of sources.
    """
    wishes = plan_wishes([flow], progress)
    with background_spark(options["master"], parse_spark_conf(options["spark_conf"]), wishes) as spark:
        yield edges_over(PlanFlow.of(flow, source_down, options), spark, wishes, options)


@dataclass(frozen=True)
class PlanFlow:
    """The clusters of one plan, with an admin for each; that of a source that is down is None."""

    flow: Flow
    sides: tuple[Endpoint, Endpoint]
    source: HostedAdmin | None
    target: HostedAdmin

    @classmethod
    def of(cls, flow: Flow, source_down: bool, options: Mapping[str, Any]) -> "PlanFlow":
        """Return it; `options` have the `request_timeout`."""
        sides = endpoints(flow, options["request_timeout"])
        return cls(flow, sides, None if source_down else sides[0].admin(), sides[1].admin())

    def close(self) -> None:
        """End both admins."""
        for admin in (self.source, self.target):
            if admin is not None:
                admin.close()


def plan_wishes(flows: Collection[Flow], progress: Progress) -> Wishes:
    """Return what a Spark is started for that makes plans of these flows."""
    secrets = {secret for flow in flows for of in (flow.source, flow.target) for secret in secret_values(of.properties)}
    return Wishes(
        DAEMON,
        prepare,
        secrets,
        lambda: progress.step("keeping the classes that Spark has loaded, so that the next plan starts sooner"),
    )


def edges_over(
    asked: PlanFlow, spark: BackgroundSpark | LentSpark, wishes: Wishes, options: Mapping[str, Any]
) -> PlanEdges:
    """Return what a plan reads through; a Spark that has not started yet is told how much there is to read."""
    flow, source, target = asked.flow, asked.source, asked.target
    reads_topic = bool(options.get("commits_as_of")) or options.get("commits_from") == CommitsFrom.CONSUMER_OFFSETS

    def begin() -> None:
        compares = not (source is None or options.get("no_match"))
        is_small = _is_small(flow, source, target) and not (reads_topic and _has_long_offsets_topic(source))
        wishes.settle(SparkPurpose(is_small, compares))

    decider = SparkDecider(spark, spark.end)
    clusters = replace(_plan_clusters(flow, *asked.sides, source, target, spark, decider), begin=begin)
    if reads_topic:
        from migrate.spark.topic_commits import SparkTopicCommits

        clusters = replace(clusters, offsets_topic=SparkTopicCommits(spark, asked.sides[0].java))
    if options.get("position_files") or options.get("spark_checkpoints"):
        clusters = replace(clusters, held_positions=HolderReader(spark))
    return PlanEdges(clusters, decider)


@contextmanager
def held_positions(options: Mapping[str, Any]) -> Iterator[PositionReader]:
    """Yield what reads positions outside Kafka, through a Spark of its own; `options` are `master` and `spark_conf`."""
    with background_spark(options["master"], parse_spark_conf(options["spark_conf"])) as spark:
        yield HolderReader(spark)


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


def _plan_clusters(
    flow: Flow, source: Endpoint, target: Endpoint, source_admin: ClusterAdmin | None, target_admin: ClusterAdmin,
    spark: BackgroundSpark | LentSpark, decider: SparkDecider,
) -> Clusters:  # fmt: skip
    from migrate.spark.comparer import SparkComparer
    from migrate.spark.hosted_topics import hosted_topics
    from migrate.spark.java_commits import JavaCommitReader
    from migrate.spark.mm2_topics import SparkMirrorReader

    def commits(of: Endpoint) -> JavaCommitReader:
        return JavaCommitReader(lambda: JavaClient(spark.machine(), of.java, of.deadline_seconds))

    def comparer() -> SparkComparer:
        readers = KafkaReaders(source.kafka, target.kafka, deadline, flow.target_isolation_level)
        return SparkComparer(spark, lambda: mirror.chains, readers)

    def records_read(rows: int) -> None:
        if not decider.takes(rows):
            spark.end_session()

    def all_read() -> None:
        for reader in (source_commits, target_commits):
            if reader is not None:
                with suppress(Exception):  # a JVM that is gone has nothing to close, and we have all its answers
                    reader.close()
        if not decider.is_awaited:
            spark.end()

    deadline = target.deadline_seconds
    source_down = source_admin is None
    source_commits, target_commits = None if source_down else commits(source), commits(target)
    worker = mm2_worker_of(flow, deadline)
    mirror = SparkMirrorReader(spark, flow, {Side.SOURCE: source.java, Side.TARGET: target.java})
    return Clusters(
        source=source_admin,
        target=target_admin,
        source_commits=source_commits,
        target_commits=target_commits,
        mirror=mirror,
        comparer=None if source_down else comparer(),
        hosted={
            of.cluster.side: partial(hosted_topics, spark.machine, of.java, deadline)
            for of in (source, target)[source_down:]
        },
        worker=worker,
        source_groups=None if source_down else source.group_facts(),
        target_groups=target.group_facts(),
        commits_ready=spark.machine,
        records_ready=spark,
        records_read=records_read,
        all_read=all_read,
    )


@dataclass(frozen=True)
class StatusEdges:
    """What `status` looks through, from one look to the next; `in_use` is locked during a look.

    Glances share what `group_facts` remembers, by side. `comparer` is None where no records are to be compared.
    """

    source: ClusterAdmin
    target: ClusterAdmin
    mirror: ConsumedMm2Topics
    comparer: TailComparer | None
    group_facts: Mapping[Side, RememberedGroupFacts]
    worker: "Mm2Worker | None" = None
    in_use: Lock = field(default_factory=Lock)

    def clusters(self, source_down: bool) -> Clusters:
        """Return what one look reads through."""
        source = None if source_down else self.source
        return Clusters(
            source,
            self.target,
            source,
            self.target,
            self.mirror,
            None if source_down else self.comparer,
            worker=self.worker,
            source_groups=None if source_down else self.group_facts[Side.SOURCE],
            target_groups=self.group_facts[Side.TARGET],
        )


@contextmanager
def status_edges(flow: Flow, clock: Clock, options: Mapping[str, Any]) -> Iterator[StatusEdges]:
    """Yield what `status` looks through, without Spark; `options` are `request_timeout`, `no_match` and `by`.

    Where timestamps are to place commits no tail is compared either, as `plan` compares none.
    """
    from migrate.kafka.record_reader import RecordReader

    deadline = options["request_timeout"]
    sides = endpoints(flow, deadline)
    readers = [RecordReader(side.kafka, deadline) for side in sides]
    source, target = [side.admin() for side in sides]
    mirror = ConsumedMm2Topics(flow, *readers)
    edges = StatusEdges(
        source,
        target,
        mirror,
        None
        if options["no_match"] or options.get("by") == "timestamp"
        else TailComparer(mirror.sync_pairs, lambda: nullcontext((readers[0], readers[1]))),
        {side.cluster.side: RememberedGroupFacts(side.group_facts(), clock) for side in sides},
        mm2_worker_of(flow, deadline),
    )
    try:
        yield edges
    finally:
        # A client that is closed under a question can take the process with it; what hangs ends with the process.
        if not edges.in_use.locked():
            for admin in (source, target):
                admin.close()
            for reader in readers:
                reader.close()


@dataclass(frozen=True)
class CompareEdges:
    """What `groups compare` looks through; `records` reads the target's log, and is None where none are to be read.

    `unread_syncs` tells how many offset syncs at the beginning of a long topic were left unread. `decider` decides the
    rows.
    """

    clusters: Clusters
    records: LogReader | None
    unread_syncs: Callable[[], int]
    decider: RowDecider = HERE


@contextmanager
def compare_edges(flow: Flow, clock: Clock, progress: Progress, options: Mapping[str, Any]) -> Iterator[CompareEdges]:
    """Yield what `plan` reads through, and with `no_match` of `options` what `status` does: neither Spark nor Java."""
    from migrate.kafka.record_reader import RecordReader

    if options["no_match"]:
        with status_edges(flow, clock, options) as edges:
            syncs = flow.syncs_side, flow.offset_syncs_topic
            yield CompareEdges(edges.clusters(source_down=False), None, lambda: edges.mirror.news(*syncs).left_out)
        return
    target = endpoints(flow, options["request_timeout"])[1]
    with (
        plan_edges(flow, False, progress, options) as edges,
        closing(RecordReader(target.kafka, target.deadline_seconds, flow.target_isolation_level)) as records,
    ):
        yield CompareEdges(edges.clusters, records, lambda: 0, edges.decider)


def endpoint_of(flow: Flow, options: Mapping[str, Any]) -> Endpoint:
    """Return the cluster on the `side` of `options`, which also have the `request_timeout`."""
    source, target = endpoints(flow, options["request_timeout"])
    return source if Side(options["side"]) is Side.SOURCE else target


@dataclass(frozen=True)
class ApplyEdges:
    """What reads and writes the clusters of a plan, with a JVM for what only Kafka's Java client can do."""

    source: Endpoint
    target: Endpoint
    machine: JavaMachine
    concurrency: int

    def exact_admin(
        self, of: Endpoint, groups_with_metadata: Collection[str], names: TargetNames = SAME_NAMES
    ) -> ClusterAdmin:
        """Return the confluent-kafka admin of one cluster, which leaves to Java what it cannot do byte for byte.

        `names` are what groups are called there: it is asked by those on the source, as `groups_with_metadata` are.
        """
        exact = JavaExactClient(self.machine, of.java, of.deadline_seconds)
        admin = ExactAdmin(of.admin(self.concurrency), exact, names.asked(groups_with_metadata))
        return renamed_admin(admin, names)


@contextmanager
def apply_edges(flow: Flow, progress: Progress, needs_java: bool, options: Mapping[str, Any]) -> Iterator[ApplyEdges]:
    """Yield what `apply`, `rollback` and `verify` go through; the JVM starts at once where Java is needed.

    `options` are `request_timeout` and, where anything is written, `concurrency`.
    """
    source, target = endpoints(flow, options["request_timeout"])
    with closing(JavaMachine(progress, needs_java)) as machine:
        yield ApplyEdges(source, target, machine, options.get("concurrency", 100))

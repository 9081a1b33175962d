"""What `plan` and `groups compare` read through: both clusters, and a Spark that starts meanwhile."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from migrate.cli.wiring import DAEMON, Endpoint, endpoints, mm2_worker_of, parse_spark_conf, status_edges
from migrate.clock import Clock
from migrate.errors import MigrateError
from migrate.holders.reader import HolderReader
from migrate.kafka.cluster import ByJava, KafkaCluster
from migrate.kafka.settings import KafkaReaders, prepare
from migrate.match.log_reader import LogReader
from migrate.mm2.flow import Flow
from migrate.mm2.secrets import secret_values
from migrate.mm2.topics import MOST_HELD
from migrate.model import LogRange, Side
from migrate.ports import Progress
from migrate.spark.background import BackgroundSpark, LentSpark, SparkPurpose, Wishes, background_spark
from migrate.spark.java_admin import KafkaJava
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.mm2_topics import pinned_log
from migrate.survey.offsets_export import pin_offsets_topic
from migrate.survey.policies import CommitsFrom
from migrate.survey.survey import Clusters

# Offsets of either of MM2's topics up to which a JVM with one compiler and a serial collector is no slower: it takes
# half the memory.
MOST_FOR_SMALL = 500_000


@contextmanager
def plan_edges(flow: Flow, source_down: bool, progress: Progress, options: Mapping[str, Any]) -> Iterator[Clusters]:
    """Yield what `plan` reads through; Spark starts in the background meanwhile, and is stopped at the end.

    `options` are those of the command: `request_timeout`, `master`, `spark_conf` and what else `plan` has of sources.
    """
    wishes = plan_wishes([flow], progress)
    with background_spark(options["master"], parse_spark_conf(options["spark_conf"]), wishes) as spark:
        yield edges_over(PlanFlow.of(flow, source_down, spark, options), spark, wishes, progress, options)


@dataclass(frozen=True)
class PlanFlow:
    """The clusters of one plan, with an admin for each; that of a source that is down is None."""

    flow: Flow
    sides: tuple[Endpoint, Endpoint]
    source: KafkaCluster | None
    target: KafkaCluster
    java: tuple[KafkaJava, ...]

    @classmethod
    def of(
        cls, flow: Flow, source_down: bool, spark: BackgroundSpark | LentSpark, options: Mapping[str, Any]
    ) -> "PlanFlow":
        """Return it; `options` have the `request_timeout`."""
        sides = endpoints(flow, options["request_timeout"])
        asked = sides[source_down:]
        java = tuple(KafkaJava(spark.machine, of.java, of.deadline_seconds) for of in asked)
        *source, target = (of.admin(java=by, exact=ByJava.EVERY) for of, by in zip(asked, java, strict=True))
        return cls(flow, sides, source[0] if source else None, target, java)

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
    asked: PlanFlow,
    spark: BackgroundSpark | LentSpark,
    wishes: Wishes,
    progress: Progress,
    options: Mapping[str, Any],
) -> Clusters:
    """Return what a plan reads through; a Spark that has not started yet is told how much there is to read."""
    flow, source, target = asked.flow, asked.source, asked.target
    reads_topic = bool(options.get("commits_as_of")) or options.get("commits_from") == CommitsFrom.CONSUMER_OFFSETS

    def begin() -> None:
        compares = not (source is None or options.get("no_match"))
        is_small = _is_small(flow, source, target) and not (reads_topic and _has_long_offsets_topic(source))
        wishes.settle(SparkPurpose(is_small, compares))

    clusters = replace(_plan_clusters(asked, spark), begin=begin)
    if reads_topic:
        from migrate.spark.topic_commits import SparkTopicCommits

        clusters = replace(clusters, offsets_topic=SparkTopicCommits(spark, asked.sides[0].java))
    if options.get("position_files") or options.get("spark_checkpoints"):
        clusters = replace(clusters, held_positions=HolderReader(spark))
    return clusters


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


def _plan_clusters(asked: PlanFlow, spark: BackgroundSpark | LentSpark) -> Clusters:
    from migrate.kafka.record_reader import RecordReader
    from migrate.spark.comparer import SparkComparer
    from migrate.spark.mm2_topics import SparkMirrorReader

    def comparer() -> SparkComparer:
        readers = KafkaReaders(source.kafka, target.kafka, deadline, flow.target_isolation_level)
        return SparkComparer(spark, lambda: mirror.chains, readers)

    def all_read() -> None:
        for java in asked.java:
            java.close()
        positions.close()
        spark.end()

    flow, (source, target) = asked.flow, asked.sides
    deadline = target.deadline_seconds
    source_down = asked.source is None
    worker = mm2_worker_of(flow, deadline)
    positions = RecordReader(target.kafka, deadline)
    settings = {Side.SOURCE: source.java, Side.TARGET: target.java}
    mirror = SparkMirrorReader(spark, flow, settings, positions=positions)
    return Clusters(
        source=asked.source,
        target=asked.target,
        mirror=mirror,
        comparer=None if source_down else comparer(),
        worker=worker,
        looks_for_hidden=True,
        commits_ready=spark.machine,
        records_ready=spark,
        records_read=spark.end_session,
        all_read=all_read,
    )


@dataclass(frozen=True)
class CompareEdges:
    """What `groups compare` looks through; `records` reads the target's log, and is None where none are to be read.

    `unread_syncs` tells how many offset syncs at the beginning of a long topic were left unread.
    """

    clusters: Clusters
    records: LogReader | None
    unread_syncs: Callable[[], int]


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
        plan_edges(flow, False, progress, options) as clusters,
        closing(RecordReader(target.kafka, target.deadline_seconds, flow.target_isolation_level)) as records,
    ):
        yield CompareEdges(clusters, records, lambda: 0)

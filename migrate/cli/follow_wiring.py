"""What `follow` goes through: the plain consumers of `status`, a comparer in this process, and a client that writes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from migrate.apply.follow_engine import FollowEdges
from migrate.cli.wiring import Endpoint, endpoints, status_edges
from migrate.clock import Clock
from migrate.kafka.record_reader import RecordReader
from migrate.kafka.settings import KafkaReaders
from migrate.match.here_comparer import HereComparer
from migrate.match.protocol import OffsetPair
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side, TopicPartition
from migrate.ports import Progress
from migrate.spark.java_admin import JavaMachine, KafkaJava
from migrate.survey.cluster import ClusterAdmin
from migrate.survey.renamed import TargetNames
from migrate.survey.survey import Clusters

# What was read of MM2's topics is kept that long: they are compacted, and memory is not.
RENEWED_SECONDS = 3600.0


class RenewedMirror:
    """MM2's topics as they were read, and read anew every hour: a month of offset syncs would fill the memory."""

    def __init__(self, make: Callable[[], ConsumedMm2Topics], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._made_at = clock.monotonic()
        self._mirror = make()

    def of_this_pass(self) -> ConsumedMm2Topics:
        """Return what the next pass reads through."""
        if self._clock.monotonic() - self._made_at >= RENEWED_SECONDS:
            self.renew()
        return self._mirror

    def renew(self) -> None:
        """Read them anew in the next pass."""
        self._made_at, self._mirror = self._clock.monotonic(), self._make()

    def sync_pairs(self, place: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
        """Return the chain of one partition, as far as its syncs were read in this pass."""
        return self._mirror.sync_pairs(place, source_end, target_end)


@contextmanager
def follow_edges(flow: Flow, clock: Clock, progress: Progress, options: Mapping[str, Any]) -> Iterator[FollowEdges]:
    """Yield what passes go through, without Spark; a JVM starts where a group turns out to carry metadata.

    `options` are `request_timeout` and `concurrency`.
    """
    deadline = options["request_timeout"]

    def java(of: Endpoint) -> KafkaJava:
        return KafkaJava(machine.jvm, of.java, deadline, machine.lost)

    source, target = endpoints(flow, deadline)
    with (
        closing(JavaMachine(progress, False)) as machine,
        status_edges(flow, clock, {**options, "no_match": True}, java) as edges,
        closing(RecordReader(source.kafka, deadline)) as on_source,
        closing(RecordReader(target.kafka, deadline)) as on_target,
    ):
        mirror = RenewedMirror(lambda: ConsumedMm2Topics(flow, on_source, on_target), clock)
        readers = KafkaReaders(source.kafka, target.kafka, deadline, flow.target_isolation_level)
        comparer = HereComparer(mirror.sync_pairs, readers)

        def clusters() -> Clusters:
            # Delays are measured from the newest commits; what the target says of expiry changes slowly.
            edges.memories[Side.SOURCE].forget()
            return replace(edges.clusters(source_down=False), mirror=mirror.of_this_pass(), comparer=comparer)

        def writing(lock: int, with_metadata: Collection[str], names: TargetNames) -> ClusterAdmin:
            exact = names.asked(with_metadata)
            return target.admin(options["concurrency"], java(target), exact).named(names).holding(lock)

        def forget() -> None:
            comparer.forget()
            mirror.renew()

        yield FollowEdges(clusters, writing, forget, edges.source.topic_ids)

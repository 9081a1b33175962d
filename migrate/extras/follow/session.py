"""What `follow` goes through: the plain consumers of `status`, a comparer in this process."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

from migrate.clock import Clock
from migrate.extras.follow.engine import FollowEdges
from migrate.match.compare import Memory, TasksHere, compare_records
from migrate.match.protocol import OffsetPair
from migrate.mm2.flow import Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import Side, TopicPartition
from migrate.ports import Progress
from migrate.session.clusters import apply_session, endpoints, readers_of
from migrate.session.options import SessionOptions
from migrate.session.status import status_session
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
def follow_session(flow: Flow, clock: Clock, progress: Progress, options: SessionOptions) -> Iterator[FollowEdges]:
    """Yield what passes go through, without Spark; a JVM starts where a group turns out to carry metadata."""
    source, target = endpoints(flow, options.request_timeout)
    with (
        apply_session(flow, progress, False, options) as by_java,
        status_session(flow, clock, replace(options, no_match=True), by_java.java) as looking,
        closing(source.records()) as on_source,
        closing(target.records()) as on_target,
    ):
        mirror = RenewedMirror(lambda: ConsumedMm2Topics(flow, on_source, on_target), clock)
        readers = readers_of(flow, source, target)
        comparer = partial(compare_records, TasksHere(readers, mirror.sync_pairs), memory=(memory := Memory()))

        def clusters() -> Clusters:
            # Delays are measured from the newest commits; what the target says of expiry changes slowly.
            looking.memories[Side.SOURCE].forget()
            return replace(looking.clusters(), mirror=mirror.of_this_pass(), comparer=comparer)

        def forget() -> None:
            memory.forget()
            mirror.renew()

        def offsets_topic_records() -> int:
            return sum(memory.logs.records_read for memory in looking.memories.values())

        yield FollowEdges(clusters, looking.target, forget, looking.source.topic_ids, offsets_topic_records)

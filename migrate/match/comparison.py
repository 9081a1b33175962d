"""Comparing the records of both clusters, seen from the plan: what is asked, what is answered, and the port.

Pure. `migrate.spark.comparer` is the adapter.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from migrate.match.equality import Equality
from migrate.match.protocol import PartitionAnswer, Work
from migrate.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read: offsets of either log per partition, and bytes from each cluster (None: no limit).

    With `match_records` 0 nothing is compared: every commit is placed by Law 2, which reads a few records for it. With
    `by_timestamp` every commit is placed by Law 2b, which reads the source alone, from the lowest commit on.
    """

    match_records: int
    fetch_bytes: int | None
    by_timestamp: bool = False


@dataclass(frozen=True, slots=True)
class FetchEstimate:
    """What comparing will fetch, said before it starts: bytes and records from each cluster, and the partitions.

    `left_out` are partitions that `Limits` leave out, because there is not enough budget for them.
    """

    partitions: int
    source_records: int
    target_records: int
    source_bytes: int
    target_bytes: int
    left_out: int


@dataclass(frozen=True)
class Comparison:
    """The answers by source partition; every work has one.

    `equalities` tell by source topic which parts of records had to agree, None where no anchor agreed under any
    (reason `records-changed-in-flight`). The byte counts are what was really fetched, where the client tells.
    """

    answers: Mapping[TopicPartition, PartitionAnswer]
    equalities: Mapping[str, Equality | None]
    estimate: FetchEstimate
    source_bytes: int
    target_bytes: int


@dataclass(frozen=True, slots=True)
class Listener:
    """Hears what is about to be read, once and before the first window, then about how many partitions are compared."""

    expects: Callable[[FetchEstimate], None]
    advance: Callable[[int, int], None]


class RecordComparer(Protocol):
    """Compares the records of both clusters. Reads only; payloads stay where they are read."""

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, failback: bool = False
    ) -> Comparison:
        """Place the commits of every work.

        The chain comes from the offset syncs that `MirrorReader.windows` has read. `failback` is True for a
        failback: the syncs' two offsets swap their roles. Raises `ClusterError` if a cluster does not answer;
        a topic that may not be read makes its works `Unmatched`.
        """

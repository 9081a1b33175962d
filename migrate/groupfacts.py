"""What a cluster tells of its groups beyond states and commits, and the port that it is asked through. Pure.

Nothing rests on these facts alone, so whatever is forbidden or slow is a `Failure`, never an error of the command.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

from migrate.grouprecords import GroupRecord
from migrate.model import Failure, TopicPartition

NOT_ASKED = Failure("NOT_ASKED", "nobody asked")


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the brokers of a cluster are set to.

    `retention_ms` is the shortest `offsets.retention.minutes` of any, `takes_kip848` False where one of them does
    not serve `group.protocol=consumer` (`group.coordinator.rebalance.protocols`, Kafka 3.7 and later).
    """

    retention_ms: int
    takes_kip848: bool


class GroupFactsReader(Protocol):
    """Asks one cluster. Reads only; a consumer behind it belongs to no group's business."""

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group that is there, of any kind: "consumer" (all that is planned), "share",
        "streams", "other"; a `Failure` where no client at hand can see the others."""
        ...

    def settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to; needs DESCRIBE_CONFIGS on the cluster."""
        ...

    def group_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups; needs READ on it. A group without records is left
        out."""
        ...

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str] | Failure:
        """Return those of these topics whose `cleanup.policy` names compact; needs DESCRIBE_CONFIGS on them."""
        ...

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        """Return the newest timestamp in a topic of one partition; None where it is empty."""
        ...


@dataclass(frozen=True)
class GroupFacts:
    """What was asked of both clusters.

    `source_kinds` are the kinds of all groups on the source. `target_records` are those of the plan's groups that
    stand on the target. `newest_sync_ms` is the time of MM2's newest offset sync, None where there is none.
    `moving` names, by group, the commits that changed between two readings while the group had no member: on the
    source, on the target.
    """

    source_kinds: Mapping[str, str] | Failure = NOT_ASKED
    target_settings: BrokerSettings | Failure = NOT_ASKED
    target_records: Mapping[str, GroupRecord] | Failure = NOT_ASKED
    newest_sync_ms: int | None | Failure = NOT_ASKED
    moving_on_source: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    moving_on_target: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def moved(before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]) -> tuple[str, ...]:
    """Return the partitions whose committed offset changed, as "t-0: 55 to 60"."""
    return tuple(
        f"{partition}: {before.get(partition, 'none')} to {now.get(partition, 'none')}"
        for partition in sorted(before.keys() | now.keys())
        if before.get(partition) != now.get(partition)
    )


class RememberedGroupFacts:
    """What a cluster told of its groups when it was first asked: for who looks every other second."""

    def __init__(self, asked: GroupFactsReader) -> None:
        self.group_kinds = cache(asked.group_kinds)
        self.settings = cache(asked.settings)
        self.newest_record_ms = asked.newest_record_ms
        self._records = cache(asked.group_records)
        self._compacted = cache(asked.compacted_topics)

    def group_records(self, groups: Collection[str]) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic held of these groups."""
        return self._records(tuple(sorted(groups)))

    def compacted_topics(self, topics: Collection[str]) -> frozenset[str] | Failure:
        """Return those of these topics that were compacted."""
        return self._compacted(tuple(sorted(topics)))

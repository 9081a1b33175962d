"""What is asked of one Kafka cluster, and written there: the one port to it.

`migrate.kafka.cluster` is behind it. Every question gets an answer: a call returns one entry for each thing asked
about, a `Failure` where the cluster gave none; a whole call that could not be made raises `ClusterError`. Of what
nothing rests on alone (`group_kinds` and below) a whole call may be a `Failure` too: whatever is forbidden or slow
there ends no command.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from migrate.described_group import ListedGroup
from migrate.model import ClusterFacts, Commits, Failure, GroupState, LogRange, Side, TopicPartition
from migrate.ports import Outcomes
from migrate.survey.offsets_topic import GroupRecord
from migrate.survey.renamed import TargetNames

CLEANUP_POLICY, TIMESTAMP_TYPE = "cleanup.policy", "message.timestamp.type"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the brokers of a cluster are set to.

    `retention_ms` is the shortest `offsets.retention.minutes` of any, `takes_kip848` False where one of them does
    not serve `group.protocol=consumer` (`group.coordinator.rebalance.protocols`, Kafka 3.7 and later).
    """

    retention_ms: int
    takes_kip848: bool


class ClusterAdmin(Protocol):
    """One cluster; `side` and `alias` name it in messages. What reads joins no group, commits and creates nothing."""

    side: Side
    alias: str

    def facts(self) -> ClusterFacts:
        """Return the cluster's id and what it lets us see; raises `ClusterError` if it cannot be reached."""

    def topics(self) -> Mapping[str, int]:
        """Return partition counts by topic name, of every topic the cluster shows us."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the topic ids (KIP-516) of those of `topics` that exist, as Kafka prints them."""

    def groups(self) -> frozenset[str]:
        """List consumer groups (simple, classic, KIP-848).

        Raises `ClusterError` if any broker's part is missing: a short list would be a smaller plan.
        """

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group; one that does not exist is `GroupState("Dead")`."""

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        """Describe each consumer group, with its members and what they are assigned.

        One that does not exist, or is of another kind, is classic and "Dead", as brokers say of it.
        """

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, read with `requireStable` (KIP-447).

        A group without any commit, or that does not exist, has an empty mapping. A group whose transaction
        is still open on an offset is `Failure("UNSTABLE_OFFSET_COMMIT", ...)`, unless `require_stable` is
        False: then what is committed so far is returned.
        """

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange | Failure]:
        """Return log start and last stable offset of each partition."""

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return how far each log reaches for a read_uncommitted reader: beyond the last stable offset if open."""

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit the offsets of each group, as many groups in flight at once as the client was made for.

        Metadata is written byte for byte, or that partition is a `Failure`; leader epochs never are.
        """

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets of stopped groups, which keep their others; one that is not there is done."""

    def missing_capability(self) -> Failure | None:
        """Try whether metadata and single removals can be done here; None if they can, else why not."""

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups with all their offsets; None for each that is done."""

    def group_kinds(self) -> Mapping[str, str] | Failure:
        """Return the kind of each group that is there, of any kind: "consumer" (all that is planned), "share",
        "streams", "other", "unknown" where neither a listing nor its records say; a `Failure` where no client at hand
        can see the others."""

    def other_groups(self) -> Mapping[str, ListedGroup] | Failure:
        """Return share groups, streams groups, those of Connect workers and the like, or why they are not listed.

        Where only a group's own records tell its kind, few are read, and of more the kind is a `Failure`.
        """

    def group_records(self, groups: Collection[str], most: int | None = None) -> Mapping[str, GroupRecord] | Failure:
        """Return what the offsets topic holds of these groups; needs READ on it. A group without records is left out.

        A `Failure` where more than `most` records are to be read.
        """

    def broker_settings(self) -> BrokerSettings | Failure:
        """Return what the brokers are set to; needs DESCRIBE_CONFIGS on the cluster."""

    def topic_settings(self, topics: Collection[str], setting: str) -> Mapping[str, str | Failure] | Failure:
        """Return one setting of each topic, such as `cleanup.policy`; needs DESCRIBE_CONFIGS on them."""

    def newest_record_ms(self, topic: str) -> int | None | Failure:
        """Return the newest timestamp in a topic of one partition; None where it is empty."""

    def hosted_topics(self) -> frozenset[str] | Failure:
        """Return the names of all topics with a replica on any broker, shown to us or not; only Java can tell."""

    def named(self, names: TargetNames) -> "ClusterAdmin":
        """Return the same cluster, asked and told by the source's names of groups."""

    def renewed(self) -> "ClusterAdmin":
        """Return a new client to the same cluster: a fresh one has no stale coordinator in its cache."""

    def holding(self, lock: int) -> "ClusterAdmin":
        """Return a new client that keeps this file descriptor, and a lock on it, for as long as it may write."""

    def close(self) -> None:
        """Give up the connections; a later call opens others."""


class JavaAdmin(Protocol):
    """What librdkafka cannot do: metadata byte for byte, the removal of single offsets, and topics that are not shown.

    Each call raises `EnvironmentLacks` or `ClusterError` where this client cannot be used.
    """

    def prove(self) -> None:
        """Reach the cluster."""

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """As `ClusterAdmin.commits`, with metadata as it is stored."""

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata; no leader epoch. Raises before anything is sent."""

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """As `ClusterAdmin.delete_offsets`. Raises before anything is sent."""

    def hosted_topics(self) -> frozenset[str] | Failure:
        """As `ClusterAdmin.hosted_topics`."""

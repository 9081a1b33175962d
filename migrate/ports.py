"""What the tool needs of a Kafka cluster and of the person who waits: small protocols, two adapters each.

`migrate.kafka.hosted` is the confluent-kafka adapter, `migrate.spark.java_admin` the Java one.
Every question gets an answer: a call returns one entry for each thing asked about, a `Failure` where the
cluster gave none; a whole call that could not be made raises `ClusterError`.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from migrate.described_group import ListedGroup
from migrate.model import ClusterFacts, Commits, Failure, GroupState, LogRange, Side, TopicPartition


class CommitReader(Protocol):
    """Reads groups' committed offsets."""

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, read with `requireStable` (KIP-447).

        A group without any commit, or that does not exist, has an empty mapping. A group whose transaction
        is still open on an offset is `Failure("UNSTABLE_OFFSET_COMMIT", ...)`, unless `require_stable` is
        False: then what is committed so far is returned.
        """


Outcomes = Mapping[str, Mapping[TopicPartition, Failure | None]]
"""What became of each group's partitions: None where it was done, else why not."""


class ExactClient(CommitReader, Protocol):
    """What librdkafka cannot do: metadata byte for byte, and the removal of single offsets."""

    def prove(self) -> None:
        """Reach the cluster; raises `EnvironmentLacks` or `ClusterError` where this client cannot be used."""

    def alter(self, commits: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets with their metadata; no leader epoch. Raises as `prove` does, before anything is sent."""

    def delete_offsets(self, offsets: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets of stopped groups; one that is not there is done. Raises as `prove` does."""


class ClusterAdmin(CommitReader, Protocol):
    """Lists, describes and alters one cluster. `side` and `alias` name it in messages."""

    side: Side
    alias: str

    def facts(self) -> ClusterFacts:
        """Return the cluster's id and what it lets us see; raises `ClusterError` if it cannot be reached."""

    def topics(self) -> Mapping[str, int]:
        """Return partition counts by topic name, of every topic the cluster shows us. Creates none."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the topic ids (KIP-516) of those of `topics` that exist, as Kafka prints them."""

    def groups(self) -> frozenset[str]:
        """List consumer groups (simple, classic, KIP-848).

        Raises `ClusterError` if any broker's part is missing: a short list would be a smaller plan.
        """

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group; one that does not exist is `GroupState("Dead")`."""

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

    def renewed(self) -> "ClusterAdmin":
        """Return a new client to the same cluster: a fresh one has no stale coordinator in its cache."""

    def holding(self, lock: int) -> "ClusterAdmin":
        """Return a new client that keeps this file descriptor, and a lock on it, for as long as it may write."""

    def close(self) -> None:
        """Give up the connections; a later call opens others."""


class GroupReader(CommitReader, Protocol):
    """Lists and describes the consumer groups of one cluster. Reads only; `alias` names the cluster in messages."""

    side: Side
    alias: str

    def facts(self) -> ClusterFacts:
        """As `ClusterAdmin.facts`."""

    def topics(self) -> Mapping[str, int]:
        """As `ClusterAdmin.topics`."""

    def groups(self) -> frozenset[str]:
        """As `ClusterAdmin.groups`."""

    def described_groups(self, groups: Collection[str]) -> Mapping[str, ListedGroup]:
        """Describe each consumer group, with its members and what they are assigned.

        One that does not exist, or is of another kind, is classic and "Dead", as brokers say of it.
        """

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """As `ClusterAdmin.high_watermarks`."""

    def close(self) -> None:
        """As `ClusterAdmin.close`."""


class EveryKindReader(Protocol):
    """Lists the groups of one cluster, of every kind. Reads only."""

    def told_groups(self) -> Mapping[str, ListedGroup] | Failure:
        """Return share groups, streams groups, those of Connect workers and the like, or why nobody lists them.

        With them are the consumer groups of which the same listing says all; the others are to be described. Where only
        a group's own records tell its kind, few are read, and of more the kind is a `Failure`.
        """


class Progress(Protocol):
    """Tells the person what is going on."""

    def step(self, text: str) -> None:
        """Begin a step, e.g. "reading commits of 312 groups on A"."""

    def advance(self, done: int, total: int) -> None:
        """Report progress of the current step."""

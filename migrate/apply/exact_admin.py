"""A cluster's admin that leaves to a second client only what its own cannot do byte for byte.

librdkafka hides what follows a NUL in metadata, adds one when it writes, and cannot remove a single offset. So groups
that carry metadata are read by the exact client, commits with metadata are written by it, and it alone removes single
offsets. All else goes the usual way; the exact client is not even made while nothing needs it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from migrate.errors import EnvironmentLacks, MigrateError
from migrate.model import (
    UNREAD_METADATA,
    ClusterFacts,
    Commits,
    Decision,
    Failure,
    GroupState,
    LogRange,
    Row,
    TopicPartition,
)
from migrate.ports import ClusterAdmin, ExactClient, Outcomes

MISSING = "JAVA_CLIENT_MISSING"
UNUSABLE = "JAVA_CLIENT_UNUSABLE"


def groups_with_metadata(rows: Iterable[Row]) -> frozenset[str]:
    """Return the groups that have a row to write or keep, and metadata on any row: their commits are read exactly.

    A kept row is held to its metadata, too: what librdkafka reads of it would look like somebody else's commit.
    """
    held, carrying = set(), set()
    for row in rows:
        if row.decision in (Decision.SET, Decision.REMOVE, Decision.KEEP):
            held.add(row.group)
        if row.target_metadata or row.target_prior_metadata or row.source_metadata:
            carrying.add(row.group)
    return frozenset(held & carrying)


class ExactAdmin:
    """`usual` in everything, except for what only `exact` can do; `groups` are those whose commits it reads."""

    def __init__(self, usual: ClusterAdmin, exact: ExactClient, groups: Collection[str]) -> None:
        self.side = usual.side
        self.alias = usual.alias
        self._usual = usual
        self._exact = exact
        self._groups = frozenset(groups)

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, those of groups with metadata as they are stored.

        Of another group's metadata only that there is some is told: what librdkafka reads may go on into memory of
        ours, and would stand in a journal.
        """
        exact = [group for group in groups if group in self._groups]
        others = [group for group in groups if group not in self._groups]
        answers = dict(self._usual.commits(others, require_stable)) if others else {}
        answers = {group: _without_content(answer) for group, answer in answers.items()}
        if exact:
            try:
                answers |= self._exact.commits(exact, require_stable)
            except EnvironmentLacks as lack:
                answers |= dict.fromkeys(exact, failure_of(lack))
        return answers

    def alter(self, wanted: Mapping[str, Commits]) -> Outcomes:
        """Commit offsets; groups with metadata through the exact client."""
        exact = {g: commits for g, commits in wanted.items() if any(c.metadata for c in commits.values())}
        others = {group: commits for group, commits in wanted.items() if group not in exact}
        answers = dict(self._usual.alter(others)) if others else {}
        if exact:
            try:
                answers |= self._exact.alter(exact)
            except MigrateError as error:
                answers |= {group: dict.fromkeys(commits, failure_of(error)) for group, commits in exact.items()}
        return answers

    def delete_offsets(self, wanted: Mapping[str, Collection[TopicPartition]]) -> Outcomes:
        """Remove single offsets, through the exact client."""
        try:
            return self._exact.delete_offsets(wanted)
        except MigrateError as error:
            return {group: dict.fromkeys(partitions, failure_of(error)) for group, partitions in wanted.items()}

    def lacks(self) -> Failure | None:
        """Reach the cluster through the exact client; None if that works."""
        try:
            self._exact.prove()
        except MigrateError as error:
            return failure_of(error)
        return None

    def renewed(self) -> "ExactAdmin":
        """Return one with a new usual client; Java's looks up coordinators that have moved by itself."""
        return ExactAdmin(self._usual.renewed(), self._exact, self._groups)

    def facts(self) -> ClusterFacts:
        """Return the cluster's id and what it lets us see."""
        return self._usual.facts()

    def topics(self) -> Mapping[str, int]:
        """Return partition counts by topic name."""
        return self._usual.topics()

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those topics that exist."""
        return self._usual.topic_ids(topics)

    def groups(self) -> frozenset[str]:
        """List consumer groups."""
        return self._usual.groups()

    def group_states(self, groups: Collection[str]) -> Mapping[str, GroupState | Failure]:
        """Describe each group."""
        return self._usual.group_states(groups)

    def log_ranges(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogRange | Failure]:
        """Return log start and last stable offset of each partition."""
        return self._usual.log_ranges(partitions)

    def high_watermarks(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return how far each log reaches for a read_uncommitted reader."""
        return self._usual.high_watermarks(partitions)

    def delete_groups(self, groups: Collection[str]) -> Mapping[str, Failure | None]:
        """Delete empty groups with all their offsets."""
        return self._usual.delete_groups(groups)

    def holding(self, lock: int) -> "ExactAdmin":
        """Return one whose usual client keeps the lock; the exact one's process ends as soon as this one has."""
        return ExactAdmin(self._usual.holding(lock), self._exact, self._groups)

    def close(self) -> None:
        """Give up the usual client's connections; the exact one's go with its process."""
        self._usual.close()


def _without_content(answer: Commits | Failure) -> Commits | Failure:
    if isinstance(answer, Failure) or not any(commit.metadata for commit in answer.values()):
        return answer
    return {
        place: replace(commit, metadata=UNREAD_METADATA) if commit.metadata else commit
        for place, commit in answer.items()
    }


def failure_of(error: MigrateError) -> Failure:
    """Return the `Failure` of one group or partition that the exact client could not even be asked about."""
    return Failure(MISSING if isinstance(error, EnvironmentLacks) else UNUSABLE, str(error).rstrip("."))

"""A cluster's admin that leaves to a second client only what its own cannot do byte for byte.

librdkafka hides what follows a NUL in metadata, adds one when it writes, and cannot remove a single offset. So groups
that carry metadata are read by the exact client, commits with metadata are written by it, and it alone removes single
offsets. All else goes the usual way; the exact client is not even made while nothing needs it.
"""

from collections.abc import Collection, Mapping

from migrate.commit_table import has_metadata
from migrate.errors import EnvironmentLacks, MigrateError
from migrate.model import UNREAD_METADATA, Commits, Decision, Failure, TopicPartition
from migrate.ports import ClusterAdmin, CommitReader, ExactClient, Outcomes
from migrate.row_table import PlanRows

MISSING = "JAVA_CLIENT_MISSING"
UNUSABLE = "JAVA_CLIENT_UNUSABLE"


def groups_with_metadata(rows: PlanRows) -> frozenset[str]:
    """Return the groups that have a row to write or keep, and metadata on any row: their commits are read exactly.

    A kept row is held to its metadata, too: what librdkafka reads of it would look like somebody else's commit.
    """
    decisions = {Decision.SET, Decision.REMOVE, Decision.KEEP}
    fields = ("target_metadata", "target_prior_metadata", "source_metadata")
    return frozenset(
        group
        for group, table in rows.groups().items()
        if any(any(table.column(name)) for name in fields) and not decisions.isdisjoint(table.column("decision"))
    )


class ExactAdmin:
    """`usual` in everything, except for what only `exact` can do; `groups` are those whose commits it reads."""

    def __init__(self, usual: ClusterAdmin, exact: ExactClient, groups: Collection[str]) -> None:
        self.side = usual.side
        self.alias = usual.alias
        self._usual = usual
        self._exact = exact
        self._groups = frozenset(groups)
        self.facts, self.topics, self.topic_ids = usual.facts, usual.topics, usual.topic_ids
        self.groups, self.group_states, self.delete_groups = usual.groups, usual.group_states, usual.delete_groups
        self.log_ranges, self.high_watermarks, self.close = usual.log_ranges, usual.high_watermarks, usual.close

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group, those of groups with metadata as they are stored.

        Of another group's metadata only that there is some is reported: what librdkafka reads may go on into memory of
        ours, and would end up in a journal.
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
        exact = {group: commits for group, commits in wanted.items() if has_metadata(commits)}
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

    def missing_capability(self) -> Failure | None:
        """Reach the cluster through the exact client; None if that works."""
        try:
            self._exact.prove()
        except MigrateError as error:
            return failure_of(error)
        return None

    def renewed(self) -> "ExactAdmin":
        """Return one with a new usual client; Java's looks up coordinators that have moved by itself."""
        return ExactAdmin(self._usual.renewed(), self._exact, self._groups)

    def holding(self, lock: int) -> "ExactAdmin":
        """Return one whose usual client keeps the lock; the exact one's process ends as soon as this one has."""
        return ExactAdmin(self._usual.holding(lock), self._exact, self._groups)


class ExactCommits:
    """Reads commits through `usual`, and those of groups that turn out to carry metadata once more, through `exact`.

    Where the exact client cannot be used, a commit says that it has metadata, and not which.
    """

    def __init__(self, usual: CommitReader, exact: ExactClient) -> None:
        self._usual = usual
        self._exact = exact

    def commits(self, groups: Collection[str], require_stable: bool = True) -> Mapping[str, Commits | Failure]:
        """Return all committed offsets of each group."""
        answers = dict(self._usual.commits(groups, require_stable))
        carrying = [g for g, answer in answers.items() if not isinstance(answer, Failure) and has_metadata(answer)]
        if carrying:
            try:
                return answers | dict(self._exact.commits(carrying, require_stable))
            except MigrateError:
                answers |= {group: _without_content(answers[group]) for group in carrying}
        return answers


def _without_content(answer: Commits | Failure) -> Commits | Failure:
    if isinstance(answer, Failure) or not has_metadata(answer):
        return answer
    return {
        place: commit._replace(metadata=UNREAD_METADATA) if commit.metadata else commit
        for place, commit in answer.items()
    }


def failure_of(error: MigrateError) -> Failure:
    """Return the `Failure` of one group or partition that the exact client could not even be asked about."""
    return Failure(MISSING if isinstance(error, EnvironmentLacks) else UNUSABLE, str(error).rstrip("."))

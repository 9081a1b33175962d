"""The partitions of groups, line by line, as `kafka-consumer-groups --describe` has them. Pure.

First the partitions that members are assigned, committed or not, the members with most partitions first; then those
that are committed and that no member has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.commit_table import without_offset
from migrate.described_group import GroupMember, ListedGroup
from migrate.extras.inventory.listing import GroupLag, lag_of
from migrate.extras.inventory.read import ClusterGroups, not_shown
from migrate.model import Commits, Failure, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition of a group. The side is that of the cluster that was asked.

    `committed` is None where nothing is committed, or where the group's commits could not be read
    (`DescribedGroup.commits` says which). `member` is None where no member has the partition.
    """

    partition: TopicPartition
    committed: int | None
    log_end: int | Failure
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        """Log end less commit, negative where the commit lies beyond the end; None where one of them is not known."""
        return None if self.committed is None or isinstance(self.log_end, Failure) else self.log_end - self.committed


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group and its partitions. `commits_unread` says why its commits could not be read, None where they were.

    `idle_members` have no partition assigned: the group has more members than partitions; None where that is not shown,
    as it is not of a group that is rebalancing, or whose members are no consumers. `without_offset` counts commits of
    -1, which brokers take, and which are read as nothing committed.
    """

    group: str
    listed: ListedGroup
    commits_unread: Failure | None
    lag: GroupLag | Failure
    lines: tuple[PartitionLine, ...]
    idle_members: tuple[GroupMember, ...] | None
    without_offset: int = 0

    @property
    def is_whole(self) -> bool:
        """True if everything about the group was read."""
        facts = (self.listed.kind, self.listed.protocol_type, self.listed.description, self.lag)
        ends = (line.log_end for line in self.lines)
        return not any(isinstance(fact, Failure) for fact in (*facts, *ends))


def describe_groups(read: ClusterGroups) -> tuple[DescribedGroup, ...]:
    """Return all groups that were read, in order of their names."""
    return tuple(_described(read, group) for group in read.groups)


def _described(read: ClusterGroups, name: str) -> DescribedGroup:
    group, answer = read.groups[name], read.commits[name]
    commits: Commits = {} if isinstance(answer, Failure) else answer
    # Part of a lag would be taken for the whole.
    hidden = not_shown(read, name)
    return DescribedGroup(
        name,
        group,
        answer if isinstance(answer, Failure) else None,
        answer if isinstance(answer, Failure) else hidden or lag_of(commits, read.log_ends),
        tuple(_lines(read, group, commits)),
        _idle_members(group),
        len(without_offset(commits)),
    )


def _idle_members(group: ListedGroup) -> tuple[GroupMember, ...] | None:
    described = group.description
    if isinstance(described, Failure):
        return None
    # While it rebalances a member may be about to be assigned some; of a Connect worker brokers show no partitions.
    if described.members and (described.state != "Stable" or group.protocol_type != "consumer"):
        return None
    return tuple(member for member in described.members if not member.partition_count)


def _lines(read: ClusterGroups, group: ListedGroup, commits: Commits) -> Iterator[PartitionLine]:
    members = () if isinstance(group.description, Failure) else group.description.members
    no_end = Failure("NO_ANSWER", "the log's end is missing from the answer")

    def line(place: TopicPartition, member: GroupMember | None) -> PartitionLine:
        commit = commits.get(place)
        return PartitionLine(place, commit.offset if commit else None, read.log_ends.get(place, no_end), member)

    taken = set()
    for member in sorted(members, key=lambda m: (-m.partition_count, m.consumer_id)):
        for place in sorted(member.partitions()):
            taken.add(place)
            yield line(place, member)
    # A partition that a member has is shown there; without this, all commits of a stopped group would be missing.
    for place in sorted({*commits, *without_offset(commits)}):
        if place not in taken:
            yield line(place, None)

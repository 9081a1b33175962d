"""A group's committed offsets as columns: what thousands of groups have committed is held in little memory. Pure.

Groups of one application have committed on the same partitions; these are held once. A commit is made when it is asked
for. The table is a mapping like any other, and equals the dictionary with the same commits.
"""

from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import lt
from typing import Any, TypeVar, overload

from migrate.model import UNREAD_METADATA, Commit, Commits, GroupPartition, TopicPartition

T = TypeVar("T")
# In the packed column alone: epochs are never negative.
_NO_EPOCH = -1


class _Places:
    """Partitions in an order, and the place of each."""

    __slots__ = ("at", "partitions")

    def __init__(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.partitions = partitions
        self.at = {partition: place for place, partition in enumerate(partitions)}


# Those of some thousand applications: what does not fit is held once for each group.
_places = lru_cache(maxsize=4096)(_Places)


class CommitTable(Mapping[TopicPartition, Commit]):
    """Committed offsets by partition, in the order in which they were given.

    `offsets` has an item for each of `partitions`; so have `metadata` and `epochs` (leader epochs, None for none),
    unless they are empty, which says that no commit has any. `without_offset` are partitions committed at -1, which
    brokers take and everybody reads as nothing committed: they are not in the mapping. Raises `ValueError` if one has
    another length, or a partition comes twice.
    """

    __slots__ = ("_epochs", "_metadata", "_offsets", "_places", "without_offset")

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        offsets: Iterable[int],
        metadata: Sequence[str] = (),
        epochs: Sequence[int | None] = (),
        without_offset: Iterable[TopicPartition] = (),
    ) -> None:
        self.without_offset = tuple(without_offset)
        self._places = _places(tuple(partitions))
        self._offsets = array("q", offsets)
        self._metadata = tuple(metadata) if any(metadata) else ()
        packed = array("q", [_NO_EPOCH if epoch is None else epoch for epoch in epochs])
        self._epochs = array("q") if packed.count(_NO_EPOCH) == len(packed) else packed
        count = len(self._places.at)
        if len(self._offsets) != count or any(len(c) not in (0, count) for c in (self._metadata, self._epochs)):
            raise ValueError("the columns of commits differ in length, or a partition comes twice")

    @classmethod
    def of(cls, commits: Commits) -> "CommitTable":
        """Return commits as a table; one that is a table already is returned as it is."""
        if isinstance(commits, cls):
            return commits
        values = commits.values()
        return cls(commits, [c.offset for c in values], [c.metadata for c in values], [c.leader_epoch for c in values])

    @property
    def has_metadata(self) -> bool:
        """True if a commit has metadata."""
        return bool(self._metadata)

    @property
    def has_epochs(self) -> bool:
        """True if a commit has a leader epoch."""
        return bool(self._epochs)

    def items(self) -> ItemsView[TopicPartition, Commit]:
        """Return partitions and commits, which are made while they are walked through."""
        return _TableItems(self)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions, in their order: one object for all tables that have the same."""
        return self._places.partitions

    @property
    def offsets(self) -> Sequence[int]:
        """The committed offsets, in the order of the partitions."""
        return self._offsets

    @property
    def metadata(self) -> Sequence[str]:
        """The commits' metadata, in the order of the partitions; empty where no commit has any."""
        return self._metadata

    def commits(self) -> Iterator[Commit]:
        """Yield the commits, in their order."""
        epochs = (None if epoch == _NO_EPOCH else epoch for epoch in self._epochs) if self._epochs else repeat(None)
        return map(Commit, self._offsets, self._metadata or repeat(""), epochs)

    def offsets_at(self, partitions: Iterable[TopicPartition]) -> list[int | None]:
        """Return what is committed on each of these partitions; None for nothing."""
        offsets = self._offsets
        return [None if at is None else offsets[at] for at in map(self._places.at.get, partitions)]

    def at(self, partition: TopicPartition) -> int:
        """Return what is committed on a partition that has a commit; raises `KeyError` for any other."""
        return self._offsets[self._places.at[partition]]

    @overload
    def get(self, partition: TopicPartition) -> Commit | None: ...
    @overload
    def get(self, partition: TopicPartition, default: T) -> Commit | T: ...
    def get(self, partition: TopicPartition, default: object = None) -> object:
        """Return the commit on a partition; without the exception that a mapping's own way raises for each lack."""
        at = self._places.at.get(partition)
        return default if at is None else self._commit(at)

    def _commit(self, at: int) -> Commit:
        epoch = self._epochs[at] if self._epochs else _NO_EPOCH
        metadata = self._metadata[at] if self._metadata else ""
        return Commit(self._offsets[at], metadata, None if epoch == _NO_EPOCH else epoch)

    def __getitem__(self, partition: TopicPartition) -> Commit:
        return self._commit(self._places.at[partition])

    def __contains__(self, partition: object) -> bool:
        return partition in self._places.at

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._places.partitions)

    def __len__(self) -> int:
        return len(self._offsets)

    def __repr__(self) -> str:
        return f"CommitTable({dict(self)!r})"

    def __reduce__(self) -> Any:
        # The tuple of partitions is one object for all groups that share it, so it travels once.
        columns = self._offsets, self._metadata, self._epochs, self.without_offset
        return CommitTable, (self._places.partitions, *columns)


class _TableItems(ItemsView[TopicPartition, Commit]):
    _mapping: CommitTable

    def __iter__(self) -> Iterator[tuple[TopicPartition, Commit]]:
        return zip(self._mapping, self._mapping.commits(), strict=True)


class GroupCommits(Mapping[GroupPartition, Commit]):
    """Committed offsets by group and partition, in their order, held as one table for each group."""

    __slots__ = ("_count", "_tables")

    def __init__(self, by_group: Mapping[str, Commits]) -> None:
        self._tables = {group: _in_order(commits) for group, commits in sorted(by_group.items()) if commits}
        self._count = sum(map(len, self._tables.values()))

    def groups(self) -> Mapping[str, CommitTable]:
        """Return each group's commits, those of groups that have some."""
        return self._tables

    def partitions(self) -> set[TopicPartition]:
        """Return all partitions that a group has committed on."""
        # Groups that share theirs are looked at once.
        distinct = {id(table.partitions): table.partitions for table in self._tables.values()}
        return {partition for partitions in distinct.values() for partition in partitions}

    def items(self) -> ItemsView[GroupPartition, Commit]:
        """Return places and commits, which are made while they are walked through."""
        return _Items(self)

    def __getitem__(self, key: GroupPartition) -> Commit:
        return self._tables[key.group][key.source_partition]

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, GroupPartition):
            return False
        return key.source_partition in self._tables.get(key.group, ())

    def __iter__(self) -> Iterator[GroupPartition]:
        return (GroupPartition(group, *place) for group, table in self._tables.items() for place in table)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"GroupCommits({dict(self)!r})"


class _Items(ItemsView[GroupPartition, Commit]):
    """Walks through tables: to look up each of a million keys would take as long as all that is done with them."""

    _mapping: GroupCommits

    def __iter__(self) -> Iterator[tuple[GroupPartition, Commit]]:
        for group, table in self._mapping.groups().items():
            for place, commit in table.items():
                yield GroupPartition(group, *place), commit


def _in_order(commits: Commits) -> CommitTable:
    places = list(commits)
    if all(map(lt, places, places[1:])):
        return CommitTable.of(commits)
    return CommitTable.of(dict(sorted(commits.items())))


def partitions_of_keys(keys: Mapping[GroupPartition, object]) -> set[TopicPartition]:
    """Return the partitions of all these places, on the source."""
    if isinstance(keys, GroupCommits):
        return keys.partitions()
    return {key.source_partition for key in keys}


def partitions_by_group(keys: Mapping[GroupPartition, object]) -> Mapping[str, Sequence[TopicPartition]]:
    """Return each group's partitions of these places, on the source."""
    if isinstance(keys, GroupCommits):
        return {group: table.partitions for group, table in keys.groups().items()}
    partitions: dict[str, list[TopicPartition]] = {}
    for key in keys:
        partitions.setdefault(key.group, []).append(key.source_partition)
    return partitions


def committed_offsets(keys: Mapping[GroupPartition, Commit | None]) -> Iterator[tuple[str, TopicPartition, int]]:
    """Yield the group, the partition and the offset of every commit, in order; no commit is made for that."""
    if isinstance(keys, GroupCommits):
        for group, table in keys.groups().items():
            yield from zip(repeat(group, len(table)), table.partitions, table.offsets, strict=True)
    else:
        for key, commit in keys.items():
            if commit is not None:
                yield key.group, key.source_partition, commit.offset


def offsets_at(commits: Commits, partitions: Iterable[TopicPartition]) -> list[int | None]:
    """Return what is committed on each of these partitions; None for nothing."""
    if isinstance(commits, CommitTable):
        return commits.offsets_at(partitions)
    return [None if (commit := commits.get(partition)) is None else commit.offset for partition in partitions]


def commits_at(commits: Commits, partitions: Iterable[TopicPartition]) -> list[Commit | None]:
    """Return the commit on each of these partitions; None for none."""
    return list(map(commits.get, partitions))


def has_same_offsets(one: Commits, other: Commits) -> bool:
    """True if two groups, or one at two times, have committed the same offsets on the same partitions."""
    return len(one) == len(other) and offsets_at(one, one) == offsets_at(other, one)


def has_metadata(commits: Commits) -> bool:
    """True if a commit has metadata."""
    if isinstance(commits, CommitTable):
        return commits.has_metadata
    return any(commit.metadata for commit in commits.values())


def without_metadata(commits: Commits) -> Commits:
    """Return commits that say only that they have metadata, where they have some, and not which."""
    if not has_metadata(commits):
        return commits
    return {
        place: commit._replace(metadata=UNREAD_METADATA) if commit.metadata else commit
        for place, commit in commits.items()
    }


def without_offset(commits: Commits) -> tuple[TopicPartition, ...]:
    """Return the partitions with a commit of -1, as far as the commits are as they were read."""
    return commits.without_offset if isinstance(commits, CommitTable) else ()


def has_epochs(commits: Commits) -> bool:
    """True if a commit has a leader epoch."""
    if isinstance(commits, CommitTable):
        return commits.has_epochs
    return any(commit.leader_epoch is not None for commit in commits.values())

"""A group's committed offsets as columns: what thousands of groups have committed is held in little memory. Pure.

Groups of one application have committed on the same partitions; these are held once. A commit is made when it is asked
for. The table is a mapping like any other, and equals the dictionary with the same commits.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from migrate.model import Commit, Commits, TopicPartition

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
    unless they are empty, which says that no commit has any. Raises `ValueError` if one has another length, or a
    partition comes twice.
    """

    __slots__ = ("_epochs", "_metadata", "_offsets", "_places")

    def __init__(
        self,
        partitions: Iterable[TopicPartition],
        offsets: Iterable[int],
        metadata: Sequence[str] = (),
        epochs: Sequence[int | None] = (),
    ) -> None:
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

    def offset(self, partition: TopicPartition) -> int | None:
        """Return what is committed on a partition; None for nothing."""
        at = self._places.at.get(partition)
        return None if at is None else self._offsets[at]

    def __getitem__(self, partition: TopicPartition) -> Commit:
        at = self._places.at[partition]
        epoch = self._epochs[at] if self._epochs else _NO_EPOCH
        metadata = self._metadata[at] if self._metadata else ""
        return Commit(self._offsets[at], metadata, None if epoch == _NO_EPOCH else epoch)

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
        return CommitTable, (self._places.partitions, self._offsets, self._metadata, self._epochs)


def offsets_at(commits: Commits, partitions: Iterable[TopicPartition]) -> list[int | None]:
    """Return what is committed on each of these partitions; None for nothing."""
    if isinstance(commits, CommitTable):
        return list(map(commits.offset, partitions))
    return [None if (commit := commits.get(partition)) is None else commit.offset for partition in partitions]


def has_metadata(commits: Commits) -> bool:
    """True if a commit has metadata."""
    if isinstance(commits, CommitTable):
        return commits.has_metadata
    return any(commit.metadata for commit in commits.values())

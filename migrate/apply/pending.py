"""A group's rows that are still to be written, by their partition on the target. Pure."""

from collections.abc import Collection, Iterator, Mapping

from migrate.commit_table import CommitTable
from migrate.model import UNACKNOWLEDGED, Decision, Row, TopicPartition
from migrate.row_table import GroupRows


class PendingRows(Mapping[TopicPartition, Row]):
    """Rows of one group, one at least, as columns; a row is made when somebody looks at it, and not kept."""

    __slots__ = ("_table",)

    def __init__(self, rows: Collection[Row]) -> None:
        self._table = GroupRows.of(rows)

    def planned(self) -> dict[TopicPartition, int | None]:
        """Return the offset that each partition shall have committed; None for nothing."""
        return dict(zip(self._table.target_partitions(), self._table.whole("target_offset"), strict=True))

    def commits(self) -> CommitTable:
        """Return what is to be committed, without the partitions that shall have nothing."""
        partitions, offsets = self._table.target_partitions(), self._table.column("target_offset")
        has_metadata = any(self._table.column("target_metadata"))
        if None not in offsets:
            metadata = tuple(self._table.whole("target_metadata")) if has_metadata else ()
            return CommitTable(partitions, self._table.whole("target_offset"), metadata)
        places = zip(partitions, self._table.values("target_offset", "target_metadata"), strict=True)
        kept = [(partition, *commit) for partition, commit in places if commit[0] is not None]
        return CommitTable(*map(list, zip(*kept, strict=True))) if kept else CommitTable((), ())

    def removals(self) -> "PendingRows | None":
        """Return the rows that take an offset away; None if there is none."""
        decisions = set(self._table.column("decision"))
        if Decision.REMOVE not in decisions:
            return None
        if len(decisions) == 1:
            return self
        return PendingRows([row for row in self._table if row.decision is Decision.REMOVE])

    @property
    def need_acknowledgement(self) -> bool:
        """True if only the cluster's own answer says that one of these rows is done."""
        return UNACKNOWLEDGED in self._table.column("reason")

    def by_partition(self) -> dict[TopicPartition, Row]:
        """Return all rows, made now."""
        return dict(zip(self, self._table, strict=True))

    def __getitem__(self, partition: TopicPartition) -> Row:
        try:
            return self._table[self._table.target_partitions().index(partition)]
        except ValueError:
            raise KeyError(partition) from None

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._table.target_partitions())

    def __len__(self) -> int:
        return len(self._table)

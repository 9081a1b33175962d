"""Rows as columns: one table for each group, in the plan file, under the fingerprint and in memory. Pure.

The plan file stores the tables, and the fingerprint covers them (`migrate.plan.plan.fingerprint`):

    {"group": "billing", "partition": [0, 1, 2], "source_topic": ["orders"], "target_offset": [60, 61, 7], ...}

Every field but `group` is a column. Item n of a column is row n's, in the plan's order; a single item stands for all
rows where they agree. `partition` always has an item per row, so it says how many rows there are. Rows of a group agree
in most fields, and what is stored once is read, checked and held once: that is what makes large plans quick to open.
"""

from abc import abstractmethod
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import accumulate, chain, groupby, repeat
from operator import attrgetter, eq
from typing import Any, overload

from migrate.model import Decision, Grade, Method, Row, TopicPartition, partitions_of

ROW_FIELDS: tuple[str, ...] = Row._fields
GROUP, ROW_COUNTING = "group", "partition"

_CODES: dict[str, type[StrEnum]] = {"decision": Decision, "method": Method, "grade": Grade}
_PLACES = {name: place for place, name in enumerate(ROW_FIELDS)}

# Texts and columns that occur more than once are held once.
Known = MutableMapping[Hashable, Any]


def row_document(row: Row) -> dict[str, Any]:
    """Return a row as plain values, keyed by its fields: what `show --format json` prints."""
    document = row._asdict()
    for name in _CODES:
        document[name] = None if document[name] is None else str(document[name])
    return document


class _MadeRows(Sequence[Row]):
    """Rows that are made when they are asked for, by their place."""

    __slots__ = ()

    @abstractmethod
    def _row(self, place: int) -> Row:
        """Return the row of a place, which is in range."""

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        places = range(len(self))[index]
        return self._row(places) if isinstance(places, int) else tuple(map(self._row, places))


class GroupRows(_MadeRows):
    """The rows of one group, held as columns: numbers in eight bytes each, and once what all rows share.

    Build it with `of_rows` or `of_table`.
    """

    __slots__ = ("_columns", "_count")

    def __init__(self, columns: Sequence[Sequence[Any]], known: Known) -> None:
        self._count = len(columns[_PLACES[ROW_COUNTING]])
        self._columns = tuple(_compact(name, column, known) for name, column in zip(ROW_FIELDS, columns, strict=True))

    @classmethod
    def of(cls, rows: Collection[Row]) -> "GroupRows":
        """Return rows, one at least, all of one group, as a table; one that is a table already is returned as it is."""
        return rows if isinstance(rows, cls) else cls.of_rows(rows)

    @classmethod
    def of_rows(cls, rows: Iterable[Row], known: Known | None = None) -> "GroupRows":
        """Return rows, one at least, all of one group."""
        return cls(tuple(zip(*rows, strict=True)), {} if known is None else known)

    @classmethod
    def of_table(cls, table: Mapping[str, Any], known: Known) -> "GroupRows":
        """Return the rows of a table.

        Raises ValueError for a table that lacks a column or rows, has a column too many, or has one of another length
        or with a code that is not known here, and TypeError for a column that is none, or a group that is no text.
        """
        if not isinstance(table.get(GROUP), str):
            raise TypeError("the name of a group must be text")
        if others := set(table) ^ set(ROW_FIELDS):
            raise ValueError(f"the columns of a group are not those of a plan: {sorted(others)}")
        count = len(table[ROW_COUNTING])
        columns = [[table[GROUP]] if name == GROUP else table[name] for name in ROW_FIELDS]
        for name, column in zip(ROW_FIELDS, columns, strict=True):
            # Rows beyond a shorter column would be gone without a word.
            if not count or len(column) not in (1, count):
                raise ValueError(f"{len(column)} items of {name} for {count} rows")
            if codes := _CODES.get(name):
                columns[_PLACES[name]] = [None if item is None else codes(item) for item in column]
        return cls(columns, known)

    @property
    def group(self) -> str:
        """The group."""
        return self._columns[0][0]  # type: ignore[no-any-return]

    @property
    def group_on_target(self) -> str:
        """What the group is called on the target."""
        return self.column("target_group")[0] or self.group

    def column(self, name: str) -> Sequence[Any]:
        """Return a field of all rows, in their order; a single item where they agree in it."""
        return self._columns[_PLACES[name]]

    def whole(self, name: str) -> Iterable[Any]:
        """Return a field of all rows, in their order, with an item for each."""
        return self._whole(self._columns[_PLACES[name]])

    def values(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield some fields of every row."""
        return zip(*map(self.whole, names), strict=True)

    def where(self, name: str, holds: Callable[[Any], bool]) -> Sequence[Row]:
        """Return the rows of which a field is as asked, in their order; this table where all are."""
        column = self.column(name)
        places = [place for place, item in enumerate(column) if holds(item)]
        if len(places) == len(column):
            return self
        return [self[place] for place in places]

    def source_partitions(self) -> Sequence[TopicPartition]:
        """Return the partition of every row on the source."""
        return partitions_of(tuple(self.column("source_topic")), tuple(self.column("partition")))

    def target_partitions(self) -> Sequence[TopicPartition]:
        """Return the partition of every row on the target."""
        return partitions_of(tuple(self.column("target_topic")), tuple(self.column("partition")))

    def document(self) -> dict[str, Any]:
        """Return the table as plain values."""
        mine = zip(ROW_FIELDS, self._columns, strict=True)
        return {**{name: list(column) for name, column in mine}, GROUP: self.group}

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        # What `Row._make` does, without a call of Python's own for each row.
        return map(partial(tuple.__new__, Row), zip(*map(self._whole, self._columns), strict=True))

    def _row(self, place: int) -> Row:
        return Row._make(column[place if len(column) > 1 else 0] for column in self._columns)

    def _whole(self, column: Sequence[Any]) -> Iterable[Any]:
        return column if len(column) == self._count else repeat(column[0], self._count)


class PlanRows(_MadeRows):
    """The rows of a plan, in its order, as one table for each group. Raises ValueError if a group has two."""

    def __init__(self, tables: Iterable[GroupRows]) -> None:
        self._by_group: dict[str, GroupRows] = {}
        for table in tables:
            if table is not self._by_group.setdefault(table.group, table):
                raise ValueError(f"the rows of group {table.group!r} do not follow each other")
        self._tables = list(self._by_group.values())
        self._ends = list(accumulate(map(len, self._tables)))

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "PlanRows":
        """Return rows that are sorted by group, each group's taken in as a table at once."""
        if isinstance(rows, cls):
            return rows
        known: Known = {}
        return cls(GroupRows.of_rows(of_group, known) for _, of_group in groupby(rows, attrgetter(GROUP)))

    def groups(self) -> Mapping[str, GroupRows]:
        """Return the rows by group, in the plan's order."""
        return self._by_group

    def renamed(self) -> dict[str, str]:
        """Return what groups are called on the target, of those that have another name there."""
        every = ((group, table.group_on_target) for group, table in self._by_group.items())
        return {group: target for group, target in every if target != group}

    def tally(self, name: str) -> "Counter[Any]":
        """Count the rows by one of their fields."""
        counts: Counter[Any] = Counter()
        for table in self._by_group.values():
            column = table.column(name)
            if len(column) == 1:
                counts[column[0]] += len(table)
            else:
                counts.update(column)
        return counts

    def values(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield some fields of every row: what a row need not be made for."""
        return chain.from_iterable(table.values(*names) for table in self._by_group.values())

    def where(self, name: str, holds: Callable[[Any], bool]) -> Iterator[Row]:
        """Yield the rows of which a field is as asked, in their order; no other row is made."""
        return chain.from_iterable(table.where(name, holds) for table in self._by_group.values())

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._by_group.values())

    def _row(self, place: int) -> Row:
        table = bisect_right(self._ends, place)
        return self._tables[table][place - (self._ends[table - 1] if table else 0)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (PlanRows, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PlanRows({len(self)} rows of {len(self._by_group)} groups)"


def _compact(name: str, column: Sequence[Any], known: Known) -> Sequence[Any]:
    """Return a column with a single item where all agree, else with numbers packed; equal columns are one object."""
    first = column[0]
    if name != ROW_COUNTING and (len(column) == 1 or column.count(first) == len(column)):
        column = (first,)
    elif isinstance(column, array) or set(map(type, column)) == {int}:
        return _known(array("q", column), known)
    if name in _CODES:
        # Not shared: "set" the reason equals Decision.SET, and would take its place.
        return tuple(column)
    return _known(tuple(column), known)


def _known(column: Sequence[Any], known: Known) -> Sequence[Any]:
    """Return the column that is held already and equals a packed one; else this one, which is held from now on."""
    if isinstance(column, array):
        shared = known.setdefault(hash(column.tobytes()), column)
        return shared if isinstance(shared, array) and shared == column else column
    texts = tuple([known.setdefault(item, item) if isinstance(item, str) else item for item in column])
    return known.setdefault(texts, texts)  # type: ignore[no-any-return]


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

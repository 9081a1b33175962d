"""Rows as plain values: a document for each row, or a table of columns for each group. Pure.

The plan file stores the tables, and the fingerprint covers them (`migrate.plan.plan.fingerprint`):

    {"group": "billing", "partition": [0, 1, 2], "source_topic": ["orders"], "target_offset": [60, 61, 7], ...}

Every field but `group` is a column. Item n of a column is row n's, in the plan's order; a single item stands for all
rows where they agree. `partition` always has an item per row, so it says how many rows there are. Rows of a group agree
in most fields, and what is stored once is read, checked and held once: that is what makes large plans quick to open.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any

from migrate.model import Decision, Grade, Method, Row

ROW_FIELDS: tuple[str, ...] = Row._fields
GROUP, ROW_COUNTING = "group", "partition"

_CODES: dict[str, type[StrEnum]] = {"decision": Decision, "method": Method, "grade": Grade}


def row_document(row: Row) -> dict[str, Any]:
    """Return a row as plain values, keyed by its fields: what `show --format json` prints."""
    document = row._asdict()
    for name in _CODES:
        document[name] = None if document[name] is None else str(document[name])
    return document


def tables_of(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield one table for each group's rows, in the order of the rows, which are sorted by group."""
    for group, of_group in groupby(rows, attrgetter(GROUP)):
        named = zip(ROW_FIELDS, zip(*of_group, strict=True), strict=True)
        yield {name: group if name == GROUP else _shortened(name, column) for name, column in named}


def rows_of(table: Mapping[str, Any], known: MutableMapping[str, str]) -> Iterator[Row]:
    """Yield the rows of a table. Equal texts become one object, by way of `known`, which the tables of a plan share.

    Raises ValueError for a table that lacks a column, has one too many, or has one of another length or with a code
    that is not known here, and TypeError for a column that is none.
    """
    if set(table) != set(ROW_FIELDS):
        raise ValueError(f"the columns of a group are not those of a plan: {sorted(set(table) ^ set(ROW_FIELDS))}")
    count = len(table[ROW_COUNTING])
    columns = ([table[GROUP]] if name == GROUP else table[name] for name in ROW_FIELDS)
    # Strict: rows beyond a shorter column would be gone without a word.
    whole = (_whole(name, column, count, known) for name, column in zip(ROW_FIELDS, columns, strict=True))
    return map(Row._make, zip(*whole, strict=True))


def _shortened(name: str, column: tuple[Any, ...]) -> list[Any]:
    alike = name != ROW_COUNTING and column.count(column[0]) == len(column)
    return [column[0]] if alike else list(column)


def _whole(name: str, column: list[Any], count: int, known: MutableMapping[str, str]) -> list[Any]:
    """Return a column with an item for every row, its texts shared and its codes as words of the model."""
    codes = _CODES.get(name)
    if codes is not None:
        column = [None if item is None else codes(item) for item in column]
    else:
        column = [known.setdefault(item, item) if isinstance(item, str) else item for item in column]
    return column * count if name != ROW_COUNTING and len(column) == 1 else column

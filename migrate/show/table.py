"""A table in every form: columns of text for people, CSV for spreadsheets, JSON in lines. Pure.

What a cluster did not let us see is a `Failure`: "?" in text, "not-visible" in CSV, null in JSON, and never a number.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from operator import attrgetter
from typing import Any, Generic, TypeVar

from migrate.model import Failure
from migrate.show.lines import wrapped
from migrate.text import FORMULA_STARTS, Colour, cells, paint, safe

Value = str | int | float | None
_LINE_END = "\r\n"
NOT_VISIBLE = "not-visible"


def harmless(text: str) -> str:
    """Return text that no spreadsheet runs and no terminal obeys."""
    shown = safe(text)
    return f"'{shown}" if text.lstrip(" ").startswith(FORMULA_STARTS) else shown


def csv_line(values: Iterable[Value]) -> str:
    """Return one line without its end, quoted by the csv module; a quoted line feed inside a name stays."""
    buffer = StringIO()
    # Python 3.11 quotes a line end inside a name only if it is part of the lines' own.
    csv.writer(buffer, lineterminator=_LINE_END).writerow(values)
    return buffer.getvalue().removesuffix(_LINE_END)


def csv_cell(value: Any) -> Value:
    """Return the cell of a value: empty for nothing, a word for what is not visible, a list with blanks between."""
    if isinstance(value, Failure):
        return NOT_VISIBLE
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, (int, float)):
        return value
    return harmless(" ".join(map(str, value)) if isinstance(value, tuple) else str(value))


INDENT = "  "
UNSEEN = "?"

R = TypeVar("R")


def shown(value: Any) -> str:
    """Return a value as text: "?" for what is not visible, "-" for nothing."""
    return UNSEEN if isinstance(value, Failure) else "-" if value is None else safe(str(value)) or "-"


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """A column of a table whose rows are of type R.

    `heading` is its name in text, None where text does not have it; `key` that in CSV and JSON, "" where these do not
    have it. `text` makes the cell of a value in text.
    """

    heading: str | None
    value: Callable[[R], Any]
    text: Callable[[Any], str] = shown
    right: bool = False
    key: str = ""

    def cell(self, row: R) -> str:
        """Return the value of a row as text."""
        return self.text(self.value(row))


def field(
    name: str, heading: str | None = None, text: Callable[[Any], str] = shown, right: bool = False
) -> Column[Any]:
    """Return the column of a row's attribute, whose name is that in CSV and JSON."""
    return Column(heading, attrgetter(name), text, right, name)


@dataclass(frozen=True)
class Table(Generic[R]):
    """Columns and rows; and for text how wide the page is, what lines begin with, the blanks between columns.

    `narrow` are the columns of a page that is too narrow for all of them.
    """

    columns: Sequence[Column[R]]
    rows: Sequence[R]
    width: int = 80
    indent: str = ""
    gap: int = 2
    narrow: Sequence[Column[R]] = ()

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each row; nothing is an empty cell, a list its items with blanks between."""
        columns = [column for column in self.columns if column.key]
        yield csv_line(column.key for column in columns)
        for row in self.rows:
            yield csv_line(csv_cell(column.value(row)) for column in columns)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each row by their keys; None is nothing, and what is not visible."""
        columns = [column for column in self.columns if column.key]
        for row in self.rows:
            values = {column.key: column.value(row) for column in columns}
            yield {key: None if isinstance(value, Failure) else value for key, value in values.items()}

    @property
    def fits(self) -> bool:
        """True if no line is wider than the page."""
        return self._total(self._layout[0]) <= self.width

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings on one line, or two where the page is narrow: LOG-END-OFFSET becomes LOG-END- above OFFSET."""
        return self._layout[1]

    def line(self, row: R) -> str:
        """Return a row as one line, without blanks at its end."""
        return self._joined(self._cells(row), self._layout[0])

    def lines(
        self,
        colour: bool,
        shade: Callable[[R], Colour | None] = lambda _: None,
        above: Callable[[R], str] = lambda _: "",
        below: Callable[[R], Iterable[str]] = lambda _: (),
        part: Iterable[R] | None = None,
    ) -> Iterator[str]:
        """Yield the headings and the rows, those in the colour of `shade`; `below` follows every row.

        With `part` only these of the rows, in the columns of all: parts of one table line up on a page. What `above`
        says of a row is printed where it is another than of the row before: what `narrow` leaves out.
        """
        if self.narrow and not self.fits:
            yield from Table(self.narrow, self.rows, self.width, INDENT).lines(colour, shade, above, below, part)
            return
        yield from (paint(heading, Colour.DIM, colour) for heading in self.headings)
        title = ""
        for row in self.rows if part is None else part:
            if not self.narrow and (other := above(row)) != title:
                title = other
                yield from wrapped(title, self.width, "", self.indent * 2, Colour.BOLD if colour else None)
            tone = shade(row)
            yield paint(self.line(row), tone, colour) if tone else self.line(row)
            yield from below(row)

    @cached_property
    def _text_columns(self) -> Sequence[Column[R]]:
        return [column for column in self.columns if column.heading is not None]

    def _cells(self, row: R) -> list[str]:
        return [column.cell(row) for column in self._text_columns]

    @cached_property
    def _layout(self) -> tuple[Sequence[int], tuple[str, ...]]:
        """The width of each column and the headings, which are broken if that alone makes lines fit."""
        widest = [0] * len(self._text_columns)
        for row in self.rows:
            widest = list(map(max, widest, map(cells, self._cells(row))))
        names = [column.heading or "" for column in self._text_columns]
        for lines in ([names], list(zip(*map(_broken, names), strict=True))):
            widths = [max(width, *map(cells, words)) for width, *words in zip(widest, *lines, strict=True)]
            if self._total(widths) <= self.width:
                break
        return widths, tuple(heading for line in lines if (heading := self._joined(line, widths)))

    def _total(self, widths: Sequence[int]) -> int:
        return len(self.indent) + sum(widths) + self.gap * (len(widths) - 1)

    def _joined(self, texts: Sequence[str], widths: Sequence[int]) -> str:
        padded = []
        for column, text, width in zip(self._text_columns, texts, widths, strict=True):
            blanks = " " * (width - cells(text))
            padded.append(blanks + text if column.right else text + blanks)
        return (self.indent + (" " * self.gap).join(padded)).rstrip()


def _broken(heading: str) -> tuple[str, str]:
    before, hyphen, last = heading.rpartition("-")
    return before + hyphen, last


def document_lines(values: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the document, which has the values first and then the lists, at least one; all of it is ASCII."""
    yield "{"
    for key, value in values.items():
        yield f'"{key}": {json.dumps(value)},'
    for count, (key, entries) in enumerate(lists.items(), start=1):
        yield f'"{key}": ['
        waiting = ""
        for entry in entries:
            if waiting:
                yield waiting + ","
            waiting = json.dumps(entry)
        if waiting:
            yield waiting
        yield "]" if count == len(lists) else "],"
    yield "}"


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return these fields of a value, in this order."""
    return {name: getattr(value, name) for name in names}

"""Lines of CSV, and cells that no spreadsheet runs and no terminal obeys, for every table in that form. Pure."""

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

from migrate.model import Failure
from migrate.text import FORMULA_STARTS, safe

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

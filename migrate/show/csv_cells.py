"""Lines of CSV, and cells that no spreadsheet runs and no terminal obeys, for every table in that form. Pure."""

import csv
from collections.abc import Iterable
from io import StringIO

from migrate.text import FORMULA_STARTS, safe

Value = str | int | float | None
_LINE_END = "\r\n"


def harmless(value: Value) -> Value:
    """Return a cell that no spreadsheet runs and no terminal obeys."""
    if not isinstance(value, str):
        return value
    shown = safe(value)
    return f"'{shown}" if value.lstrip(" ").startswith(FORMULA_STARTS) else shown


def csv_line(values: Iterable[Value]) -> str:
    """Return one line without its end, quoted by the csv module; a quoted line feed inside a name stays."""
    buffer = StringIO()
    # Python 3.11 quotes a line end inside a name only if it is part of the lines' own.
    csv.writer(buffer, lineterminator=_LINE_END).writerow(values)
    return buffer.getvalue().removesuffix(_LINE_END)

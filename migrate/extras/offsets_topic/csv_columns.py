"""Rows as lines of CSV, by SQL: RFC 4180, and no text in them that a spreadsheet runs or a terminal obeys.

Names, client ids and metadata are other people's text. As in all CSV of this tool (`migrate.show.table.harmless`)
what is not plainly visible is escaped, and an apostrophe stands before what a spreadsheet would take for a formula.
"""

from typing import TYPE_CHECKING

from migrate.text import FORMULA_STARTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Without the last two Spark takes blanks off the ends of names.
_CSV = (
    "map('escape', '\"', 'emptyValue', '\"\"', 'ignoreLeadingWhiteSpace', 'false', 'ignoreTrailingWhiteSpace', 'false')"
)
# Java's regular expressions, in SQL's quotes. What Python does not print is in these two classes, but for the space.
_UNSEEN = r"'[\\p{C}\\p{Z}&&[^ ]]'"
_FORMULA = "'^ *[" + "".join(rf"\\u{ord(start):04x}" for start in FORMULA_STARTS) + "]'"
_NAMED = " ".join(rf"when {ord(sign)} then '\\{letter}'" for sign, letter in (("\t", "t"), ("\n", "n"), ("\r", "r")))
_HEX = "lower(hex(ascii(c)))"
_ESCAPED = (
    rf"case ascii(c) {_NAMED} else case when ascii(c) < 256 then concat('\\x', lpad({_HEX}, 2, '0'))"
    rf" when ascii(c) < 65536 then concat('\\u', lpad({_HEX}, 4, '0')) else concat('\\U', lpad({_HEX}, 8, '0')) end end"
)
# JSON has escapes of its own, which say the same; the option leaves out DEL.
_JSON = "map('ignoreNullFields', 'false', 'writeNonAsciiCharacterAsCodePoint', 'true')"


def csv_rows(table: "DataFrame") -> "DataFrame":
    """Return one column `line` of CSV rows, in the table's order.

    Numbers stay numbers, NULL is an empty cell, lists are JSON.
    """
    cells = ", ".join(f"'{name}', {_cell(f'`{name}`', kind)}" for name, kind in table.dtypes)
    return table.selectExpr(f"to_csv(named_struct({cells}), {_CSV}) as line")


def _cell(column: str, kind: str) -> str:
    if kind == "string":
        shown = f"transform(split({column}, ''), c -> if(c rlike {_UNSEEN}, {_ESCAPED}, c))"
        shown = f"if({column} rlike {_UNSEEN}, array_join({shown}, ''), {column})"
        return f"if({column} rlike {_FORMULA}, concat('\\'', {shown}), {shown})"
    if kind.startswith("array"):
        return rf"replace(to_json({column}, {_JSON}), chr(127), '\\u007f')"
    return column

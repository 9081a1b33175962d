"""Lines of CSV that Spark writes are those that Python would write of the same table."""

import csv
import json
import unicodedata

from migrate.extras.offsets_topic.csv_columns import csv_rows
from migrate.show.table import harmless
from migrate.text import FORMULA_STARTS


def cells(spark, texts):
    """Each text as a cell, in order."""
    frame = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "number int, text string")
    rows = csv.reader(row.line for row in csv_rows(frame.coalesce(1)).collect())
    return [text for _, text in rows]


def test_each_character_is_escaped_where_python_escapes_it(spark):
    # Java and Python may know different years of Unicode: only what both have known for long can be compared.
    known = [chr(n) for n in range(0x3100) if unicodedata.ucd_3_2_0.category(chr(n)) != "Cn"]
    # A row for each would take a while: a blank of two kinds tells where one ends.
    texts = [" x ".join(known[at : at + 50]) for at in range(0, len(known), 50)]
    texts += ["\ue000\ufeff\U000e0001\U000f0000\U0010fffd😀", "\\x1b", "\x1b[2J"]
    assert cells(spark, texts) == list(map(harmless, texts))


def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it(spark):
    formulas = [f"{before}{start}1" for before in ("", "  ") for start in FORMULA_STARTS]
    found = cells(spark, [*formulas, "'1", "x=1"])
    assert found == list(map(harmless, [*formulas, "'1", "x=1"]))
    assert all(text.startswith("'") for text in found[: len(formulas)])


def test_numbers_stay_numbers_none_is_an_empty_cell_and_lists_are_json_without_control_characters(spark):
    text = "\x7f\u202e\x1b=é"
    shape = "number int, none string, empty string, is_so boolean, members array<struct<id: string>>"
    (row,) = csv_rows(spark.createDataFrame([(-5, None, "", True, [(text,)])], shape)).collect()
    ((*others, cell),) = csv.reader([row.line])
    assert others == ["-5", "", "", "true"] and row.line.startswith('-5,,"",true,')
    assert cell.isprintable() and json.loads(cell) == [{"id": text}]

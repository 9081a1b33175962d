"""Lines of CSV that Spark writes are those that Python would write of the same table."""

import csv
import json
import unicodedata

import pytest

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


@pytest.mark.parametrize("before", ["", "  "])
def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it(spark, before):
    texts = [f"{before}{start}1" for start in (*FORMULA_STARTS, "'", "x=")]
    assert cells(spark, texts) == list(map(harmless, texts))
    assert all(text.startswith("'") for text in cells(spark, texts[: len(FORMULA_STARTS)]))


def test_numbers_stay_numbers_and_what_is_not_there_is_an_empty_cell(spark):
    frame = spark.createDataFrame([(-5, None, "", True)], "number int, none string, empty string, is_so boolean")
    assert [row.line for row in csv_rows(frame).collect()] == ['-5,,"",true']


def test_lists_are_json_that_says_the_same_and_has_no_control_character(spark):
    text = "\x7f\u202e\x1b=é"
    (row,) = csv_rows(spark.createDataFrame([([(text,)],)], "members array<struct<id: string>>")).collect()
    ((cell,),) = csv.reader([row.line])
    assert cell.isprintable() and json.loads(cell) == [{"id": text}]

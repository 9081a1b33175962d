"""Cells of CSV: what was written is read again, and nothing in a name runs or moves a cursor."""

import csv
from io import StringIO

import pytest

from migrate.model import Failure
from migrate.show.table import csv_cell, csv_line, harmless


def test_a_line_has_no_end_and_reads_as_the_values_that_it_was_made_of():
    values = ["a,b", 'say "hi"', "two\nlines", "", 7]
    line = csv_line(values)
    assert not line.endswith(("\r", "\n"))
    assert next(csv.reader(StringIO(line, newline=""))) == [str(value) for value in values]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert harmless(text) == f"'{text}"


def test_numbers_and_nothing_stay_as_they_are_and_an_escape_is_shown():
    assert csv_cell(-5) == -5 and csv_cell(5.2) == 5.2 and csv_cell(None) is None
    assert csv_cell("orders") == "orders" and "\x1b" not in str(csv_cell("a\x1b[2J"))


def test_what_is_not_visible_is_a_word_and_no_number_and_a_list_is_one_cell():
    assert csv_cell(Failure("DENIED", "no")) == "not-visible"
    assert csv_cell(("a", "b")) == "a b" and csv_cell(("=1",)) == "'=1" and csv_cell(True) == "true"

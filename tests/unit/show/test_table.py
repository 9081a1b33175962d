"""A table in its three forms: the same values, nothing in a name runs or moves a cursor, and no number is invented."""

import csv
import json
from io import StringIO
from itertools import islice
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import Failure
from migrate.show.table import INDENT, Column, Table, csv_cell, csv_line, document_lines, field, harmless
from migrate.text import Colour, cells

UNSEEN = Failure("DENIED", "not authorized")


class Lag(NamedTuple):
    topic: str
    end: int | Failure
    lag: int | None = None
    tags: tuple[str, ...] = ()
    is_done: bool = False


END = field("end", "LOG-END-OFFSET", right=True)
COLUMNS = (
    field("topic", "TOPIC"), END, field("lag", "LAG", right=True), field("tags"), field("is_done"),
    Column("TOPIC-AND-LAG", lambda row: f"{row.topic}:{row.lag}"),
)  # fmt: skip
ROWS = (Lag("orders", 1234, 12, ("a", "b"), True), Lag("注文", UNSEEN))
topics = st.text("abc注é", min_size=1, max_size=12)
rows = st.lists(st.builds(Lag, topics, st.integers(-9, 10**9), st.none() | st.integers(0, 9)), min_size=1, max_size=20)


def test_text_has_a_question_mark_for_what_is_not_visible_and_a_hyphen_for_nothing():
    heading, first, second = Table(COLUMNS, ROWS, 80).lines(colour=False)
    assert heading.split() == ["TOPIC", "LOG-END-OFFSET", "LAG", "TOPIC-AND-LAG"]
    assert first.split() == ["orders", "1234", "12", "orders:12"] and second.split()[1:3] == ["?", "-"]


def test_csv_has_a_word_for_what_is_not_visible_an_empty_cell_for_nothing_and_lists_in_one_cell():
    found = list(csv.DictReader(StringIO("\r\n".join(Table(COLUMNS, ROWS).csv()))))
    assert found == [
        {"topic": "orders", "end": "1234", "lag": "12", "tags": "a b", "is_done": "true"},
        {"topic": "注文", "end": "not-visible", "lag": "", "tags": "", "is_done": "false"},
    ]


def test_json_has_the_values_by_the_names_of_csv_and_null_for_what_is_not_visible():
    assert list(Table(COLUMNS, ROWS).documents()) == [
        {"topic": "orders", "end": 1234, "lag": 12, "tags": ("a", "b"), "is_done": True},
        {"topic": "注文", "end": None, "lag": None, "tags": (), "is_done": False},
    ]


def test_headings_are_broken_at_their_last_hyphen_only_where_that_makes_the_lines_fit():
    assert Table(COLUMNS[:3], ROWS, 27).headings == ("TOPIC   LOG-END-OFFSET  LAG",)
    assert Table(COLUMNS[:3], ROWS, 26).headings == ("        LOG-END-", "TOPIC     OFFSET  LAG")


@given(rows, st.integers(10, 60))
def test_a_table_fits_exactly_where_no_line_is_wider_than_the_page(found, width):
    table = Table(COLUMNS[:3], found, width, INDENT)
    assert table.fits == all(cells(line) <= width for line in table.lines(colour=False))


@given(rows)
def test_values_stand_under_their_heading_whatever_columns_their_letters_take(found):
    ends = {cells(line) for line in Table((COLUMNS[0], END), found, 80).lines(colour=False)}
    assert len(ends) == 1


def test_what_rows_have_in_common_is_printed_once_above_them_and_what_is_said_of_one_below_it():
    found = [Lag("a", 1), Lag("a", 2), Lag("b", 3)]
    lines = Table((END,), found, 80, INDENT).lines(
        False, above=lambda row: row.topic, below=lambda row: [f"    two of {row.topic}"] * (row.end == 2)
    )
    assert [line.strip() for line in lines] == ["LOG-END-OFFSET", "a", "1", "2", "two of a", "b", "3"]


def test_a_row_has_the_colour_that_it_deserves_and_none_where_there_is_no_colour():
    table = Table((END,), ROWS, 80)
    shaded = table.lines(True, lambda row: Colour.RED if row.end is UNSEEN else None)
    assert [line.startswith("\x1b[1;31m") for line in shaded] == [False, False, True]
    assert not any("\x1b" in line for line in table.lines(False, lambda _: Colour.RED))


# Cells of CSV, and JSON in lines.


def test_a_line_has_no_end_and_reads_as_the_values_that_it_was_made_of():
    values = ["a,b", 'say "hi"', "two\nlines", "", 7]
    line = csv_line(values)
    assert not line.endswith(("\r", "\n"))
    assert next(csv.reader(StringIO(line, newline=""))) == [str(value) for value in values]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1", "\t=1", "\r=1", "\uff1d1"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert harmless(text).startswith("'")


def test_numbers_and_nothing_stay_as_they_are_and_what_is_not_visible_is_a_word():
    assert [csv_cell(value) for value in (-5, 5.2, None, "orders")] == [-5, 5.2, None, "orders"]
    assert csv_cell(Failure("DENIED", "no")) == "not-visible"
    assert csv_cell(("a", "b")) == "a b" and csv_cell(("=1",)) == "'=1" and csv_cell(True) == "true"


@pytest.mark.parametrize("first", [[], [{"a": 1}], [{"a": 1}, {"a": "\u6ce8\n"}]])
def test_the_lines_are_the_document_with_an_entry_to_a_line(first):
    lines = list(document_lines({"count": 2}, {"first": first, "last": []}))
    assert json.loads("".join(lines)) == {"count": 2, "first": first, "last": []}
    assert len(lines) == 2 + 1 + 2 * 2 + len(first) and "\n".join(lines).isascii()


def test_entries_are_taken_when_their_lines_are():
    endless = ({"n": n} for n in iter(int, 1))
    assert list(islice(document_lines({}, {"rows": endless}), 3)) == ["{", '"rows": [', '{"n": 0},']

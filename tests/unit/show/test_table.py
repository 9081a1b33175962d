"""Lines and tables as text, CSV and JSON: nothing in a name runs or moves a cursor, no word or number is lost."""

import csv
import json
from io import StringIO
from itertools import islice
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import Failure
from migrate.show.lines import aligned, wrapped
from migrate.show.screen import fitting, screen_if
from migrate.show.table import INDENT, Column, Table, csv_cell, document_lines, field, harmless
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


def test_what_is_not_visible_and_what_is_nothing_has_a_form_of_its_own_in_text_csv_and_json():
    heading, first, second = Table(COLUMNS, ROWS, 80).lines(colour=False)
    assert heading.split() == ["TOPIC", "LOG-END-OFFSET", "LAG", "TOPIC-AND-LAG"]
    assert first.split() == ["orders", "1234", "12", "orders:12"] and second.split()[1:3] == ["?", "-"]
    assert list(csv.DictReader(StringIO("\r\n".join(Table(COLUMNS, ROWS).csv())))) == [
        {"topic": "orders", "end": "1234", "lag": "12", "tags": "a b", "is_done": "true"},
        {"topic": "注文", "end": "not-visible", "lag": "", "tags": "", "is_done": "false"},
    ]
    assert list(Table(COLUMNS, ROWS).documents()) == [
        {"topic": "orders", "end": 1234, "lag": 12, "tags": ("a", "b"), "is_done": True},
        {"topic": "注文", "end": None, "lag": None, "tags": (), "is_done": False},
    ]


def test_headings_are_broken_at_their_last_hyphen_only_where_that_makes_the_lines_fit():
    assert Table(COLUMNS[:3], ROWS, 27).headings == ("TOPIC   LOG-END-OFFSET  LAG",)
    assert Table(COLUMNS[:3], ROWS, 26).headings == ("        LOG-END-", "TOPIC     OFFSET  LAG")


def test_what_rows_have_in_common_stands_above_them_what_is_said_of_one_below_it_and_a_row_has_its_colour():
    found = [Lag("a", 1), Lag("a", 2), Lag("b", 3)]
    lines = Table((END,), found, 80, INDENT).lines(
        False, above=lambda row: row.topic, below=lambda row: [f"    two of {row.topic}"] * (row.end == 2)
    )
    assert [line.strip() for line in lines] == ["LOG-END-OFFSET", "a", "1", "2", "two of a", "b", "3"]
    table = Table((END,), ROWS, 80)
    shaded = table.lines(True, lambda row: Colour.RED if row.end is UNSEEN else None)
    assert [line.startswith("\x1b[1;31m") for line in shaded] == [False, False, True]
    assert not any("\x1b" in line for line in table.lines(False, lambda _: Colour.RED))


def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe_and_numbers_and_nothing_stay_as_they_are():
    for text in ("=1+1", "+1", "-1", "@x", " =1", "\t=1", "\r=1", "\uff1d1"):
        assert harmless(text).startswith("'"), text
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


words = st.lists(st.text("abc注é", min_size=1, max_size=9), min_size=1, max_size=30)


@given(words, st.integers(10, 60), st.sampled_from(["", "* "]))
def test_a_line_is_as_full_as_it_can_be_wider_only_for_one_word_and_no_word_is_lost(text, width, start):
    lines = [line[len(start) :] for line in wrapped(" ".join(text), width, start)]
    room = width - len(start)
    assert [word for line in lines for word in line.split()] == text
    assert all(cells(line) <= room or len(line.split()) == 1 for line in lines)
    for line, following in zip(lines, lines[1:], strict=False):
        assert cells(line) + 1 + cells(following.split()[0]) > room


def test_texts_stand_beside_their_labels():
    lines = list(aligned([("Plan", "one two three"), ("Settings", "x")], 18))
    assert lines == ["Plan      one two", "          three", "Settings  x"]


def test_ctrl_c_leaves_the_last_look_on_the_screen_and_an_end_clears_it_for_what_is_printed_then(capsys):
    with pytest.raises(KeyboardInterrupt), screen_if(True) as draw:
        assert draw is not None
        draw(["first"])
        draw(["NOT READY", "last"])
        raise KeyboardInterrupt
    assert capsys.readouterr().out.rpartition("\x1b[?1049l")[2] == "NOT READY\nlast\n"
    with screen_if(True) as draw:
        assert draw is not None
        draw(["READY"])
    assert capsys.readouterr().out.rpartition("\x1b[?1049l")[2] == ""


def test_a_screen_counts_what_wide_lines_take_of_its_height():
    red = "\x1b[1;31m" + "x" * 40 + "\x1b[0m"
    assert fitting([red] * 4, 40, 4) == [red] * 4
    wide = ["a", "y" * 81, "b", "c"]
    assert fitting(wide, 40, 6) == wide
    assert fitting(wide, 40, 5) == ["a", "y" * 81, "... 2 lines more: without --watch all ar"]
    assert fitting(["z" * 500], 40, 4) == ["... 1 line more: without --watch all are"]

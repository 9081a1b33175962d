"""Columns of text: aligned, within the width where words allow, and never cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.show.table import AT_ONCE, Column, aligned, columns, layout, wrapped
from migrate.text import cells

COLUMNS = [Column("TOPIC", 6, right=False), Column("LOG-END-OFFSET", 4), Column("LAG", 3)]
words = st.lists(st.text("abc注é", min_size=1, max_size=9), min_size=1, max_size=30)


def test_headings_stand_on_one_line_where_there_is_room():
    wide = layout(COLUMNS, [], 80)
    assert wide.headings == ("TOPIC   LOG-END-OFFSET  LAG",)
    assert wide.line(["orders", "1234", "12"]) == "orders            1234   12"


def test_headings_are_broken_at_their_last_hyphen_where_there_is_not():
    narrow = layout(COLUMNS, [], 24)
    assert narrow.headings == ("        LOG-END-", "TOPIC     OFFSET  LAG")
    assert narrow.width == 21


def test_columns_grow_with_their_values_and_not_with_the_page():
    assert layout([Column("LAG")], [["1"], ["123456789012"]], 80).width == 12


def test_wide_characters_are_aligned_by_the_columns_they_take():
    laid = layout([Column("TOPIC", right=False), Column("LAG")], [["orders", "123"], ["注文", "1"]], 80)
    assert laid.line(["注文", "1"]) == "注文      1"
    assert cells(laid.line(["注文", "1"])) == cells(laid.line(["orders", "1"]))


@given(words, st.integers(10, 60))
def test_wrapping_keeps_every_word_whole_and_in_order(text, width):
    lines = list(wrapped(" ".join(text), width, "* "))
    assert [word for line in lines for word in line[2:].split()] == text


@given(words, st.integers(12, 60))
def test_a_line_is_wider_than_the_page_only_if_one_word_is(text, width):
    for line in wrapped(" ".join(text), width, "* "):
        assert cells(line) <= width or len(line[2:].split()) == 1


@given(words, st.integers(20, 60))
def test_a_line_is_broken_only_where_the_next_word_would_not_fit(text, width):
    lines = list(wrapped(" ".join(text), width))
    for line, following in zip(lines, lines[1:], strict=False):
        assert cells(line) + 1 + cells(following.split()[0]) > width


def test_texts_stand_beside_their_labels():
    lines = list(aligned([("Plan", "one two three"), ("Settings", "x")], 18))
    assert lines == ["Plan      one two", "          three", "Settings  x"]


def test_a_column_is_as_wide_as_its_widest_value_however_many_rows_are_above_it():
    rows = ([text] for text in ["a"] * (2 * AT_ONCE) + ["注文 of late"])
    assert layout(columns("X"), rows, 80).width == cells("注文 of late")


def test_a_row_that_lacks_a_value_is_refused():
    with pytest.raises(ValueError):
        layout(columns("X", "Y"), [["a", "b"], ["a"]], 80)

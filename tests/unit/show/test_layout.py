"""Columns of text: aligned, and never cut."""

import pytest

from migrate.show.layout import AT_ONCE, Column, columns, layout
from migrate.text import cells

COLUMNS = [Column("TOPIC", 6, right=False), Column("LOG-END-OFFSET", 4), Column("LAG", 3)]


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


def test_a_column_is_as_wide_as_its_widest_value_however_many_rows_are_above_it():
    rows = ([text] for text in ["a"] * (2 * AT_ONCE) + ["注文 of late"])
    assert layout(columns("X"), rows, 80).width == cells("注文 of late")


def test_a_row_that_lacks_a_value_is_refused():
    with pytest.raises(ValueError):
        layout(columns("X", "Y"), [["a", "b"], ["a"]], 80)

"""A screen shows as many lines as it has room for, and says how many it leaves out."""

from migrate.show.screen import fitting


def test_a_screen_counts_what_wide_lines_take_of_its_height():
    red = "\x1b[1;31m" + "x" * 40 + "\x1b[0m"
    assert fitting([red] * 4, 40, 4) == [red] * 4
    wide = ["a", "y" * 81, "b", "c"]
    assert fitting(wide, 40, 6) == wide
    assert fitting(wide, 40, 5) == ["a", "y" * 81, "... 2 lines more: without --watch all ar"]
    assert fitting(["z" * 500], 40, 4) == ["... 1 line more: without --watch all are"]

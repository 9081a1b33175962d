"""A screen shows as many lines as it has room for, and says how many it leaves out."""

import pytest

from migrate.show.screen import fitting, screen_if


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

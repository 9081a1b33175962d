"""What a rollback cannot take back is counted, named up to a limit, and never silent."""

from migrate.apply.elsewhere import Elsewhere
from migrate.show.elsewhere import NAMED, elsewhere_lines
from tests.builders import make_row


def said(found):
    return "\n".join(elsewhere_lines(found, 100, False))


def test_nothing_found_says_nothing():
    assert said(Elsewhere()) == ""


def test_rows_beyond_the_limit_are_counted():
    told = said(Elsewhere(rows=tuple(make_row(f"g{i}") for i in range(NAMED + 3))))
    assert f"{NAMED + 3} offsets of {NAMED + 3} groups are as planned" in told and "and 3 more" in told


def test_groups_that_could_not_be_read_are_named_with_the_reason():
    told = said(Elsewhere(unread=("a", "b"), why="it timed out"))
    assert "NOT LOOKED AT: 2 groups" in told and "a, b: it timed out" in told

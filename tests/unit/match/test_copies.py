"""Copies of records that look alike are told apart by their neighbours, as far as a mirror's order allows."""

from array import array
from collections import Counter

import pytest

from migrate.match.copies import Runs


def runs(source: str, target: str) -> Runs:
    wanted = array("q", map(ord, source))
    return Runs(wanted, array("q", map(ord, target)), Counter(wanted))


@pytest.mark.parametrize(
    ("source", "target", "record", "place"),
    [
        ("axxb", "axxb", 1, 1),
        ("axxb", "axxb", 2, 2),
        # A replay that begins amid look-alikes is known from the record that ends them.
        ("axxxbc", "axxxb" + "xxbc", 3, 6),
        ("axxxbc", "axxxb" + "xxbc", 2, 5),
        ("axxxbc", "axxxb" + "xxbc", 1, 1),
        # One that was stopped amid them, from the record that began them.
        ("axxxbc", "axxxbc" + "axx", 2, 8),
        ("axxxbc", "axxxbc" + "axx", 3, 3),
    ],
)
def test_a_copy_that_one_run_alone_can_have_written_is_known(source, target, record, place):
    found = runs(source, target)
    assert found.last_copy(record) == place
    assert not found.is_doubtful(record)


def test_a_copy_that_both_runs_can_have_written_is_in_doubt_and_an_earlier_one_is_taken():
    # The third x is the end of the first run, or the beginning of the second: it began at 1 or at 2.
    found = runs("axxbxc", "axxb" + "x" + "xbxc")
    assert found.last_copy(1) == 1 and found.is_doubtful(1)


def test_what_others_wrote_ends_a_run_as_it_may_be_an_altered_copy():
    found = runs("axxxb", "ax?xb")
    assert [found.last_copy(n) for n in (1, 2, 3)] == [1, None, 3]

"""Two aligned sections answer what is missing, what is strange, what is there too often, and which twin is which."""

from array import array
from collections import Counter

import pytest

from migrate.match.alignment import Alignment
from migrate.match.copies import Premises, Runs
from migrate.match.partial_log import PartialLog, Section
from migrate.match.protocol import LogSlice
from migrate.model import LogRange, Side


def section(side: Side, records: str, keys: str = "") -> Section:
    """A whole log, one letter a record, from offset 0 on; a key in capitals is that of a tombstone."""
    log = PartialLog(side, LogRange(0, len(records)), 1_000)
    marks = [2 * ord(key.lower()) | key.isupper() for key in keys]
    offsets = range(len(records))
    log.add(LogSlice(0, len(records), 0, offsets, [1_000 + o for o in offsets], array("q", map(ord, records)), marks))
    return log.section(0, len(records))


def aligned(source: str, target: str, keys: str = "", **premises: bool) -> Alignment:
    return Alignment(section(Side.SOURCE, source, keys), section(Side.TARGET, target), Premises(**premises))


def test_no_last_copy_of_an_owed_record_is_below_the_lowest_and_one_copy_of_two_is_not_absent():
    replayed, once = aligned("abc", "abcbc"), aligned("abab", "ab")
    assert [replayed.lowest_copy(i) for i in range(4)] == [0, 3, 4, 5]
    assert (once.without_copy(0), once.absent(0), once.is_ambiguous(0)) == (2, 0, True)


@pytest.mark.parametrize(
    ("source", "target", "keys", "coming", "superseded"),
    [
        # A cleaner may have taken a tombstone, and a record whose key comes again.
        ("ab", "b", "kk", 2, 1),
        ("ab", "b", "kl", 2, 0),
        ("ab", "b", "Kl", 2, 1),
        # A record that is still to come has superseded none on the target, but as a tombstone that is gone.
        ("abc", "b", "klk", 2, 0),
        ("abc", "b", "klm", 2, 0),
        ("abc", "b", "klM", 2, 0),
        ("abc", "b", "klK", 2, 1),
        # One that an older run of MM2 has copied supersedes those of its key wherever MM2 is.
        ("abc", "bc", "klk", 2, 1),
    ],
)
def test_what_a_later_record_of_its_key_has_superseded_need_not_be_on_the_target(
    source, target, keys, coming, superseded
):
    assert aligned(source, target, keys).superseded(0, coming) == superseded


def test_the_target_holds_strangers_where_a_record_equals_none_of_the_source():
    window = aligned("ab", "axby")
    assert (window.unknown(0, 4), window.unknown(2, 3), window.last_known(0)) == (2, 0, 2)
    assert window.first_unknown(0, 4, lambda time: False) == 1
    assert window.first_unknown(0, 4, lambda time: time == 1_001) == 3


def test_after_a_replay_the_nearest_copy_below_is_the_first():
    assert aligned("ab", "ab").nearest_copy_below(0, 2) == 0
    assert aligned("ab", "abab").nearest_copy_below(0, 4) == 0
    assert aligned("ab", "ab").nearest_copy_below(1, 1) is None


def test_only_records_without_a_sure_copy_give_timestamps_to_search_the_target_for():
    assert aligned("abc", "abc").times_without_copy(0) == set()
    assert aligned("abc", "ac").times_without_copy(0) == {1_001}
    assert aligned("abc", "ac").times_without_copy(2) == set()


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

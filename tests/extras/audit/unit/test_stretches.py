"""Sums add up in any order and any parts; what is read again covers what differs."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.extras.audit.stretches import MOST_STRETCHES, Cut, Stretch, Sums, TopicSums, pieces, steps
from migrate.extras.audit.verdict import Category
from migrate.match.equality import Equality
from migrate.model import LogRange, Side

S = Stretch(0, 0)
RANGES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 9)), max_size=12)


def sums(*offsets):
    """The sums of records whose words follow from their offsets."""
    return Sums(len(offsets), tuple(sum(o * k for o in offsets) for k in (1, 3, 5, 7)), min(offsets), max(offsets))


def topic(source=(), target=()):
    """A topic with these records in one stretch."""
    held = TopicSums("t", "t", "", "", Cut(Equality.ALL))
    append(held, Side.SOURCE, *source)
    append(held, Side.TARGET, *target)
    return held


def append(held, side, *records):
    held.add(side, {}, {S: sums(*records)} if records else {})


def offsets(ranges):
    return {(p, o) for p, log in ranges for o in range(log.start, log.end)}


def test_sums_of_parts_are_the_sums_of_the_whole_and_tell_one_record_more_or_another():
    assert sums(1, 2).plus(sums(5)) == sums(1, 2, 5)
    assert not topic([1, 5], [5, 1]).differing()
    for source, target in ([1, 5], [1, 5, 5]), ([1, 5], [2, 5]), ([1], []), ([], [1]):
        assert topic(source, target).differing() == {S}


def test_what_a_target_is_known_to_have_beyond_its_source_makes_no_difference_until_something_else_does():
    held = topic([1, 2], [1, 2, 2])
    held.settle(S, {Category.COPIED_AGAIN: 1})
    assert held.differing() == set()
    append(held, Side.SOURCE, 7)
    assert held.differing() == {S}, "a record without a copy"
    append(held, Side.TARGET, 7)
    assert held.differing() == set(), "its copy came"
    append(held, Side.SOURCE, 8)
    append(held, Side.TARGET, 9)
    assert held.differing() == {S}, "as many, but others"


def test_a_topic_takes_what_is_new_and_knows_what_it_has():
    held, logs = topic(), {0: LogRange(2, 10), 1: LogRange(0, 0)}
    assert held.unread(Side.SOURCE, logs) == {0: LogRange(2, 10)}
    held.add(Side.SOURCE, {0: LogRange(2, 10)}, {S: sums(3, 9)})
    assert held.unread(Side.SOURCE, logs) == {} and held.differing() == {S}
    later = {0: LogRange(12, 15)}
    assert held.unread(Side.SOURCE, later) == {0: LogRange(12, 15)}, "what retention took in between is not read"
    held.add(Side.TARGET, {0: LogRange(0, 1)}, {S: sums(3)})
    held.add(Side.TARGET, {0: LogRange(1, 2)}, {S: sums(9)})
    assert held.differing() == set() and held.records(Side.TARGET, [S]) == {0: 2}
    assert [held.contradicts(Side.SOURCE, {0: LogRange(0, end)}) for end in (9, 10)] == [True, False]


@given(RANGES, st.integers(1, 30))
def test_steps_read_each_offset_once_and_never_more_than_allowed(some, most):
    logs = {p: LogRange(start, start + length) for p, start, length in some}
    read = [list(offsets(step.items())) for step in steps(logs, most)]
    assert sorted(sum(read, [])) == sorted(offsets(logs.items()))
    assert all(0 < len(each) <= most for each in read)


@given(RANGES, st.integers(1, 4))
def test_pieces_cover_all_that_is_asked_for_and_read_no_offset_twice(some, most):
    asked = [(p, LogRange(start, start + length)) for p, start, length in some]
    found = pieces(asked, most)
    read = [each for piece in found for p, log in piece.items() for each in offsets([(p, log)])]
    assert len(found) <= most and len(read) == len(set(read)) and offsets(asked) <= set(read)
    assert most < 4 or len({p for p, _ in asked}) != 1 or len(asked) > most or set(read) == offsets(asked)


@given(st.integers(0, 10**13), st.integers(1, 10**10), st.integers(40_000, 10**8))
def test_no_stretch_holds_both_ends_of_a_log(first, span, records):
    """Else one record that differs there would have the whole partition read again."""
    cut = Cut.of(Equality.ALL, records, [first, first + span])
    assert (first + span) // cut.width_ms - first // cut.width_ms < cut.stretches


def test_a_topic_is_cut_by_its_length_and_the_time_that_it_spans():
    assert Cut.of(Equality.ALL, 100, [5, 5_000]).stretches == 1
    long = Cut.of(Equality.ALL, 10**12, [0, 10**9])
    assert long.stretches == MOST_STRETCHES and long.width_ms * long.stretches > 10**9
    assert Cut.of(Equality.ALL, 10**6, []).width_ms > 0

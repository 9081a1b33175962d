"""Pairs of offsets as columns: they are what a tuple of pairs is, and a copy of them is a copy."""

import pickle
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.anchors import PairTable

OFFSETS = st.integers(0, 2**63 - 1)
PAIRS = st.lists(st.tuples(OFFSETS, OFFSETS), max_size=8).map(tuple)


@given(PAIRS, st.slices(8))
def test_it_holds_what_a_tuple_of_pairs_holds(pairs, part):
    table = PairTable.of(pairs)
    assert (tuple(table), len(table), bool(table)) == (pairs, len(pairs), bool(pairs))
    assert [table[at] for at in range(-len(pairs), len(pairs))] == [*pairs, *pairs]
    assert table[part] == pairs[part] and list(table.sources) == [source for source, _ in pairs]
    assert list(table.shifts) == [target - source for source, target in reversed(pairs)]
    assert tuple(pickle.loads(pickle.dumps(table))) == pairs


@given(PAIRS, st.integers(0, 8), st.tuples(OFFSETS, OFFSETS))
def test_a_pair_is_put_where_a_list_puts_it_and_only_into_the_copy(pairs, at, pair):
    first = PairTable.of(pairs)
    copy, expected = PairTable.of(first), list(pairs)
    copy.insert(at, pair)
    expected.insert(at, pair)
    assert list(copy) == expected and tuple(first) == pairs


def test_columns_of_different_lengths_are_refused_and_arrays_are_taken():
    assert tuple(PairTable(array("q", [1, 2]), [3, 4])) == ((1, 3), (2, 4))
    with pytest.raises(ValueError, match="differ in length"):
        PairTable([1], [])
    with pytest.raises(IndexError):
        PairTable([1], [2])[1]

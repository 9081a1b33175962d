"""A table of places is the dictionary that it was made of."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from migrate.match.place_table import PlaceTable
from migrate.match.protocol import Matched, Unmatched, Why, WhyUnmatched

OFFSETS = st.integers(0, 2**63 - 1)
PAIRS = st.none() | st.tuples(OFFSETS, OFFSETS)
MATCHED = st.builds(Matched, OFFSETS, st.sampled_from(Why), OFFSETS, OFFSETS, PAIRS, PAIRS)
UNMATCHED = st.builds(Unmatched, st.sampled_from(WhyUnmatched), st.none() | OFFSETS, PAIRS, error_code=st.text())


@given(st.dictionaries(st.integers(0, 50), MATCHED | UNMATCHED), st.integers(0, 50))
def test_a_table_holds_what_the_dictionary_held(places: dict[int, Matched | Unmatched], asked: int) -> None:
    table = PlaceTable.of(places)
    assert table == places and list(table.items()) == sorted(places.items()) and PlaceTable.of(table) is table
    assert pickle.loads(pickle.dumps(table)) == places
    assert table.get(asked) == places.get(asked) and (asked in table) == (asked in places)

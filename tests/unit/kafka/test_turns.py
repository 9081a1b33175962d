"""Calls of a size that is taken at once: nothing is lost, nothing is too large, and no turn names a key twice."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.kafka.read_pass import in_turns


@given(st.dictionaries(st.text("abc"), st.lists(st.integers())), st.integers(1, 5))
def test_turns_bring_every_value_once_in_the_order_of_its_key_and_name_a_key_once(asked, size):
    turns = [list(turn) for turn in in_turns(asked.items(), size)]
    assert {key: [v for turn in turns for k, v in turn if k == key] for key in asked} == asked
    assert all(len({key for key, _ in turn}) == len(turn) <= size for turn in turns)

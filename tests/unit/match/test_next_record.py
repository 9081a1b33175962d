"""A record as it may be shown: it tells two records apart, and nothing of a payload can be read in it."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.match.equality import Equality, Part
from migrate.match.next_record import SHOWN_DIGITS, next_record

SECRET = b"card 4711"
parts_strategy = st.tuples(
    st.integers(-1, 2**60),
    st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=3),
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=3),
)


@given(parts_strategy, parts_strategy)
def test_two_records_differ_in_exactly_the_parts_that_are_not_the_same(one, other) -> None:
    a, b = next_record(1, *one), next_record(2, *other)
    differing = {part for part, mine, theirs in zip(Part, one, other, strict=True) if mine != theirs}
    assert set(a.differing(b)) == differing
    for equality in Equality:
        parts = equality.parts
        assert (a.fingerprint(parts) == b.fingerprint(parts)) == (not differing & parts)


def test_nothing_of_a_payload_is_kept_but_the_size_of_key_and_value() -> None:
    shown = next_record(1, 1_700_000_000_000, b"key", SECRET, [("id", SECRET)])
    assert SECRET.decode() not in repr(shown) and not any(SECRET in digest for digest in shown.digests)
    assert shown.size == 12 and len(shown.fingerprint()) == SHOWN_DIGITS

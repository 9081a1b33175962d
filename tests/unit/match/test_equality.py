"""When two records count as one, and how a topic's anchors tell what is kept on the way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.equality import Content, Equality, calibrated, is_clear
from tests.prints import fingerprint

contents = st.builds(
    Content,
    st.integers(-1, 3),
    st.none() | st.binary(max_size=2),
    st.none() | st.binary(max_size=2),
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.binary(max_size=2)), max_size=2).map(tuple),
)


def parts(content: Content, equality: Equality) -> tuple[object, ...]:
    return {
        Equality.ALL: (content.timestamp, content.key, content.value, content.headers),
        Equality.WITHOUT_HEADERS: (content.timestamp, content.key, content.value),
        Equality.WITHOUT_TIMESTAMP: (content.key, content.value, content.headers),
        Equality.KEY_AND_VALUE: (content.key, content.value),
        Equality.TIME_AND_KEY: (content.timestamp, content.key),
    }[equality]


@given(contents, contents, st.sampled_from(Equality))
def test_fingerprints_agree_exactly_where_the_parts_do(one, other, equality):
    same = fingerprint(one, equality) == fingerprint(other, equality)
    assert same == (parts(one, equality) == parts(other, equality))


def test_null_is_not_empty_and_bytes_do_not_move_between_parts():
    odd = [
        Content(0, None, b"", ()),
        Content(0, b"", None, ()),
        Content(0, b"", b"", ()),
        Content(0, b"ab", b"c", ()),
        Content(0, b"a", b"bc", ()),
        Content(0, b"a", b"b", (("c", b""),)),
        Content(0, b"a", b"b", (("c", None),)),
        Content(0, b"a", b"b", (("", b"c"),)),
        Content(0, b"a", b"b", (("c", b""), ("c", b""))),
    ]
    assert len({fingerprint(content, Equality.ALL) for content in odd}) == len(odd)


def record(number: int, headers: bool = True) -> Content:
    return Content(1_000 + number, b"k%d" % (number % 3), b"v%d" % number, (("h", b"%d" % number),) if headers else ())


def shaped(content: Content, time: bool = True, value: bool = True, headers: bool = True) -> Content:
    """The copy of a record of which not all parts are kept."""
    return Content(
        content.timestamp if time else content.timestamp + 250,
        content.key,
        content.value if value else b"changed " + (content.value or b""),
        content.headers if headers else tuple((name, b'"' + (value or b"")) for name, value in content.headers),
    )


WAYS = [
    (Equality.ALL, {}),
    (Equality.WITHOUT_HEADERS, {"headers": False}),
    (Equality.WITHOUT_TIMESTAMP, {"time": False}),
    (Equality.KEY_AND_VALUE, {"time": False, "headers": False}),
    (Equality.TIME_AND_KEY, {"value": False}),
    (Equality.TIME_AND_KEY, {"value": False, "headers": False}),
]
EACH_WAY = pytest.mark.parametrize(("equality", "kept"), WAYS, ids=[" ".join(["keeps", *kept]) for _, kept in WAYS])


@EACH_WAY
def test_the_widest_equality_that_the_anchors_meet_is_found(equality, kept):
    assert calibrated([(record(n), shaped(record(n), **kept)) for n in range(4)]) is equality


@EACH_WAY
def test_a_stale_anchor_whose_records_look_alike_narrows_nothing(equality, kept):
    good = [(record(n), shaped(record(n), **kept)) for n in range(3)]
    # The same key and value at another time; headers that differ would speak for a converter that changes some.
    twin = Content(99, record(5).key, record(5).value, record(5).headers)
    assert calibrated([(record(5), shaped(twin, **kept)), *good]) is equality


def test_headers_that_are_changed_on_some_records_only_do_not_count():
    plain = [(record(n), record(n)) for n in range(12)]
    changed = [(record(n), shaped(record(n), headers=False)) for n in range(20, 24)]
    assert calibrated([*plain, *changed]) is Equality.WITHOUT_HEADERS
    assert calibrated([*plain, changed[0]]) is Equality.ALL


def test_headers_are_clear_where_enough_tell_and_none_differs_or_more_differ_than_by_chance():
    bare = [(record(n, headers=False),) * 2 for n in range(50)]
    plain = [(record(n), record(n)) for n in range(16)]
    changed = [(record(n), shaped(record(n), headers=False)) for n in range(20, 24)]
    assert is_clear(bare) and is_clear(bare + plain) and is_clear([*plain, *changed]) and is_clear([])
    assert not is_clear(bare + plain[:15]) and not is_clear([*plain, changed[0]])


def test_a_stale_anchor_of_records_from_one_millisecond_widens_nothing():
    def at_once(number: int) -> Content:
        return Content(7, None, b"v%d" % number, ())

    good = [(at_once(n), at_once(n)) for n in range(3)]
    stale = [(at_once(n), at_once(n + 10)) for n in range(2)]
    assert calibrated(stale + good) is Equality.ALL


def test_tombstones_which_no_transform_changes_do_not_hide_that_values_are_changed():
    tombstones = [(Content(n, b"k", None, ()),) * 2 for n in range(30)]
    changed = [(record(n), shaped(record(n), value=False)) for n in range(10)]
    assert calibrated(tombstones + changed) is Equality.TIME_AND_KEY


def test_a_few_changed_records_do_not_make_contents_worthless():
    changed = [(record(n), shaped(record(n), value=False)) for n in range(3)]
    kept = [(record(n), record(n)) for n in range(4)]
    assert calibrated(changed + kept) is Equality.ALL


def test_where_nothing_agrees_there_is_no_equality():
    assert calibrated([]) is None
    assert calibrated([(record(n), record(n + 100)) for n in range(5)]) is None
    assert calibrated([(record(1), shaped(record(1), time=False, value=False))]) is None


@given(st.lists(st.tuples(contents, contents), min_size=1, max_size=8))
def test_an_equality_is_found_only_if_an_anchor_meets_it_in_the_parts_that_it_needs(anchors):
    found = calibrated(anchors)
    weakest = [Equality.KEY_AND_VALUE, Equality.TIME_AND_KEY]
    if found is None:
        assert not any(parts(a, Equality.KEY_AND_VALUE) == parts(b, Equality.KEY_AND_VALUE) for a, b in anchors)
    else:
        assert any(parts(a, e) == parts(b, e) for a, b in anchors for e in weakest)

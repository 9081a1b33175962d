"""When two records count as one, how one may be shown, and how a topic's anchors tell what is kept on the way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.match.equality import Content, Equality, Part, calibrated, is_clear
from migrate.match.next_record import SHOWN_DIGITS, next_record
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
        *((key, value, ()) for key, value in ((None, b""), (b"", None), (b"", b""), (b"ab", b"c"), (b"a", b"bc"))),
        *((b"a", b"b", headers) for headers in ((("c", b""),), (("c", None),), (("", b"c"),), (("c", b""),) * 2)),
    ]
    assert len({fingerprint(Content(0, *parts), Equality.ALL) for parts in odd}) == len(odd)


@given(contents, contents)
def test_two_records_differ_in_exactly_the_parts_that_are_not_the_same(one, other):
    a, b = (next_record(i, c.timestamp, c.key, c.value, c.headers) for i, c in ((1, one), (2, other)))
    whole = parts(one, Equality.ALL), parts(other, Equality.ALL)
    differing = {part for part, mine, theirs in zip(Part, *whole, strict=True) if mine != theirs}
    assert set(a.differing(b)) == differing
    for equality in Equality:
        assert (a.fingerprint(equality.parts) == b.fingerprint(equality.parts)) == (not differing & equality.parts)


def test_nothing_of_a_payload_is_kept_but_the_size_of_key_and_value():
    secret = b"card 4711"
    shown = next_record(1, 1_700_000_000_000, b"key", secret, [("id", secret)])
    assert secret.decode() not in repr(shown) and not any(secret in digest for digest in shown.digests)
    assert shown.size == 12 and len(shown.fingerprint()) == SHOWN_DIGITS


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


Anchors = list[tuple[Content, Content]]


def anchors(*numbers: int, **kept: bool) -> Anchors:
    return [(record(n), shaped(record(n), **kept)) for n in numbers]


@pytest.mark.parametrize(
    ("equality", "kept"),
    [
        (Equality.ALL, {}),
        (Equality.WITHOUT_HEADERS, {"headers": False}),
        (Equality.WITHOUT_TIMESTAMP, {"time": False}),
        (Equality.KEY_AND_VALUE, {"time": False, "headers": False}),
        (Equality.TIME_AND_KEY, {"value": False}),
        (Equality.TIME_AND_KEY, {"value": False, "headers": False}),
    ],
)
def test_the_widest_equality_that_the_anchors_meet_is_found_and_a_stale_one_that_looks_alike_narrows_nothing(
    equality, kept
):
    assert calibrated(anchors(0, 1, 2, 3, **kept)) is equality
    # The same key and value at another time; headers that differ would speak for a converter that changes some.
    stale = (record(5), shaped(replace(record(5), timestamp=99), **kept))
    assert calibrated([stale, *anchors(0, 1, 2, **kept)]) is equality


MANY, FEW = tuple(range(16)), (20, 21, 22, 23)
TOMBSTONES = [(Content(n, b"k", None, ()),) * 2 for n in range(30)]


def at_once(number: int) -> Content:
    """One of the records of one millisecond."""
    return Content(7, None, b"v%d" % number, ())


@pytest.mark.parametrize(
    ("given_anchors", "equality"),
    [
        # Headers that are changed on some records only do not count, unless these are too few.
        (anchors(*MANY[:12]) + anchors(*FEW, headers=False), Equality.WITHOUT_HEADERS),
        (anchors(*MANY[:12]) + anchors(20, headers=False), Equality.ALL),
        # Stale anchors of records from one millisecond widen nothing.
        ([(at_once(n), at_once(n + 10)) for n in (0, 1)] + [(at_once(n),) * 2 for n in (0, 1, 2)], Equality.ALL),
        # Tombstones, which no transform changes, do not hide that values are changed.
        (TOMBSTONES + anchors(*range(10), value=False), Equality.TIME_AND_KEY),
        # A few changed records do not make contents worthless.
        (anchors(0, 1, 2, value=False) + anchors(0, 1, 2, 3), Equality.ALL),
        # Where nothing agrees there is none.
        ([], None),
        ([(record(n), record(n + 100)) for n in range(5)], None),
        (anchors(1, time=False, value=False), None),
    ],
)
def test_a_few_anchors_against_many_decide_nothing(given_anchors: Anchors, equality):
    assert calibrated(given_anchors) is equality


def test_headers_are_clear_where_enough_tell_and_none_differs_or_more_differ_than_by_chance():
    bare = [(record(n, headers=False),) * 2 for n in range(50)]
    plain, changed = anchors(*MANY), anchors(*FEW, headers=False)
    assert is_clear(bare) and is_clear(bare + plain) and is_clear(plain + changed) and is_clear([])
    assert not is_clear(bare + plain[:15]) and not is_clear(plain + changed[:1])


@given(st.lists(st.tuples(contents, contents), min_size=1, max_size=8))
def test_an_equality_is_found_only_if_an_anchor_meets_it_in_the_parts_that_it_needs(drawn):
    found = calibrated(drawn)
    weakest = [Equality.KEY_AND_VALUE, Equality.TIME_AND_KEY]
    if found is None:
        assert not any(parts(a, Equality.KEY_AND_VALUE) == parts(b, Equality.KEY_AND_VALUE) for a, b in drawn)
    else:
        assert any(parts(a, e) == parts(b, e) for a, b in drawn for e in weakest)

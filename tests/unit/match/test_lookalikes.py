"""The oracle for records that look alike, held against the one that knows each record by name."""

from hypothesis import given
from hypothesis import strategies as st

from tests.integration import lookalikes, oracle
from tests.integration.lookalikes import by_looks, told_apart
from tests.integration.oracle import Found, Log, Truth, Written

LOOKS = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}


def log(text: str) -> Log:
    words = text.split()
    return Log(0, len(words), tuple(Found(i, word) for i, word in enumerate(words)))


def written(text: str) -> tuple[Written, ...]:
    return tuple(Written(i, word) for i, word in enumerate(text.split()))


def test_of_records_that_look_alike_only_the_number_counts() -> None:
    truth = Truth(written("a a x"), log("a a x"), log("a a x a"))
    assert lookalikes.best(truth, 0) == 1
    assert lookalikes.best(truth, 1) == 2
    assert lookalikes.lost(truth, 1, 3) == frozenset({"x"})
    assert lookalikes.lost(truth, 0, 2) == frozenset({"a"})
    assert lookalikes.rereads(truth, 1, 0) == 2
    assert lookalikes.missing(Truth(written("a a"), log("a a"), log("a")), 0) == frozenset({"a"})


def test_copies_are_known_by_the_records_around_them_and_those_a_run_begins_amid_from_its_end() -> None:
    for names, logged, told in (
        ("a1 a2 x a3 b1 y b2", "a a x a x a b y b", "a1 a2 x a3 x a3 b1 y b2"),
        ("x a1 a2 y", "x a a y a y", "x a1 a2 y a2 y"),
    ):
        found = told_apart(written(names), log(logged), LOOKS)
        assert " ".join(record.identity for record in found.records) == told


@given(st.lists(st.sampled_from("abcdef"), max_size=10), st.integers(0, 9))
def test_where_every_record_has_a_look_of_its_own_both_oracles_agree(copies: list[str], commit: int) -> None:
    truth = Truth(written("a b c d e f"), log("a b c d e f"), log(" ".join(copies)))
    assert by_looks(truth, {}) == truth
    assert lookalikes.best(truth, commit) == oracle.best(truth, commit)
    assert lookalikes.missing(truth, commit) == oracle.missing(truth, commit)
    for offset in range(len(copies) + 1):
        assert lookalikes.lost(truth, commit, offset) == oracle.lost(truth, commit, offset)
        assert lookalikes.rereads(truth, commit, offset) == oracle.rereads(truth, commit, offset)

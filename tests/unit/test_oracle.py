"""The oracle that judges the integration tests, on small logs: "." no reader sees, "b!" was aborted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.oracle import (
    Found,
    Log,
    Truth,
    Written,
    best,
    contradictions,
    copies,
    lost,
    missing,
    owed,
    replayed,
    rereads,
    resumed_with,
)


def log(text: str, start: int = 0) -> Log:
    """A log from `start` on, one word per offset."""
    words = text.split()
    records = tuple(Found(start + i, word) for i, word in enumerate(words) if word != ".")
    return Log(start, start + len(words), records)


def partition(written: str, source: str, target: str, source_start: int = 0, target_start: int = 0) -> Truth:
    records = tuple(
        Written(offset, word.rstrip("!"), not word.endswith("!"))
        for offset, word in enumerate(written.split())
        if word != "."
    )
    return Truth(records, log(source, source_start), log(target, target_start))


# Written, source, target, where logs start, the commit; then what is owed, the best offset, and what has no copy.
CASES = {
    "a plain copy": ("a b c d", "a b c d", "a b c d", {}, 2, "c d", 2, ""),
    "caught up: nothing is owed, and the best is the end": ("a b c", "a b c", "a b c", {}, 3, "", 3, ""),
    "what compaction removed is superseded": ("a b c d", "a . . d", "a b c d", {}, 1, "d", 3, ""),
    "what retention removed below the commit": ("a b c d", "c d", "a b c d", {"source_start": 2}, 2, "c d", 2, ""),
    "what retention removed above it": ("a b c d", "c d", "a b c d", {"source_start": 2}, 1, "b c d", 1, ""),
    "aborted, and copied as an ordinary one": ("a b! c .", "a . c .", "a b c", {}, 1, "c", 2, ""),
    "aborted below the log's start": ("a! b . c", "c", "a b . c", {"source_start": 3}, 0, "b c", 1, ""),
    "a replay: the last copy counts": ("a b c d", "a b c d", "a b c b c d", {}, 1, "b c d", 3, ""),
    # C4: 0@0 1@1 2@2, killed, 0@3, stopped.
    "a replay that stops half way": ("a b c", "a b c", "a b c a", {}, 0, "a b c", 1, ""),
    "one without any copy moves no offset": ("a b c d", "a b c d", "a b d", {}, 1, "b c d", 1, "c"),
    "none has a copy: every offset may pass": ("a b", "a b", ". .", {"target_start": 7}, 0, "a b", 9, "a b"),
    "a truncated target": ("a b c d", "a b c d", "c d", {"target_start": 2}, 0, "a b c d", 2, "a b"),
    "what somebody else wrote to the target counts for nothing": ("a b", "a b", "a x b", {}, 1, "b", 2, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_owed_where_its_best_offset_is_and_what_of_it_has_no_copy(case: str) -> None:
    written, source, target, starts, commit, owes, offset, lacks = CASES[case]
    truth = partition(written, source, target, **starts)
    assert (owed(truth, commit), best(truth, commit)) == (set(owes.split()), offset)
    assert missing(truth, commit) == set(lacks.split())


def test_what_is_lost_is_named_and_what_is_read_twice_counted() -> None:
    plain = partition("a b c d", "a b c d", "a b c d")
    assert lost(plain, 2, 2) == frozenset() and lost(plain, 2, 3) == {"c"}
    assert rereads(plain, 2, 2) == 0 and rereads(plain, 2, 0) == 2
    # An aborted record is not read a second time: nobody had it.
    assert rereads(partition("a b! c .", "a . c .", "a b c"), 1, 1) == 0
    # A second copy is read again, whether the group had the record before or not.
    again = partition("a b c d", "a b c d", "a b c b c d")
    assert copies(again, "b") == [1, 3] and replayed(again) == 2
    assert [rereads(again, *asked) for asked in ((1, 1), (1, 0), (3, 0))] == [2, 3, 5]


TWICE = "a b c . c d"
RESUMED = {
    "known by its two copies with no other between": ("a b x! c d", "a b . c d", TWICE, 2, 2, (3, 4)),
    "no gap on the source: no aborted record": ("a b c d", "a b c d", TWICE, 2, 2, None),
    "one record too far down": ("a b x! c d", "a b . c d", TWICE, 2, 1, None),
    "the next record has one copy": ("a b x! c d", "a b . c d", TWICE, 4, 4, None),
    "a replay of more than one record can be told": ("a b x! c d", "a b . c d", "a b c d c d", 2, 2, None),
    "two copies further down": ("a b x! c d", "a b . c d", "a b c c c d", 2, 2, None),
    "nothing is owed": ("a x!", "a .", "a", 2, 1, None),
}


@pytest.mark.parametrize("case", RESUMED)
def test_a_record_that_mm2_resumed_with_is_known(case: str) -> None:
    written, source, target, commit, offset, found = RESUMED[case]
    assert resumed_with(partition(written, source, target), commit, offset) == found


def test_a_truth_that_contradicts_itself_is_named() -> None:
    assert contradictions(partition("a b! c", "a . c", "a b c")) == []
    seen = ["source offset 1 was aborted, and yet a reader sees it"]
    assert contradictions(partition("a b!", "a b", "")) == seen
    assert contradictions(partition("a a", "a", "")) == ["two written records share an identity"]
    assert "was not written there" in contradictions(partition("a b", "a x", ""))[0]
    overlooked = partition("a b c", "a . c", "a c")
    seen = ["source offset 1 holds b, which is committed, and no reader sees it"]
    assert contradictions(overlooked) == seen and contradictions(overlooked, compacted=True) == []
    outside = Truth((), Log(0, 0, ()), Log(5, 6, (Found(4, "a"),)))
    assert contradictions(outside) == ["the target's record at 4 lies outside its log"]


@st.composite
def truths(draw: st.DrawFn) -> Truth:
    """Small logs with aborts, compaction, retention, replays, dropped and foreign records."""
    size = draw(st.integers(0, 8))
    written = tuple(Written(i, f"r{i}", draw(st.booleans())) for i in range(size))
    start = draw(st.integers(0, size))
    remaining = tuple(
        Found(w.offset, w.identity) for w in written if w.offset >= start and w.committed and draw(st.booleans())
    )
    target_start = draw(st.integers(0, 5))
    words = draw(st.lists(st.sampled_from([w.identity for w in written] + ["x", "y", "."]), max_size=12))
    found = tuple(Found(target_start + i, word) for i, word in enumerate(words) if word != ".")
    return Truth(written, Log(start, size, remaining), Log(target_start, target_start + len(words), found))


@given(truths(), st.integers(0, 9))
def test_the_best_offset_is_the_greatest_that_loses_nothing_by_the_definition(truth: Truth, commit: int) -> None:
    def loses_nothing(target_offset: int) -> bool:
        places = [copies(truth, identity) for identity in owed(truth, commit)]
        return all(max(each) >= target_offset for each in places if each)

    every = range(truth.target.start, truth.target.end + 1)
    assert best(truth, commit) == max(offset for offset in every if loses_nothing(offset))
    for offset in every:
        assert (not lost(truth, commit, offset)) == loses_nothing(offset) == (offset <= best(truth, commit))


@given(truths(), st.integers(0, 9))
def test_every_record_read_is_owed_or_read_again_or_neither_group_ever_had_it(truth: Truth, commit: int) -> None:
    read = [record.identity for record in truth.target.records]
    ours = {record.identity for record in truth.written if record.offset >= commit}
    firsts = {identity for identity in read if identity in ours or identity in ("x", "y")}
    assert rereads(truth, commit, truth.target.start) == len(read) - len(firsts)

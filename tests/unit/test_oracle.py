"""The oracle that judges the integration tests, on logs small enough to check by eye.

Logs are written as in the design of the laws: "0 1 2" are records at offsets 0, 1, 2; "." is an offset that
no reader sees (a marker, an aborted or a compacted record); "1!" was aborted.
"""

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


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def test_a_plain_copy_owes_what_is_at_or_after_the_commit_and_the_best_offset_is_its_copy() -> None:
    truth = partition("a b c d", "a b c d", "a b c d")
    assert owed(truth, 2) == names("c d")
    assert best(truth, 2) == 2
    assert lost(truth, 2, 2) == frozenset()
    assert lost(truth, 2, 3) == names("c")
    assert rereads(truth, 2, 2) == 0
    assert rereads(truth, 2, 0) == 2


def test_a_caught_up_group_is_owed_nothing_and_stands_at_the_targets_end() -> None:
    truth = partition("a b c", "a b c", "a b c")
    assert owed(truth, 3) == frozenset()
    assert best(truth, 3) == 3
    assert rereads(truth, 3, 2) == 1


def test_a_record_that_compaction_removed_is_superseded_and_not_owed() -> None:
    truth = partition("a b c d", "a . . d", "a b c d")
    assert owed(truth, 1) == names("d")
    assert best(truth, 1) == 3
    assert lost(truth, 1, 3) == frozenset()


def test_a_record_that_retention_removed_is_owed_if_the_commit_lies_below_the_log_start() -> None:
    truth = partition("a b c d", "c d", "a b c d", source_start=2)
    assert owed(truth, 1) == names("b c d")
    assert best(truth, 1) == 1
    assert lost(truth, 1, 2) == names("b")
    assert owed(truth, 2) == names("c d")


def test_an_aborted_record_is_not_owed_even_if_mm2_copied_it_as_an_ordinary_one() -> None:
    truth = partition("a b! c .", "a . c .", "a b c")
    assert owed(truth, 1) == names("c")
    assert best(truth, 1) == 2
    # It is not read a second time either: nobody had it.
    assert rereads(truth, 1, 1) == 0


def test_an_aborted_record_below_the_log_start_is_not_owed() -> None:
    truth = partition("a! b . c", "c", "a b . c", source_start=3)
    assert owed(truth, 0) == names("b c")


def test_after_a_replay_the_best_offset_is_in_the_last_copy() -> None:
    truth = partition("a b c d", "a b c d", "a b c b c d")
    assert copies(truth, "b") == [1, 3]
    assert best(truth, 1) == 3
    assert best(truth, 3) == 5
    assert lost(truth, 1, 4) == names("b")
    assert replayed(truth) == 2


def test_a_second_copy_is_read_again_whether_the_group_had_the_record_before_or_not() -> None:
    truth = partition("a b c d", "a b c d", "a b c b c d")
    assert rereads(truth, 1, 1) == 2
    assert rereads(truth, 1, 0) == 3
    assert rereads(truth, 3, 0) == 5


def test_a_replay_that_stops_half_way_keeps_the_best_offset_below_what_was_not_repeated() -> None:
    # C4: 0@0 1@1 2@2, killed, 0@3, stopped.
    truth = partition("a b c", "a b c", "a b c a")
    assert best(truth, 0) == 1
    assert lost(truth, 0, 3) == names("b c")


def test_a_record_that_mm2_resumed_with_is_known_by_its_two_copies_with_no_other_between() -> None:
    truth = partition("a b x! c d", "a b . c d", "a b c . c d")
    assert resumed_with(truth, 2, 2) == resumed_with(truth, 3, 2) == (3, 4)
    assert best(truth, 2) == 4


def test_two_copies_are_no_excuse_where_the_row_might_know_or_is_elsewhere() -> None:
    target = "a b c . c d"
    assert resumed_with(partition("a b c d", "a b c d", target), 2, 2) is None, (
        "no gap on the source: no aborted record"
    )
    gap = partition("a b x! c d", "a b . c d", target)
    assert resumed_with(gap, 2, 1) is None, "one record too far down"
    assert resumed_with(gap, 4, 4) is None, "the next record has one copy"
    longer = partition("a b x! c d", "a b . c d", "a b c d c d")
    assert resumed_with(longer, 2, 2) is None, "a replay of more than one record can be told"
    thrice = partition("a b x! c d", "a b . c d", "a b c c c d")
    assert resumed_with(thrice, 2, 2) is None, "two copies further down"
    assert resumed_with(partition("a x!", "a .", "a"), 2, 1) is None, "nothing is owed"


def test_an_owed_record_without_any_copy_is_missing_and_moves_no_offset() -> None:
    truth = partition("a b c d", "a b c d", "a b d")
    assert missing(truth, 1) == names("c")
    assert best(truth, 2) == 2
    assert lost(truth, 2, 2) == frozenset()


def test_a_target_without_any_owed_record_lets_every_offset_pass() -> None:
    truth = partition("a b", "a b", ". .", target_start=7)
    assert best(truth, 0) == 9
    assert lost(truth, 0, 9) == frozenset()


def test_a_target_that_was_truncated_owes_only_what_is_left_of_it() -> None:
    truth = partition("a b c d", "a b c d", "c d", target_start=2)
    assert best(truth, 0) == 2
    assert missing(truth, 0) == names("a b")


def test_a_record_written_to_the_target_by_somebody_else_counts_for_nothing() -> None:
    truth = partition("a b", "a b", "a x b")
    assert best(truth, 1) == 2
    assert rereads(truth, 1, 1) == 0


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
    names = st.sampled_from([w.identity for w in written] + ["x", "y", "."])
    words = draw(st.lists(names, max_size=12))
    found = tuple(Found(target_start + i, word) for i, word in enumerate(words) if word != ".")
    return Truth(written, Log(start, size, remaining), Log(target_start, target_start + len(words), found))


@given(truths(), st.integers(0, 9))
def test_the_best_offset_is_the_greatest_that_loses_nothing_by_the_definition(truth: Truth, commit: int) -> None:
    def loses_nothing(target_offset: int) -> bool:
        for identity in owed(truth, commit):
            places = copies(truth, identity)
            if places and not any(place >= target_offset for place in places):
                return False
        return True

    every = range(truth.target.start, truth.target.end + 1)
    assert best(truth, commit) == max(offset for offset in every if loses_nothing(offset))
    for offset in every:
        assert (not lost(truth, commit, offset)) == loses_nothing(offset) == (offset <= best(truth, commit))


@given(truths(), st.integers(0, 9))
def test_starting_later_never_reads_more_twice(truth: Truth, commit: int) -> None:
    counts = [rereads(truth, commit, offset) for offset in range(truth.target.start, truth.target.end + 1)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0


@given(truths(), st.integers(0, 9))
def test_every_record_read_is_owed_or_read_again_or_neither_group_ever_had_it(truth: Truth, commit: int) -> None:
    read = [record.identity for record in truth.target.records]
    ours = {record.identity for record in truth.written if record.offset >= commit}
    firsts = {identity for identity in read if identity in ours or identity in ("x", "y")}
    assert rereads(truth, commit, truth.target.start) == len(read) - len(firsts)

"""Law 2: a commit that is not compared stands at a proven sync or at its timestamp, whichever is smaller."""

from functools import partial

import pytest

from migrate.match.anchors import WIDE
from migrate.match.equality import Equality
from migrate.match.matcher import matching
from migrate.match.protocol import Matched, PartitionQuestion, Unmatched, Why, WhyUnmatched
from migrate.match.sync_only import STEP, guarding
from migrate.match.task import match_partitions
from migrate.model import TopicPartition
from tests.memorylogs import Log, MemoryReader, log_range, record

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("A.t", 0)
LOG: Log = {n: record(n) for n in range(100)}


def answer(
    target: Log, sync_pairs, *committed: int,
    reason="match-limit", bounded=True, equality=Equality.ALL, source: Log = LOG, law=None, **known,
):  # fmt: skip
    question = PartitionQuestion(
        SOURCE, TARGET, log_range(source), log_range(target), tuple(sorted(committed)), sync_pairs=tuple(sync_pairs),
        equality=equality, **known,
    )  # fmt: skip
    readers = MemoryReader({SOURCE: source}), MemoryReader({TARGET: target})
    law = law or partial(guarding, reason=reason, is_bounded=bounded)
    return dict(match_partitions(*readers, [question], law))[SOURCE]


def test_behind_a_proven_sync_it_stands_where_the_first_owed_records_time_begins_if_that_is_lower():
    shifted = {n + 5: LOG[n] for n in range(100)}
    found = answer(shifted, [(10, 15)], 10, 40)
    assert found.places[10] == Matched(15, Why.NOT_ALL_READ, 90, 0, (10, 15), None)
    assert found.places[40] == Matched(16, Why.NOT_ALL_READ, 89, 0, (10, 15), None)
    replayed = {n: LOG[n] for n in range(10)} | {n + 10: LOG[n] for n in range(100)}
    assert answer(replayed, [(10, 20)], 10).places[10].target_offset == 20


@pytest.mark.parametrize(
    ("source_has_copies", "position", "more"), [(False, 49, 40), (False, 95, 0), (False, None, 0), (True, 49, 0)]
)
def test_what_mm2_still_has_to_copy_below_the_commit_is_read_again_too(source_has_copies, position, more):
    half = {n: LOG[n] for n in range(50)}
    found = answer(half, [(40, 40)], 90, source_has_copies=source_has_copies, last_copied_offset=position).places[90]
    assert (found.target_offset, found.rereads_at_most) == (41, 9 + more)


def test_a_copy_before_the_sync_pulls_the_row_down():
    late = {0: LOG[50], **{n + 1: LOG[n] for n in range(100)}}
    assert answer(late, [(10, 11)], 50).places[50].target_offset == 0


GONE = {n: LOG[n] for n in range(20, 100)}


@pytest.mark.parametrize(
    ("target", "sync", "known", "place"),
    [
        (GONE, (10, 10), {}, Unmatched(WhyUnmatched.MATCH_LIMIT, 50, None, refuted=False)),
        (LOG, (10, 40), {}, Unmatched(WhyUnmatched.MATCH_LIMIT, 50, None, refuted=True)),
        (LOG, (10, 10), {"reason": "no-match", "bounded": False}, Unmatched(WhyUnmatched.NO_MATCH, 50, (10, 10))),
        # Timestamps that the target makes itself guard nothing.
        (LOG, (10, 10), {"equality": Equality.WITHOUT_TIMESTAMP}, Unmatched(WhyUnmatched.MATCH_LIMIT, None, (10, 10))),
    ],
    ids=["the sync's record is gone", "its records refute it", "without a bound", "no timestamps"],
)
def test_where_no_sync_bounds_the_commit_the_reason_is_said(target, sync, known, place):
    found = answer(target, [sync], 50, **known)
    assert found.places == {50: place} and found.tail.uncopied is None


def test_a_log_is_not_read_through_for_the_timestamp_of_one_record():
    beyond = 10 * STEP
    log = {0: record(0)} | {n: record(n) for n in range(beyond, 2 * beyond)}
    found = answer({0: record(0), 1: record(beyond)}, [(0, 0)], 10, source=log)
    assert found.places[10].target_offset == 1 and found.source_read <= STEP + 1


def test_a_window_beyond_the_limit_is_not_read_to_find_that_out():
    end = 3 * WIDE
    log = {n: record(n) for n in range(end)}
    known = {"equality": Equality.WITHOUT_TIMESTAMP, "match_limit": 2 * WIDE}
    found = answer(log, [(0, 0), (end - 50, end - 50)], end - 100, source=log, law=matching, **known)
    assert found.places[end - 100].reason is WhyUnmatched.MATCH_LIMIT
    assert found.source_read <= 2 * WIDE


def test_where_the_next_sync_is_far_a_commit_is_proven_by_the_records_near_it():
    end, ahead = 3 * WIDE, 20_000
    log = {n: record(n) for n in range(end)}
    copies = {n + ahead: log[n] for n in range(end)}
    syncs = [(0, ahead), (end - 50, end - 50 + ahead)]
    found = answer(copies, syncs, 100, source=log, law=matching)
    assert (found.places[100].target_offset, found.places[100].why) == (100 + ahead, Why.PROVEN)
    assert found.source_read < WIDE


def test_a_commit_at_the_sources_end_is_owed_nothing_whether_timestamps_are_kept_or_not():
    found = answer(LOG, (), 40, 100, reason=WhyUnmatched.TIMESTAMPS_NOT_KEPT).places
    assert found[100] == Matched(100, Why.LEAST_TIMESTAMP, 0)
    assert isinstance(found[40], Unmatched) and found[40].reason is WhyUnmatched.TIMESTAMPS_NOT_KEPT

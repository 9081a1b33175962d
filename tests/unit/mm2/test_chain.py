"""The chain and the window: Laws 1 and 2 on values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.chain import Window, chain, lower_end, rereads_estimate, window
from migrate.model import LogRange, OffsetSync

offsets = st.integers(0, 60)


def syncs(pairs):
    return [OffsetSync(position, *pair) for position, pair in enumerate(pairs)]


# In any order: the chain does not depend on that in which they are read.
histories = st.lists(st.tuples(offsets, offsets), max_size=30).map(syncs).flatmap(st.permutations)


@given(histories, offsets, offsets)
def test_a_sync_is_kept_exactly_if_it_is_inside_both_logs_and_no_later_one_contradicts_it(
    history, source_end, target_end
):
    def contradicts(later, sync):
        goes_back = later.source_offset <= sync.source_offset or later.target_offset <= sync.target_offset
        return later.position > sync.position and goes_back

    inside = [s for s in history if s.source_offset < source_end and s.target_offset < target_end]
    kept = [s for s in inside if not any(contradicts(later, s) for later in inside)]
    assert list(chain(history, source_end, target_end)) == sorted(kept)


@given(histories, offsets)
def test_a_window_holds_the_nearest_syncs_on_either_side(history, committed):
    kept = chain(history, 61, 61)
    around = window(kept, committed)
    below = [s for s in kept if s.source_offset <= committed]
    above = [s for s in kept if s.source_offset > committed]
    assert around == Window(max(below, default=None), min(above, default=None))


@pytest.mark.parametrize(("pairs", "committed", "start", "target"), [
    ([(10, 7)], 10, 0, 7),
    ([(50, 50)], 20, 3, 3),
    ([(10, 7)], 10, 9, 9),
    # Between syncs the offset after the lower one is taken, and never the distance added.
    ([(0, 0), (10, 7)], 60, 0, 8),
], ids=["on the sync", "below all syncs", "the sync is below the target's log start", "between syncs"])  # fmt: skip
def test_the_lower_end_is_the_sync_on_the_commit_or_the_offset_behind_one_and_never_before_the_targets_log_start(
    pairs, committed, start, target
):
    around = window(chain(syncs(pairs), 100, 100), committed)
    assert lower_end(around, committed, LogRange(start, 100)) == target


@pytest.mark.parametrize(("pairs", "committed", "lower", "target_end", "estimate"), [
    (((100, 100), (200, 200)), 150, 101, 300, 49),
    (((100, 100), (200, 260)), 150, 101, 400, 159),
    (((0, 0), (299, 299)), 300, 300, 300, 0),
], ids=["source records since the sync", "the window is wider on the target", "caught up"])  # fmt: skip
def test_the_estimate_of_rereads_is_the_width_of_the_window_on_the_side_where_it_is_wider(
    pairs, committed, lower, target_end, estimate
):
    around = window(chain(syncs(pairs), 300, target_end), committed)
    assert rereads_estimate(around, committed, lower, LogRange(0, 300), LogRange(0, target_end)) == estimate

"""The chain and the window: Laws 1 and 2 on values."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.chain import Window, chain, lower_end, rereads_estimate, window
from migrate.model import LogRange, OffsetSync

offsets = st.integers(0, 60)
histories = st.lists(st.tuples(offsets, offsets), max_size=30).map(
    lambda pairs: [OffsetSync(i, u, d) for i, (u, d) in enumerate(pairs)]
)


def syncs(*pairs: tuple[int, int]) -> list[OffsetSync]:
    return [OffsetSync(i, u, d) for i, (u, d) in enumerate(pairs)]


def pairs(kept: tuple[OffsetSync, ...]) -> list[tuple[int, int]]:
    return [(s.source_offset, s.target_offset) for s in kept]


@given(histories, offsets, offsets)
def test_a_chain_rises_strictly_in_both_coordinates(history, source_end, target_end):
    kept = chain(history, source_end, target_end)
    for before, after in zip(kept, kept[1:], strict=False):
        assert before.position < after.position
        assert before.source_offset < after.source_offset
        assert before.target_offset < after.target_offset


@given(histories, offsets, offsets)
def test_a_sync_is_kept_exactly_if_it_is_inside_both_logs_and_no_later_one_contradicts_it(
    history, source_end, target_end
):
    inside = [s for s in history if s.source_offset < source_end and s.target_offset < target_end]
    expected = [
        s
        for s in inside
        if not any(
            later.position > s.position
            and (later.source_offset <= s.source_offset or later.target_offset <= s.target_offset)
            for later in inside
        )
    ]
    assert list(chain(history, source_end, target_end)) == expected


@given(st.permutations(list(range(12))), histories)
def test_the_chain_does_not_depend_on_the_order_in_which_syncs_are_read(order, history):
    shuffled = [history[i] for i in order if i < len(history)] + history[12:]
    assert chain(shuffled, 61, 61) == chain(history, 61, 61)


def test_a_restart_of_mm2_discards_the_syncs_that_its_replay_passed():
    history = syncs((0, 0), (50, 50), (90, 90), (60, 101), (80, 121))
    assert pairs(chain(history, 200, 200)) == [(0, 0), (50, 50), (60, 101), (80, 121)]


def test_a_recreated_target_topic_discards_every_sync_of_the_old_one():
    assert pairs(chain(syncs((100, 200), (150, 251), (200, 10)), 300, 300)) == [(200, 10)]


def test_a_recreated_source_topic_discards_every_sync_of_the_old_one():
    assert pairs(chain(syncs((100, 100), (500, 500), (0, 501), (10, 511)), 20, 600)) == [(0, 501), (10, 511)]


def test_a_truncated_target_log_discards_syncs_at_or_beyond_its_end():
    assert pairs(chain(syncs((0, 0), (10, 10), (20, 20)), 100, 20)) == [(0, 0), (10, 10)]


@given(histories, offsets)
def test_a_window_holds_the_nearest_syncs_on_either_side(history, committed):
    kept = chain(history, 61, 61)
    around = window(kept, committed)
    below = [s for s in kept if s.source_offset <= committed]
    above = [s for s in kept if s.source_offset > committed]
    assert around == Window(max(below, default=None), min(above, default=None))


def test_a_sync_on_the_committed_offset_itself_gives_its_target_offset():
    around = window(chain(syncs((0, 0), (10, 7)), 100, 100), 10)
    assert lower_end(around, 10, LogRange(0, 100)) == 7


def test_between_syncs_the_offset_after_the_lower_one_is_taken_and_never_the_distance_added():
    around = window(chain(syncs((0, 0), (10, 7)), 100, 100), 60)
    assert lower_end(around, 60, LogRange(0, 100)) == 8


def test_without_a_sync_low_enough_the_target_log_start_is_taken():
    around = window(chain(syncs((50, 50)), 100, 100), 20)
    assert lower_end(around, 20, LogRange(3, 100)) == 3


def test_a_sync_below_the_target_log_start_gives_the_log_start():
    around = window(chain(syncs((0, 0), (10, 7)), 100, 100), 10)
    assert lower_end(around, 10, LogRange(9, 100)) == 9


@given(histories, offsets, offsets, offsets)
def test_translation_is_monotonic_in_the_committed_offset(history, one, other, start):
    kept = chain(history, 61, 61)
    low, high = sorted((one, other))
    log = LogRange(start, 61)
    assert lower_end(window(kept, low), low, log) <= lower_end(window(kept, high), high, log)


def test_reread_estimate_counts_source_records_since_the_sync():
    around = window(chain(syncs((100, 100), (200, 200)), 300, 300), 150)
    assert rereads_estimate(around, 150, 101, LogRange(0, 300), LogRange(0, 300)) == 49


def test_reread_estimate_is_the_targets_width_where_the_window_is_longer_there():
    around = window(chain(syncs((100, 100), (200, 260)), 300, 400), 150)
    assert rereads_estimate(around, 150, 101, LogRange(0, 300), LogRange(0, 400)) == 159


def test_a_caught_up_group_behind_the_newest_sync_rereads_nothing():
    around = window(chain(syncs((0, 0), (99, 99)), 100, 100), 100)
    assert rereads_estimate(around, 100, 100, LogRange(0, 100), LogRange(0, 100)) == 0

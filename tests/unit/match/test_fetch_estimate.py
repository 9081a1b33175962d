"""What comparing will read: estimates, budgets, and tasks of equal weight."""

import random

from hypothesis import given
from hypothesis import strategies as st

from migrate.match.calibration import ANCHORS
from migrate.match.compare import (
    MOST_TASKS,
    PER_PARTITION,
    TASKS_PER_CORE,
    UNKNOWN_SIZE,
    Cost,
    LogReading,
    cost_of,
    fetch_estimate,
    spread,
    task_count,
)
from migrate.match.equality import Equality
from migrate.match.log_reader import SHORT_FETCH
from migrate.match.matcher import matching
from migrate.match.protocol import Limits, PartitionQuestion
from migrate.match.task import Fetched
from migrate.model import LogRange, TopicPartition


def question(sync_pairs, committed, length=100_000, limit=1_000_000, by_timestamp=False):
    return PartitionQuestion(
        place(0), place(0, "A.t"), LogRange(0, length), LogRange(0, length), committed, sync_pairs=sync_pairs,
        equality=Equality.ALL, match_limit=limit, by_timestamp=by_timestamp,
    )  # fmt: skip


def place(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def costs(widths: dict[int, tuple[int, int]], topic: str = "t") -> list[Cost]:
    """Of logs that are read as a whole: nothing lies beyond."""
    return [Cost(place(n, topic), *(LogReading(width, 1, width) for width in both), ()) for n, both in widths.items()]


EVERY_HUNDRED = tuple((u, u) for u in range(0, 100_000, 100))


def test_a_partition_costs_what_its_matching_asks_for_first_and_no_more_than_its_log_or_the_limit():
    asked = question(EVERY_HUNDRED, (50_050, 50_060))
    needs, cost = next(matching(asked)), cost_of(asked)
    assert cost.source_reading.width == sum(piece.end - piece.start for piece in needs.source)
    assert cost.target_reading.width == sum(piece.end - piece.start for piece in needs.target)
    assert 200 <= cost.source_reading.width <= 400
    assert cost.newest == EVERY_HUNDRED[-ANCHORS:]
    many = tuple(range(0, 900, 3))
    assert cost_of(question((), many, length=900)).source_reading.width <= 900
    assert cost_of(question((), many, limit=50)).source_reading.width <= 50


def test_what_a_fetch_brings_beyond_a_run_is_said_too_but_never_more_than_the_log_has():
    assert LogReading(100, 2, 1_000_000).fetched_bytes(10.0) == 1000 + 2 * SHORT_FETCH
    assert LogReading(100, 2, 150).fetched_bytes(10.0) == 1500
    assert LogReading(0, 0, 0).fetched_bytes(10.0) == 0


def test_what_is_left_of_a_log_behind_its_first_window_bounds_what_is_fetched():
    ends, apart = (cost_of(question(EVERY_HUNDRED, at)).source_reading for at in ((99_950,), (10_050, 50_050)))
    assert ends.width <= ends.reach <= 1_000
    assert (apart.runs, ends.runs) == (3, 1), "two windows and the tail; the tail alone"
    assert 89_000 <= apart.reach <= 91_000
    assert cost_of(question(((0, 0),), (40_000,))).source_reading.reach == 100_000


def test_the_estimate_is_records_times_the_topics_average_size():
    sizes = {"t": (10.0, 20.0), "u": (None, 5.0), "v": (None, None)}
    asked = [*costs({0: (100, 200)}), *costs({0: (3, 4)}, "u"), *costs({0: (1, 1)}, "v"), *costs({0: (1, 0)}, "w")]
    estimate, _ = fetch_estimate(asked, sizes, Limits(1_000_000, None), "tuvw", Fetched())
    assert (estimate.partitions, estimate.source_records, estimate.target_records) == (4, 105, 205)
    usual = (10 + 20 + 5) / 3
    assert estimate.source_bytes == round(1000 + 15 + 2 * usual)
    assert estimate.target_bytes == round(4000 + 20 + usual)
    unknown, _ = fetch_estimate(costs({0: (2, 0)}), {}, Limits(1_000_000, None), "t", Fetched())
    assert unknown.source_bytes == 2 * UNKNOWN_SIZE


def test_a_budget_holds_for_either_cluster_and_leaves_out_the_widest_first():
    asked = costs({0: (10, 10), 1: (100, 5), 2: (5, 400), 3: (50, 50)})
    sizes = {"t": (1.0, 1.0)}
    for budget, kept in ((500, {0, 1, 2, 3}), (464, {0, 1, 3}), (160, {0, 1, 3}), (159, {0, 3}), (9, set())):
        estimate, left_out = fetch_estimate(asked, sizes, Limits(1, budget), "t", Fetched())
        assert left_out == {place(n) for n in {0, 1, 2, 3} - kept}
        assert (estimate.partitions, estimate.left_out) == (len(kept), 4 - len(kept))
        assert max(estimate.source_bytes, estimate.target_bytes) <= budget


def test_what_was_fetched_already_counts_and_topics_that_are_not_calibrated_are_left_out():
    asked, sizes = [*costs({0: (10, 10), 1: (100, 5)}), *costs({0: (1, 1)}, "u")], {"t": (1.0, 1.0)}
    for spent, kept in (Fetched(50, 0), {0, 1}), (Fetched(51, 0), {0}), (Fetched(0, 151), set()):
        estimate, left_out = fetch_estimate(asked, sizes, Limits(1, 160), "t", spent)
        assert left_out == {place(n) for n in {0, 1} - kept} | {place(0, "u")}
        assert estimate.source_bytes == spent.source_bytes + sum((10, 100)[n] for n in kept)
        assert estimate.left_out == len(left_out)


def test_tasks_get_about_the_same_to_do():
    rnd = random.Random(5)
    widths = {place(n): rnd.randrange(10_000) for n in range(300)}
    task_of = spread(widths, 7)
    loads = dict.fromkeys(range(7), 0)
    for each, width in widths.items():
        loads[task_of[each]] += width + PER_PARTITION
    assert max(loads.values()) - min(loads.values()) <= 10_000 + PER_PARTITION


def test_timestamps_cost_the_source_alone_from_the_lowest_commit_that_may_be_read():
    cost = cost_of(question(((0, 0),), (40_000, 60_000), by_timestamp=True))
    assert (cost.source_reading, cost.target_reading.width) == (LogReading(60_000, 1, 60_000), 0)
    assert cost_of(question((), (10, 60_000), limit=50_000, by_timestamp=True)).width == 40_000
    assert cost_of(question((), (100_000,), by_timestamp=True)).width == 0
    assert cost.newest == ((0, 0),)


WIDTHS = st.integers(0, 10**10)
CORES = st.integers(1, 300)


@given(WIDTHS, WIDTHS, CORES)
def test_there_is_a_task_never_fewer_where_there_is_more_to_read_and_never_so_many_that_brokers_drown(
    one, other, cores
):
    fewer, more = (task_count(width, cores) for width in sorted((one, other)))
    assert 1 <= fewer <= more <= min(MOST_TASKS, TASKS_PER_CORE * cores)


def test_two_cores_share_what_is_worth_two_connections_and_have_two_tasks_each_of_much():
    assert [task_count(width, 2) for width in (0, 99_999, 100_000, 1_499_999, 1_500_000, 2_000_000, 10**9)] == [
        1, 1, 2, 2, 3, 4, 4,
    ]  # fmt: skip

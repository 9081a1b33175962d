"""The time left of a drain: within a factor of two over the last half of a steady one, and never a number by chance."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.plan.watch import Pace, Reading, time_left

RECORDED = Path(__file__).parents[1] / "drains"


def steady(total, rate, every=1.0, noise=0.0, idle=0.0, burst=0.0, seed=0):
    """Readings of a drain of `total` records at `rate` a second, after `idle` seconds in which nothing happened.

    `noise` varies the time between readings, `burst` is how many seconds' worth of records arrive at once.
    """
    dice, readings, now = Random(seed), [], 0.0
    while True:
        busy = max(0.0, now - idle)
        if burst:
            busy = burst * int(busy / burst)
        left = max(0, total - int(rate * busy))
        readings.append(Reading(now, left))
        if left == 0:
            return readings
        now += every * (1 + noise * dice.uniform(-1, 1))


def judged(readings):
    """For each reading of the last half of the drain, the estimate over the time it really took."""
    end = readings[-1].seconds
    begun = max(r.seconds for r in readings if r.left == readings[0].left)
    ratios = []
    for at, reading in enumerate(readings[:-1]):
        really = end - reading.seconds
        if reading.seconds - begun >= (end - begun) / 2 and reading.left:
            told = time_left(readings[: at + 1])
            assert told.pace is Pace.FALLING, (reading, told)
            ratios.append(told.seconds / really)
    assert ratios
    return ratios


@given(
    st.integers(1_000, 10_000_000), st.floats(20, 600), st.floats(0.3, 3.0), st.floats(0, 0.5), st.floats(0, 200),
    st.integers(0, 9),
)  # fmt: skip
def test_over_the_last_half_of_a_steady_drain_the_estimate_is_within_a_factor_of_two(
    total, lasts, every, noise, idle, seed
):
    readings = steady(total, total / lasts, every, noise, idle, seed=seed)
    # The end is seen at a reading: a second before it nobody can tell to the half second.
    ratios = [
        ratio
        for ratio, reading in zip(reversed(judged(readings)), reversed(readings[:-1]), strict=False)
        if readings[-1].seconds - reading.seconds > 2 * every * (1 + noise)
    ]
    assert all(0.5 <= ratio <= 2 for ratio in ratios), ratios


@pytest.mark.parametrize("burst", [2.0, 5.0])
def test_a_drain_in_bursts_is_told_as_well(burst):
    ratios = judged(steady(100_000, 1_000, burst=burst))[: -int(2 * burst)]
    assert all(0.5 <= ratio <= 2 for ratio in ratios)


def test_an_uneven_drain_of_a_real_mm2_is_told_by_the_pace_that_was_seen():
    """MM2 was paused, then slowed down by a quota with its bursts: nobody could have told the end of it."""
    recorded = json.loads((RECORDED / "paused-then-under-a-quota.json").read_text())
    readings = [Reading(seconds, left) for seconds, left in recorded]
    told = [time_left(readings[: at + 1]) for at in range(len(readings))]
    assert [t.pace for t in told] == [Pace.TOO_EARLY] * 3 + [Pace.FALLING] * 6 + [Pace.DONE] * 2
    slow = [t.per_second for t in told[5:9]]
    assert all(70 < rate < 130 for rate in slow if rate is not None), slow


def test_over_the_last_half_of_a_steady_drain_of_a_real_mm2_the_estimate_is_within_a_factor_of_two():
    """A quota lets MM2 write 80 kB/s to the target, which comes to 250 records per second in steps of some seconds."""
    recorded = json.loads((RECORDED / "steady-under-a-quota.json").read_text())
    readings = [Reading(seconds, left) for seconds, left in recorded]
    end = next(reading.seconds for reading in readings if not reading.left)
    # In its last four seconds a step of the quota is all that is left.
    judged_at = [at for at, reading in enumerate(readings) if end / 2 <= reading.seconds < end - 4]
    ratios = [
        told / (end - readings[at].seconds) for at in judged_at if (told := time_left(readings[: at + 1]).seconds)
    ]
    assert len(ratios) == len(judged_at) > 10
    assert all(0.5 <= ratio <= 2 for ratio in ratios), ratios


@pytest.mark.parametrize(
    ("left", "pace"),
    [
        ([], Pace.TOO_EARLY),
        ([100], Pace.TOO_EARLY),
        ([0], Pace.DONE),
        ([9, 0], Pace.DONE),
        ([100] * 30, Pace.STALLED),
        ([max(500, 1000 - 50 * s) for s in range(9)], Pace.FALLING),
        ([max(500, 1000 - 50 * s) for s in range(60)], Pace.STALLED),
        ([100 + 7 * s for s in range(30)], Pace.GROWING),
    ],
)
def test_the_pace_is_a_number_or_a_reason(left, pace):
    told = time_left([Reading(float(s), records) for s, records in enumerate(left)])
    assert told.pace is pace and (told.seconds == 0) is (pace is Pace.DONE)
    assert pace in (Pace.DONE, Pace.FALLING) or (told.seconds, told.per_second) == (None, None)


def test_two_readings_at_once_tell_no_more_than_one():
    assert time_left([Reading(0, 100), Reading(0.5, 90)]).pace is Pace.TOO_EARLY


def test_while_producers_write_it_is_the_rest_that_counts_and_not_what_is_copied():
    told = time_left([Reading(float(s), 1000 - 5 * s) for s in range(30)])
    assert told.per_second == pytest.approx(5) and told.seconds == pytest.approx(855 / 5)


def test_what_came_in_on_the_way_begins_the_drain_anew():
    readings = [Reading(float(s), 1000 - 10 * s) for s in range(20)]
    readings += [Reading(20.0 + s, 5000 - 100 * s) for s in range(20)]
    told = time_left(readings)
    assert told.per_second == pytest.approx(100)


@given(st.lists(st.tuples(st.floats(0.1, 60), st.integers(0, 10**9)), max_size=40))
def test_an_estimate_is_a_number_of_seconds_or_a_reason_whatever_was_read(steps):
    now, readings = 0.0, []
    for seconds, left in steps:
        now += seconds
        readings.append(Reading(now, left))
    told = time_left(readings)
    assert (told.seconds is None) == (told.pace not in (Pace.DONE, Pace.FALLING))
    assert told.seconds is None or told.seconds >= 0

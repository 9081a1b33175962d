"""Time: pauses that grow and end with their deadline, and times of day as they are written."""

import pytest

from migrate.clock import LATEST_DATE_MS, Backoff, iso, minute


class Waits:
    """A clock that notes how long it was waited for."""

    def __init__(self):
        self.pauses = []
        self.wait = self.pauses.append

    def monotonic(self):
        return sum(self.pauses)


@pytest.mark.parametrize(
    ("deadline", "pauses", "is_over"),
    [({}, [1.0, 2.0, 4.0, 5.0, 5.0], False), ({"deadline_seconds": 4.0}, [1.0, 2.0, 1.0, 0.0, 0.0], True)],
)
def test_each_pause_is_twice_as_long_as_the_one_before_up_to_a_limit_and_none_goes_beyond_the_deadline(
    deadline, pauses, is_over
):
    clock = Waits()
    backoff = Backoff(clock, 1.0, 5.0, **deadline)
    for _ in range(5):
        backoff.pause()
    assert clock.pauses == pauses and backoff.is_over is is_over


def test_times_of_day_are_written_in_utc_and_a_minute_never_comes_late():
    assert iso(1_785_553_259_999) == "2026-08-01T03:00:59.999Z"
    assert minute(1_785_553_259_999) == "2026-08-01 03:00 UTC"
    assert (iso(LATEST_DATE_MS), minute(0)) == ("9999-12-31T23:59:59.999Z", "1970-01-01 00:00 UTC")


@pytest.mark.parametrize("time_ms", [2**62, 1_785_553_259_999_000, LATEST_DATE_MS + 1, -(10**15), -1])
def test_a_time_that_is_no_date_is_a_number(time_ms):
    assert iso(time_ms) == minute(time_ms) == f"{time_ms} ms since 1970"

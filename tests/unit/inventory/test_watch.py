"""The watch of the `groups` commands: it ends in time, goes on where a look fails, and never passes old for new."""

import pytest

from migrate.errors import ClusterError
from migrate.inventory.watch import watch_groups
from migrate.plan.watch import EVERY_SECONDS, TICK_SECONDS, Waiting
from tests.fakes import FakeClock

GONE = ClusterError("A cannot be reached.", "Start it.")


class Look:
    """A look that takes so many ticks and then has this answer."""

    def __init__(self, clock, answer, ticks=0):
        self.clock, self.answer, self.ticks = clock, answer, ticks
        self.asked_seconds, self.waited = 0.0, 0.0

    def ended_within(self, seconds):
        if not self.ticks:
            return True
        self.ticks -= 1
        self.waited += seconds
        self.clock.wait(seconds)
        return False

    def waiting(self):
        return Waiting("reading commits on A", self.waited)

    def result(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def watched(*looks, timeout):
    """Watch these looks, given as answers or as (answer, ticks); return what came out, what was told, and the clock."""
    clock, told = FakeClock(), []
    waiting = iter([Look(clock, *(look if isinstance(look, tuple) else (look,))) for look in looks])
    return watch_groups(lambda: next(waiting), timeout, clock, told.append), told, clock


def test_it_looks_every_two_seconds_and_ends_with_the_last_look_once_the_time_is_up():
    seen, told, clock = watched(1, 2, 3, timeout=2 * EVERY_SECONDS)
    assert seen == 3 and [glance.seen for glance in told] == [1, 2, 3] and clock.waited == 2 * EVERY_SECONDS


def test_a_look_that_fails_leaves_the_last_one_with_its_age_and_the_reason():
    _, told, _ = watched(1, GONE, 3, timeout=2 * EVERY_SECONDS)
    assert [(glance.seen, glance.sight.problem) for glance in told] == [(1, ""), (1, GONE.problem), (3, "")]
    assert [glance.sight.age_seconds for glance in told] == [0.0, EVERY_SECONDS, 0.0]


@pytest.mark.parametrize("looks", [(GONE,), (1, GONE)])
def test_a_first_look_or_a_last_one_that_fails_is_an_error(looks):
    with pytest.raises(ClusterError, match="cannot be reached"):
        watched(*looks, timeout=EVERY_SECONDS * (len(looks) - 1))


def test_a_question_without_an_answer_is_told_once_it_is_late_and_ends_the_watch_when_the_time_is_up():
    clock, told = FakeClock(), []
    with pytest.raises(ClusterError, match=r"The time is up.*reading commits on A"):
        watch_groups(lambda: Look(clock, 1, 1000), 10.0, clock, told.append)
    assert all(glance.is_tick for glance in told) and clock.waited == 10.0
    late = [glance.sight.waiting is not None for glance in told]
    assert late == [number * TICK_SECONDS > EVERY_SECONDS for number in range(1, 11)]

"""The loop of a watch: it ends in time, goes on where a look fails, and never passes old for new."""

import pytest

from migrate.errors import ClusterError
from migrate.progress import LONGEST_SECONDS
from migrate.watch import EVERY_SECONDS, LATE_AFTER, TICK_SECONDS, Waiting, watch_until_over
from tests.fakes import FakeClock

GONE = ClusterError("A cannot be reached.", "Start it.")


class Look:
    """A look that takes so many ticks, all for one question unless it `answers` each, and then has this answer."""

    def __init__(self, clock, answer, ticks=0, answers=False):
        self.clock, self.answer, self.ticks, self.answers = clock, answer, ticks, answers
        self.waited = 0.0

    def ended_within(self, seconds):
        if not self.ticks:
            return True
        self.ticks -= 1
        self.waited += seconds
        self.clock.wait(seconds)
        return False

    def waiting(self):
        return Waiting("reading commits on A", TICK_SECONDS if self.answers else self.waited)

    def result(self):
        if self.answer is GONE:
            raise GONE
        return self.answer


class Watched:
    """A watch of these looks, given as answers or as what `Look` takes."""

    def __init__(self, *looks):
        self.clock, self.told, self.begun = FakeClock(), [], []
        self.looks = iter([look if isinstance(look, tuple) else (look,) for look in looks])

    def begin(self):
        self.begun.append(self.clock.waited)
        return Look(self.clock, *next(self.looks))

    def until(self, timeout):
        return watch_until_over(self.begin, timeout, self.clock, self.told.append)

    def lines(self):
        """Return what a log has lines for: all but the ticks."""
        return [glance for glance in self.told if not glance.is_tick]


def test_it_looks_every_two_seconds_and_begins_no_other_look_once_the_time_is_up():
    watched = Watched(1, 2, 3)
    assert watched.until(2 * EVERY_SECONDS) == 2 and [glance.seen for glance in watched.told] == [1, 2]
    assert watched.begun == [0.0, EVERY_SECONDS] and watched.clock.waited == 2 * EVERY_SECONDS
    once = Watched(1)
    assert once.until(0.0) == 1 and once.clock.waited == 0


def test_the_cluster_is_left_alone_after_a_look_however_long_it_took():
    watched = Watched((1, 5, True), (2, 5, True), 3)
    assert watched.until(2 * (5 + EVERY_SECONDS) + 1) == 3
    assert watched.begun == [0.0, 5 + EVERY_SECONDS, 2 * (5 + EVERY_SECONDS)]


def test_a_look_that_fails_leaves_the_last_one_with_its_age_and_the_reason():
    watched = Watched(1, GONE, 3)
    assert watched.until(3 * EVERY_SECONDS) == 3
    assert [(told.seen, told.freshness.problem) for told in watched.told] == [(1, ""), (1, GONE.problem), (3, "")]
    assert [told.freshness.age_seconds for told in watched.told] == [0.0, EVERY_SECONDS, 0.0]


@pytest.mark.parametrize("looks", [(GONE,), (1, GONE), (1, GONE, GONE)])
def test_a_first_look_or_a_last_one_that_fails_is_an_error_and_is_not_said_to_be_tried_again(looks):
    watched = Watched(*looks)
    with pytest.raises(ClusterError, match="cannot be reached"):
        watched.until(EVERY_SECONDS * len(looks))
    assert len(watched.told) == len(looks) - 1


@pytest.mark.parametrize("slow", [(2, 2), (2, 30, True)], ids=["one short question", "many answers"])
def test_a_slow_look_that_the_cluster_answers_ends_the_watch_though_the_time_is_up_meanwhile(slow):
    watched = Watched(1, slow)
    assert watched.until(EVERY_SECONDS + TICK_SECONDS) == 2
    assert watched.clock.waited == EVERY_SECONDS + slow[1] * TICK_SECONDS
    assert all(glance.freshness.waiting is None for glance in watched.told)


def test_a_question_without_an_answer_is_told_once_it_is_late_and_ends_the_watch_when_the_time_is_up():
    watched = Watched((1, 1000))
    with pytest.raises(ClusterError, match=r"The time is up.*for 10 s to: reading commits on A"):
        watched.until(10.0)
    late = [glance.freshness.waiting is not None for glance in watched.told]
    assert late == [number * TICK_SECONDS > LATE_AFTER for number in range(1, 10)] and watched.clock.waited == 10.0


@pytest.mark.parametrize("before", [(), (1, GONE)], ids=["first look", "after a failure"])
def test_a_late_question_is_worth_a_line_at_once_and_then_ever_more_slowly(before):
    watched = Watched(*before, (1, 1000))
    with pytest.raises(ClusterError):
        watched.until(200.0)
    waited = [glance.freshness.waiting.seconds for glance in watched.lines() if glance.freshness.waiting is not None]
    assert waited == [3.0, 7.0, 15.0, 31.0, *[31.0 + LONGEST_SECONDS * more for more in range(1, 6)]]
    assert len(watched.lines()) == len(before) + len(waited)

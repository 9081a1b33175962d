"""What was read of MM2's topics is kept between passes, and read anew every hour."""

from types import SimpleNamespace

from migrate.extras.follow.session import RENEWED_SECONDS, RenewedMirror
from migrate.model import TopicPartition
from tests.fakes import FakeClock

PLACE = TopicPartition("t", 0)


def test_mm2s_topics_are_read_anew_after_an_hour_and_the_chains_are_those_of_the_pass():
    clock, made = FakeClock(), []

    def make():
        number = len(made)
        made.append(SimpleNamespace(sync_pairs=lambda *asked: ((number, number),)))
        return made[-1]

    mirror = RenewedMirror(make, clock)
    clock.wait(RENEWED_SECONDS - 1)
    assert mirror.of_this_pass() is made[0] and mirror.sync_pairs(PLACE, 9, 9) == ((0, 0),)
    clock.wait(1)
    assert mirror.sync_pairs(PLACE, 9, 9) == ((0, 0),)
    assert mirror.of_this_pass() is made[1] and mirror.sync_pairs(PLACE, 9, 9) == ((1, 1),) and len(made) == 2

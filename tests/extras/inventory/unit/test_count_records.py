"""How many records lie between two offsets: read in full, or not counted at all."""

import pytest

from migrate.extras.inventory.compare import MOST_OFFSETS, Stretch, count_plan, count_records
from migrate.match.protocol import Limits, OffsetRange
from migrate.model import TopicPartition
from tests.extras.inventory.unit.comparedscene import ThirdsLog

P, Q = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
NO_LIMITS = Limits(1_000_000, None)


def counted(stretches, log=None, limits=NO_LIMITS):
    return count_records(log or ThirdsLog(), count_plan(stretches, limits, 1000, 100), stretches)


def test_records_are_counted_and_not_offsets():
    assert counted([Stretch(P, 0, 10), Stretch(P, 1, 3), Stretch(Q, 3, 4)]) == {
        Stretch(P, 0, 10): 4, Stretch(P, 1, 3): 0, Stretch(Q, 3, 4): 1,
    }  # fmt: skip


def test_what_overlaps_is_read_once():
    plan = count_plan([Stretch(P, 0, 10), Stretch(P, 5, 20), Stretch(P, 30, 40)], NO_LIMITS, 1000, 100)
    assert plan.ranges == {P: (OffsetRange(0, 20), OffsetRange(30, 40))}
    assert (plan.offsets, plan.bytes) == (30, 300)


def test_what_retention_has_begun_to_remove_is_not_counted():
    assert counted([Stretch(P, 0, 10), Stretch(P, 20, 30)], ThirdsLog(cut=1)) == {Stretch(P, 20, 30): 3}


def test_what_may_not_be_read_is_not_counted_and_takes_nothing_from_the_others():
    assert counted([Stretch(P, 0, 3), Stretch(Q, 0, 3)], ThirdsLog(refused=(P,))) == {Stretch(Q, 0, 3): 1}


@pytest.mark.parametrize("limits", [Limits(9, None), Limits(1_000_000, 1090)])
def test_a_partition_beyond_a_limit_is_left_out_and_the_nearest_ones_come_first(limits):
    plan = count_plan([Stretch(P, 0, 50), Stretch(Q, 0, 9)], limits, 1000, 100)
    assert list(plan.ranges) == [Q]


def test_what_comparing_has_read_counts_towards_the_limit_and_without_records_a_size_is_assumed():
    assert not count_plan([Stretch(P, 0, 1)], Limits(1_000_000, 1000), 1000, 100).ranges
    assert count_plan([Stretch(P, 0, 2)], NO_LIMITS, 0, 0).bytes == 2000


def test_more_than_this_process_holds_is_left_out():
    assert not count_plan([Stretch(P, 0, MOST_OFFSETS + 1)], Limits(MOST_OFFSETS * 2, None), 1000, 100).ranges

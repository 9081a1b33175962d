"""How many records lie between two offsets: read in full, or not counted at all."""

import pytest

from migrate.extras.inventory.compare import MOST_OFFSETS, Stretch, count_plan, count_records
from migrate.match.protocol import Limits, OffsetRange
from migrate.model import TopicPartition
from tests.extras.inventory.unit.comparedscene import ThirdsLog

P, Q = TopicPartition("A.t", 0), TopicPartition("A.t", 1)
NO_LIMITS = Limits(1_000_000, None)


def planned(*stretches, limits=NO_LIMITS):
    return count_plan(stretches, limits, 1000, 100)


@pytest.mark.parametrize(("log", "expected"), [
    (ThirdsLog(), {Stretch(P, 0, 10): 4, Stretch(P, 1, 3): 0, Stretch(P, 20, 30): 3, Stretch(Q, 3, 4): 1}),
    # What retention has begun to remove, or may not be read, takes nothing from the others.
    (ThirdsLog(cut=1), {Stretch(P, 1, 3): 0, Stretch(P, 20, 30): 3, Stretch(Q, 3, 4): 1}),
    (ThirdsLog(refused=(P,)), {Stretch(Q, 3, 4): 1}),
])  # fmt: skip
def test_records_are_counted_and_not_offsets_where_all_of_them_can_be_read(log, expected):
    stretches = [Stretch(P, 0, 10), Stretch(P, 1, 3), Stretch(P, 20, 30), Stretch(Q, 3, 4)]
    assert count_records(log, planned(*stretches), stretches) == expected


def test_what_overlaps_is_read_once():
    plan = planned(Stretch(P, 0, 10), Stretch(P, 5, 20), Stretch(P, 30, 40))
    assert plan.ranges == {P: (OffsetRange(0, 20), OffsetRange(30, 40))}
    assert (plan.offsets, plan.bytes) == (30, 300)
    assert count_plan([Stretch(P, 0, 2)], NO_LIMITS, 0, 0).bytes == 2000, "without records a size is assumed"


@pytest.mark.parametrize("limits", [Limits(9, None), Limits(1_000_000, 1090)])
def test_a_partition_beyond_a_limit_is_left_out_and_the_nearest_ones_come_first(limits):
    assert list(planned(Stretch(P, 0, 50), Stretch(Q, 0, 9), limits=limits).ranges) == [Q]


def test_what_comparing_has_read_counts_towards_the_limit_and_so_does_what_this_process_holds():
    assert not planned(Stretch(P, 0, 1), limits=Limits(1_000_000, 1000)).ranges
    assert not planned(Stretch(P, 0, MOST_OFFSETS + 1), limits=Limits(MOST_OFFSETS * 2, None)).ranges

"""What of the offsets topic is pinned, and what its reading will cost."""

import pytest

from migrate.errors import ClusterError
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_export import Exported, named_groups, pin_offsets_topic
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from tests.fakes import FakeCluster


def cluster(ends=(10, 20, 30), **more):
    ranges = {TopicPartition(OFFSETS_TOPIC, n): LogRange(5, end) for n, end in enumerate(ends)}
    return FakeCluster(ranges=ranges, **more)


def test_every_partition_is_pinned_at_its_last_stable_offset():
    pin = pin_offsets_topic(cluster(), None)
    assert pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 20), 2: LogRange(5, 30)}
    assert (pin.partitions, pin.offsets, pin.open_ends) == (3, 45, {})
    assert pin.fetched_bytes == 45 * 110 * 2


def test_of_groups_that_are_named_only_their_partitions_are_read():
    pin = pin_offsets_topic(cluster(), {"billing"})
    assert set(pin.logs) == {partition_of("billing", 3)} and pin.partitions == 3


def test_an_end_that_a_transaction_holds_back_is_told():
    pin = pin_offsets_topic(cluster(watermarks={TopicPartition(OFFSETS_TOPIC, 1): 23}), None)
    assert pin.open_ends == {1: 23} and pin.logs[1].end == 20


def test_watermarks_are_asked_for_first_so_that_a_growing_log_is_no_open_transaction():
    asked = []
    pin_offsets_topic(cluster(on_call=asked.append), None)
    assert asked.index("high_watermarks") < asked.index("log_ranges")


def test_a_topic_that_is_not_shown_is_not_visible():
    with pytest.raises(ClusterError, match="target B does not show __consumer_offsets"):
        pin_offsets_topic(FakeCluster(), None)


def test_an_end_that_is_not_told_is_an_error():
    broken = cluster()
    broken.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    with pytest.raises(ClusterError, match="did not tell the ends of __consumer_offsets-1 .LEADER_NOT_AVAILABLE"):
        pin_offsets_topic(broken, None)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (Filters(), None),
        (Filters.from_options(groups=["a-b", "c_1"]), {"a-b", "c_1"}),
        (Filters.from_options(groups=["a.b"]), None),
        (Filters.from_options(groups=["a-b", "c.*"]), None),
        (Filters(groups_file=frozenset({"x.y"})), {"x.y"}),
    ],
)
def test_only_names_that_can_mean_nothing_else_narrow_what_is_read(filters, wanted):
    assert named_groups(filters) == wanted


def test_counts_add_up():
    exported = Exported({"commit": 5, "type-5": 1}, {"commit": 2}, {"superseded": 3, "type-5": 1})
    assert (exported.read, exported.lines) == (6, 2)

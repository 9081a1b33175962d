"""What of the offsets topic is pinned, and what its reading will cost."""

import pytest

from migrate.errors import ClusterError
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import PATIENCE_SECONDS, named_groups, past_open_transactions, pin_offsets_topic
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from tests.fakes import FakeClock, FakeCluster


def cluster(ends=(10, 20, 30), **more):
    ranges = {TopicPartition(OFFSETS_TOPIC, n): LogRange(5, end) for n, end in enumerate(ends)}
    return FakeCluster(ranges=ranges, **more)


def test_every_partition_is_pinned_at_its_last_stable_offset():
    pin = pin_offsets_topic(cluster(), None)
    assert pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 20), 2: LogRange(5, 30)}
    assert (pin.partitions, pin.offsets, pin.open_ends) == (3, 45, {})
    assert (pin.offsets_bytes, pin.fetched_bytes) == (45 * 110, 45 * 110 * 2)


def test_of_groups_that_are_named_only_their_partitions_are_read():
    pin = pin_offsets_topic(cluster(), {"billing"})
    assert set(pin.logs) == {partition_of("billing", 3)} and pin.partitions == 3


def test_watermarks_are_asked_for_first_so_that_a_growing_log_is_no_open_transaction():
    asked = []
    pin_offsets_topic(cluster(on_call=asked.append), None)
    assert asked.index("high_watermarks") < asked.index("log_ranges")


def ending_after(looks, watermark, end):
    """A cluster whose open transaction ends at the so manieth look, while the log grows on."""
    asked = []

    def on_call(call):
        if call == "log_ranges":
            asked.append(call)
            if len(asked) > looks:
                held.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = LogRange(5, end)

    held = cluster(watermarks={TopicPartition(OFFSETS_TOPIC, 1): watermark}, on_call=on_call)
    return held


def test_a_transaction_that_ends_soon_is_waited_for_and_the_moment_stays_that_of_the_pin():
    clock, held = FakeClock(), ending_after(3, 23, 40)
    pin = past_open_transactions(held, pin_offsets_topic(held, None), clock)
    assert pin.open_ends == {} and pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 23), 2: LogRange(5, 30)}
    assert 0 < clock.waited < PATIENCE_SECONDS


def test_one_that_follows_an_ended_transaction_is_not_waited_for():
    held = ending_after(1, 23, 25)
    held.watermarks[TopicPartition(OFFSETS_TOPIC, 1)] = 23
    pin = pin_offsets_topic(held, None)
    held.watermarks[TopicPartition(OFFSETS_TOPIC, 1)] = 99
    assert past_open_transactions(held, pin, FakeClock()).open_ends == {}


def test_a_transaction_that_stays_open_is_waited_for_only_so_long():
    clock, held = FakeClock(), ending_after(1000, 23, 40)
    pin = past_open_transactions(held, pin_offsets_topic(held, None), clock)
    assert pin.open_ends == {1: 23} and pin.logs[1] == LogRange(5, 20) and clock.waited == PATIENCE_SECONDS
    nothing = FakeClock()
    past_open_transactions(held, pin_offsets_topic(cluster(), None), nothing)
    assert nothing.waited == 0


def test_an_end_that_is_not_told_is_an_error():
    broken = cluster()
    broken.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    with pytest.raises(ClusterError, match="returned no log ends of __consumer_offsets-1 .LEADER_NOT_AVAILABLE"):
        pin_offsets_topic(broken, None)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (Filters(), None),
        (Filters.from_options(groups=["a-b", "c_1"]), {"a-b", "c_1"}),
        (Filters.from_options(groups=["a.b"]), None),
        (Filters.from_options(groups=[r"a\.b", "c-1"]), {"a.b", "c-1"}),
        (Filters.from_options(groups=["a-b", "c.*"]), None),
        (Filters(groups_file=frozenset({"x.y"})), {"x.y"}),
    ],
)
def test_only_names_that_can_mean_nothing_else_narrow_what_is_read(filters, wanted):
    assert named_groups(filters) == wanted

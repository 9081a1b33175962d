"""What of the offsets topic is pinned, and what its reading will cost."""

import pytest

from migrate.errors import ClusterError
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.filters import Filters
from migrate.survey.offsets_pin import PATIENCE_SECONDS, named_groups, past_open_transactions, pin_offsets_topic
from migrate.survey.offsets_topic import OFFSETS_TOPIC, partition_of
from tests.fakes import FakeClock, FakeCluster


def cluster(**more):
    ranges = {TopicPartition(OFFSETS_TOPIC, n): LogRange(5, end) for n, end in enumerate((10, 20, 30))}
    return FakeCluster(ranges=ranges, **more)


def past_a_transaction(ends_at_look, now_ends=40, now_at=40):
    """The pin once a transaction of partition 1, open up to 23, ended at some look, and how long that took."""
    held, clock = cluster(watermarks={TopicPartition(OFFSETS_TOPIC, 1): 23}), FakeClock()
    pin = pin_offsets_topic(held, None)

    def on_call(call):
        if call == "log_ranges" and held.calls[call] >= ends_at_look:
            held.ranges[TopicPartition(OFFSETS_TOPIC, 1)] = LogRange(5, now_ends)
            held.watermarks[TopicPartition(OFFSETS_TOPIC, 1)] = now_at

    held.on_call = on_call
    return past_open_transactions(held, pin, clock), clock.waited


def test_a_transaction_that_ends_soon_is_waited_for_and_the_moment_stays_that_of_the_pin():
    pin, waited = past_a_transaction(3)
    assert pin.open_ends == {} and pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 23), 2: LogRange(5, 30)}
    assert 0 < waited < PATIENCE_SECONDS
    followed_by_another, _ = past_a_transaction(1, now_ends=25, now_at=99)
    assert followed_by_another.open_ends == {}


def test_a_transaction_that_stays_open_is_waited_for_only_so_long():
    pin, waited = past_a_transaction(1000)
    assert pin.open_ends == {1: 23} and pin.logs[1] == LogRange(5, 20) and waited == PATIENCE_SECONDS
    nothing = FakeClock()
    past_open_transactions(cluster(), pin_offsets_topic(cluster(), None), nothing)
    assert nothing.waited == 0


def test_every_partition_or_those_of_the_groups_that_are_named_is_pinned_at_its_last_stable_offset():
    asked = []
    pin = pin_offsets_topic(cluster(on_call=asked.append), None)
    assert pin.logs == {0: LogRange(5, 10), 1: LogRange(5, 20), 2: LogRange(5, 30)}
    assert (pin.partitions, pin.offsets, pin.open_ends) == (3, 45, {})
    assert (pin.offsets_bytes, pin.fetched_bytes) == (45 * 110, 45 * 110 * 2)
    assert asked.index("high_watermarks") < asked.index("log_ranges"), "a growing log is no open transaction"
    pin = pin_offsets_topic(cluster(), {"billing"})
    assert set(pin.logs) == {partition_of("billing", 3)} and pin.partitions == 3


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

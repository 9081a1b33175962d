"""A group as its coordinator describes it."""

import pytest

from migrate.described_group import Coordinator, GroupDescription
from migrate.model import TopicPartition
from tests.unit.describedgroups import COORDINATOR, member


def test_a_member_yields_the_partitions_that_it_is_assigned():
    one = member(orders=(2, 0), pay=(1,))
    assert list(one.partitions()) == [
        TopicPartition("orders", 2),
        TopicPartition("orders", 0),
        TopicPartition("pay", 1),
    ]


@pytest.mark.parametrize("state", ["Empty", "Dead", "Stable", "PreparingRebalance", "Unknown"])
def test_a_group_is_stopped_only_in_a_state_that_says_so_and_without_a_member(state):
    stopped = GroupDescription(state, (), "", COORDINATOR)
    assert stopped.is_stopped == (state in ("Empty", "Dead"))
    assert not GroupDescription(state, (member(),), "", COORDINATOR).is_stopped


def test_a_coordinator_is_printed_as_kafkas_own_tool_prints_it():
    assert str(Coordinator(3, "kafka-3", 9093)) == "kafka-3:9093 (3)"
    assert str(Coordinator(3, "::1", 9093)) == "[::1]:9093 (3)"

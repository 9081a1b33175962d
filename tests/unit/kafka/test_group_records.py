"""Which partitions of the offsets topic an open transaction hides; the rest is tested against real brokers."""

from types import SimpleNamespace

from migrate.kafka.admin import told_offset
from migrate.kafka.group_facts import UNTOLD, open_partitions
from migrate.model import Failure


def test_a_partition_is_hidden_if_its_stable_end_is_below_what_was_written_before():
    assert open_partitions({0: 5, 1: 5, 2: 5}, {0: 5, 1: 4, 2: 9}) == {1}
    assert open_partitions({}, {}) == frozenset()


def test_an_end_that_nobody_told_is_never_taken_for_one_that_is_reached():
    # ListOffsets answers -1 and no error where a partition's leader did not answer.
    silent = told_offset(SimpleNamespace(offset=-1))
    assert isinstance(silent, Failure)
    assert open_partitions({0: silent}, {0: 9}) == open_partitions({0: 5}, {0: silent}) == silent
    assert open_partitions({0: 5}, {}) == UNTOLD

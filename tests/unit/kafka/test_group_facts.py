"""Which partitions of the offsets topic an open transaction hides; the rest is tested against real brokers."""

from types import SimpleNamespace

from migrate.kafka.cluster_reader import told_offset
from migrate.kafka.group_facts import UNTOLD, ConfluentGroupFacts, open_partitions
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side


def test_a_partition_is_hidden_if_its_stable_end_is_below_what_was_written_before():
    assert open_partitions({0: 5, 1: 5, 2: 5}, {0: 5, 1: 4, 2: 9}) == {1}
    assert open_partitions({}, {}) == frozenset()


def test_an_end_that_nobody_told_is_never_taken_for_one_that_is_reached():
    # ListOffsets answers -1 and no error where a partition's leader did not answer.
    silent = told_offset(SimpleNamespace(offset=-1))
    assert isinstance(silent, Failure)
    assert open_partitions({0: silent}, {0: 9}) == open_partitions({0: 5}, {0: silent}) == silent
    assert open_partitions({0: 5}, {}) == UNTOLD


def test_records_are_read_by_a_connection_that_no_other_question_can_drop(monkeypatch):
    """In a thread beside the others: each would be answered that its client was destroyed, or find none."""
    asked = []

    def records(self, groups, with_gaps, any_will_do, most=None):
        asked.append(self._connection)
        return {}

    monkeypatch.setattr(ConfluentGroupFacts, "_records", records)
    facts = ConfluentGroupFacts(ClientSettings(Side.TARGET, "B", "target B", {"bootstrap.servers": "127.0.0.1:1"}), 1.0)
    assert facts.commit_records(["g"]) == facts.group_records(["g"]) == {}
    assert len({id(connection) for connection in (*asked, facts._connection)}) == 3

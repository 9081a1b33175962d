"""By which connections questions about groups go; the rest is tested against real brokers."""

from migrate.kafka.group_facts import ConfluentGroupFacts
from migrate.kafka.group_records import GroupRecords
from migrate.kafka.settings import ClientSettings
from migrate.model import Side


def test_records_are_read_by_one_connection_that_no_other_question_can_drop(monkeypatch):
    """In a thread beside the others: each would be answered that its client was destroyed, or find none."""
    asked = []

    def records(self, groups, with_gaps, any_will_do, most):
        asked.append(self._connection)
        return {}

    monkeypatch.setattr(GroupRecords, "_read", records)
    facts = ConfluentGroupFacts(ClientSettings(Side.TARGET, "B", "target B", {"bootstrap.servers": "127.0.0.1:1"}), 1.0)
    assert facts.commit_records(["g"]) == facts.group_records(["g"]) == {}
    assert facts._connection not in asked
    assert asked[0] is asked[1], "a follow of days would make a client for every pass"

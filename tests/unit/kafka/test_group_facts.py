"""By which connections questions about groups go; the rest is tested against real brokers."""

from types import SimpleNamespace

import pytest

from migrate.described_group import Coordinator, GroupDescription, ListedGroup
from migrate.kafka import group_facts
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.connection import Connection
from migrate.kafka.group_facts import ConfluentGroupFacts
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, Side
from migrate.survey.offsets_topic import GroupLog
from tests.offsetsbytes import group_key

SETTINGS = ClientSettings(Side.TARGET, "B", "target B", {"bootstrap.servers": "127.0.0.1:1"})


def facts_of(monkeypatch, records, **protocol_types):
    """A cluster whose listing of consumer groups shows "classic" alone, and the old listing these groups beside it.

    The old listing shows a group of a newer protocol as "Dead" and without a type. `records` are of the offsets topic.
    """
    listed = [
        SimpleNamespace(
            id=group, protocol_type=protocol_type, state="Empty" if protocol_type else "Dead", error=None, members=(),
            protocol="", broker=SimpleNamespace(id=1, host="b", port=9092),
        )
        for group, protocol_type in {"classic": "consumer", **protocol_types}.items()
    ]  # fmt: skip
    consumers = SimpleNamespace(errors=(), valid=[SimpleNamespace(group_id="classic")])
    monkeypatch.setattr(Connection, "answer", lambda self, what, ask: consumers)
    monkeypatch.setattr(ConfluentGroupFacts, "_listed", lambda self: listed)

    def read(admin, config, groups, most=None, any_will_do=False):
        if isinstance(records, Failure):
            return records
        log = GroupLog(groups)
        log.take(records, [b"\0\0\1\1\0"] * len(records))
        return log.groups()

    monkeypatch.setattr(group_facts, "group_records", read)
    return KafkaCluster(SETTINGS, 1.0)


@pytest.mark.parametrize(("record_type", "kind"), [(15, "share"), (9, "share"), (11, "share"), (24, "streams")])
def test_a_group_that_nobody_has_joined_is_of_the_kind_that_any_of_its_records_tells(monkeypatch, record_type, kind):
    facts = facts_of(monkeypatch, [group_key(record_type, "new")], new="", worker="connect")
    assert facts.group_kinds() == {"classic": "consumer", "new": kind, "worker": "other"}
    others = facts.other_groups()
    assert not isinstance(others, Failure) and others["new"].kind == kind


@pytest.mark.parametrize(
    "records", [[], [group_key(25, "new")], Failure("TOPIC_AUTHORIZATION_FAILED", "no READ")],
    ids=["none", "of a newer Kafka", "unread"],
)  # fmt: skip
def test_a_kind_that_nothing_tells_is_unknown_and_other_groups_keep_theirs(monkeypatch, records):
    facts = facts_of(monkeypatch, records, new="", worker="connect", sharers="share")
    assert facts.group_kinds() == {"classic": "consumer", "new": "unknown", "worker": "other", "sharers": "share"}


def test_a_group_of_a_connect_worker_is_described_by_the_old_listing(monkeypatch):
    others = facts_of(monkeypatch, [], worker="connect").other_groups()
    assert others == {
        "worker": ListedGroup("classic", "connect", GroupDescription("Empty", (), "", Coordinator(1, "b", 9092)))
    }


@pytest.mark.parametrize("changes", [{"state": "Dead"}, {"error": SimpleNamespace()}, {"protocol_type": "consumer"}])
def test_what_the_old_listing_does_not_describe_in_full_is_not_said_to_be_without_members(monkeypatch, changes):
    facts = facts_of(monkeypatch, [], worker="connect")
    (worker,) = [group for group in facts._facts()._listed() if group.id == "worker"]
    worker.__dict__.update(changes)
    others = facts.other_groups()
    assert isinstance(others["worker"].description, Failure)

"""By which connections questions about groups go, and what of the offsets topic is read for them."""

from types import SimpleNamespace

import pytest

from migrate.described_group import Coordinator, GroupDescription, ListedGroup
from migrate.kafka import group_facts
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.connection import Connection
from migrate.kafka.group_facts import ConfluentGroupFacts, group_records, read_offsets_topic
from migrate.kafka.settings import ClientSettings
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.survey import offsets_pin
from migrate.survey.offsets_topic import OFFSETS_TOPIC, GroupLog, LogMemory, partition_of
from tests.fakes import FakeCluster
from tests.mockcluster import FETCH
from tests.offsetsbytes import group_key
from tests.unit.logscene import DEADLINE_SECONDS, LENGTH, NOWHERE, REFUSED, config

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


@pytest.mark.parametrize("records", [[], [group_key(25, "new")], Failure("TOPIC_AUTHORIZATION_FAILED", "no READ")])
def test_a_kind_that_nothing_tells_is_unknown_and_other_groups_keep_theirs(monkeypatch, records):
    facts = facts_of(monkeypatch, records, new="", worker="connect", sharers="share")
    assert facts.group_kinds() == {"classic": "consumer", "new": "unknown", "worker": "other", "sharers": "share"}


@pytest.mark.parametrize("changes", [{"state": "Dead"}, {"error": SimpleNamespace()}, {"protocol_type": "consumer"}])
def test_a_connect_worker_that_the_old_listing_describes_by_half_is_not_without_members(monkeypatch, changes):
    facts = facts_of(monkeypatch, [], worker="connect")
    empty = GroupDescription("Empty", (), "", Coordinator(1, "b", 9092))
    assert facts.other_groups() == {"worker": ListedGroup("classic", "connect", empty)}
    (worker,) = [group for group in facts._facts()._listed() if group.id == "worker"]
    worker.__dict__.update(changes)
    assert isinstance(facts.other_groups()["worker"].description, Failure)


PARTITIONS = 5
OWN = {group: TopicPartition(OFFSETS_TOPIC, partition_of(group, PARTITIONS)) for group in ("a", "b")}


@pytest.fixture
def read(monkeypatch):
    """The partitions of the offsets topic that were read, each with the names of the groups that were looked for."""
    found = {}
    monkeypatch.setattr(group_facts, "read_offsets_topic", lambda config, name, logs, seconds: found.update(logs))
    monkeypatch.setattr(offsets_pin, "PATIENCE_SECONDS", 0.0)
    return found


def cluster(**changes):
    return FakeCluster(ranges={TopicPartition(OFFSETS_TOPIC, n): LogRange(0, 9) for n in range(PARTITIONS)}, **changes)


def test_behind_an_open_transaction_nothing_is_known_of_groups_but_their_kinds(read):
    behind = cluster(watermarks={OWN["a"]: 10})
    assert group_records(behind, {}, ["a", "b"]) == {} and set(read) == {OWN["b"].partition}
    group_records(behind, {}, ["a"], any_will_do=True)
    assert set(read) == {OWN["a"].partition, OWN["b"].partition}


def test_an_end_that_is_not_reported_hides_all(read):
    silent = cluster()
    silent.ranges[OWN["a"]] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    assert isinstance(group_records(silent, {}, ["a", "b"]), Failure)
    assert isinstance(group_records(FakeCluster(), {}, ["a"]), Failure) and not read


def test_more_records_than_may_be_read_are_not_read(read):
    assert group_records(cluster(), {}, ["a", "b"], most=18) == {}
    found = group_records(cluster(), {}, ["a", "b"], most=17)
    assert isinstance(found, Failure) and found.code == "TOO_MANY_RECORDS" and "up to 18 records" in found.message
    assert group_records(cluster(), {}, [], most=0) == {}


@pytest.fixture
def reader(monkeypatch):
    """An offsets topic that is read: where each reading of a partition begins, and what it comes to."""
    found = SimpleNamespace(starts=[], failure=None, records=9)

    def read_some(config, name, logs, seconds):
        found.starts += [log.next_offset for log in logs.values()]
        for log in logs.values():
            log.taken += found.records - log.next_offset
            log.next_offset = found.records
        return found.failure

    monkeypatch.setattr(group_facts, "read_offsets_topic", read_some)
    return found


def test_with_a_memory_only_what_is_new_is_read_and_only_that_counts(reader):
    memory, topic = LogMemory(), cluster()
    assert group_records(topic, {}, ["a"], most=9, memory=memory) == {} and memory.records_read == 9
    topic.ranges[OWN["a"]], reader.records = LogRange(0, 12), 12
    assert group_records(topic, {}, ["a"], most=3, memory=memory) == {}
    assert reader.starts == [0, 9] and memory.records_read == 12


def test_what_was_read_by_a_reading_that_failed_of_a_log_that_lost_records_or_for_other_groups_is_read_anew(reader):
    memory, topic = LogMemory(), cluster()
    reader.failure = Failure("_TIMED_OUT", "no answer")
    assert group_records(topic, {}, ["a"], memory=memory) is reader.failure
    reader.failure = None
    other = next(name for name in map(str, range(100)) if partition_of(name, PARTITIONS) == OWN["a"].partition)
    for groups in (["a"], ["a", other], ["a"]):
        group_records(topic, {}, groups, memory=memory)
    assert reader.starts == [0, 0, 0, 9], "the records of the other one may lie before"
    topic.ranges[OWN["a"]] = LogRange(0, 8)
    group_records(topic, {}, ["a"], memory=memory)
    assert reader.starts == [0, 0, 0, 9, 0]


class Log(GroupLog):
    """What the reader of the offsets topic was given."""

    def __init__(self):
        super().__init__()
        self.records = []

    def take(self, keys, values):
        self.records += zip(keys, values, strict=True)


def test_the_offsets_topic_is_read_to_its_end_each_partition_in_log_order_into_its_own_log(cluster):
    logs = {0: Log(), 1: Log(), 2: Log()}
    logs[1].next_offset = LENGTH - 2  # where an earlier reading came to
    for _ in range(2):
        assert read_offsets_topic(config(cluster), "B", logs, DEADLINE_SECONDS) is None
        for partition, log in logs.items():
            numbers = range(LENGTH - 2 if partition == 1 else 0, LENGTH)
            assert log.records == [(b"k%d" % partition, b"v%d" % number) for number in numbers]
            assert (log.taken, log.next_offset) == (len(numbers), LENGTH)


def test_an_offsets_topic_that_can_not_be_read_in_full_is_a_failure(cluster):
    assert read_offsets_topic(NOWHERE, "B", {0: Log()}, 0.5) == Failure("_TIMED_OUT", "no answer within 0.5 s", True)
    cluster.will_answer(FETCH, REFUSED)
    failure = read_offsets_topic(config(cluster), "B", {0: Log(), 1: Log()}, DEADLINE_SECONDS)
    assert failure is not None and failure.code == "TOPIC_AUTHORIZATION_FAILED"

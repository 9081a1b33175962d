"""What a real broker tells of its groups: their kinds, since when they are empty, and what it forbids."""

import shlex
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AclOperation, ResourceType  # type: ignore[attr-defined]

from migrate.kafka import group_facts
from migrate.kafka.admin import ConfluentAdmin
from migrate.kafka.client_config import client_settings
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.group_facts import ConfluentGroupFacts
from migrate.kafka.settings import ClientSettings
from migrate.mm2.flow import Cluster as FlowCluster
from migrate.model import Commit, Failure, GroupState, Side
from migrate.model import TopicPartition as Partition
from migrate.show.fence import fence
from migrate.survey.cluster import CLEANUP_POLICY, TIMESTAMP_TYPE, BrokerSettings
from migrate.survey.connect_topics import read_connect_topics
from migrate.survey.expiry import OffsetClocks, expiry_of
from migrate.survey.offsets_topic import OFFSETS_TOPIC, READER_GROUP_PREFIX, GroupKind, GroupLog, GroupRecord
from migrate.survey.other_log import other_topic
from tests.builders import make_plan, make_row
from tests.integration.clusters import CALL_SECONDS, commit, create_topic, delete_before, delete_groups, denied
from tests.integration.members import member_of_kip_848, share_consumer, stay_and_leave
from tests.integration.rawmember import commit_for
from tests.lab.cluster import Cluster
from tests.lab.jars import java_executable
from tests.lab.process import java_command
from tests.lab.waiting import wait_until

SIMPLE = [f"simple-{n}" for n in range(20)]
ACL_COMMAND = "org.apache.kafka.tools.AclCommand"
WRITER = Path(__file__).with_name("GroupRecords.java")
HOUR_MS = 3_600_000
DENIED = "TOPIC_AUTHORIZATION_FAILED"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker that refuses where an ACL says so, with a group of every kind, all of them without members."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "offsets.retention.minutes": "4321",
    }
    made = Cluster("groups", tmp_path_factory.mktemp("groups"), overrides=settings)
    try:
        made.start()
        create_topic(made.bootstrap, "t", 1)
        # Members first: they wait for coordinators that are only just coming up.
        stay_and_leave(made.bootstrap, "classic", "t")
        with member_of_kip_848(made.bootstrap, "kip-848", "t"):
            pass
        commit(made.bootstrap, {group: {("t", 0): 0} for group in [*SIMPLE, "kip-848"]})
        with share_consumer(made.jars, made.bootstrap, "sharers", "t"):
            pass
        yield made
    finally:
        made.kill()


def settings_of(cluster: Cluster, side: Side = Side.TARGET) -> ClientSettings:
    return client_settings(FlowCluster(side, "B", {"bootstrap.servers": cluster.bootstrap}))


@pytest.fixture
def facts(cluster: Cluster) -> Iterator[KafkaCluster]:
    with closing(KafkaCluster(settings_of(cluster), CALL_SECONDS)) as made:
        yield made


def records(facts: KafkaCluster, *groups: str) -> dict[str, GroupRecord]:
    found = facts.group_records([*groups])
    assert not isinstance(found, Failure)
    return dict(found)


def test_groups_are_listed_with_their_kinds_and_records_tell_them_and_since_when_a_classic_one_is_empty(
    facts: KafkaCluster,
) -> None:
    kinds = facts.group_kinds()
    assert kinds == dict.fromkeys([*SIMPLE, "classic", "kip-848"], "consumer") | {"sharers": "share"}
    found = records(facts, *SIMPLE, "classic", "kip-848", "sharers", "nobody")
    assert {g: r.kind for g, r in found.items()} == dict.fromkeys(SIMPLE, GroupKind.SIMPLE) | {
        "classic": GroupKind.CLASSIC, "kip-848": GroupKind.CONSUMER, "sharers": GroupKind.SHARE,
    }  # fmt: skip
    now, classic = time.time() * 1000, found["classic"]
    assert classic.protocol_type == "consumer" and classic.empty_since_ms is not None
    assert classic.committed_ms[Partition("t", 0)] <= classic.empty_since_ms <= now
    assert facts.broker_settings() == BrokerSettings(4321 * 60_000, True)


def test_of_several_brokers_each_is_asked(tmp_path: Path) -> None:
    pair = Cluster("pair", tmp_path, brokers=2, overrides={"offsets.retention.minutes": "4321"})
    try:
        pair.start()
        told = ConfluentGroupFacts(settings_of(pair), CALL_SECONDS).broker_settings()
        assert told == BrokerSettings(4321 * 60_000, True)
    finally:
        pair.stop()


def test_a_commit_that_carries_an_end_of_its_own_tells_it_and_a_later_one_takes_it_away(
    cluster: Cluster, facts: KafkaCluster
) -> None:
    place, group = Partition("t", 0), "with-retention"
    commit_for(cluster.bootstrap, group, "t", 0, HOUR_MS)
    try:
        told, settings = records(facts, group)[group], facts.broker_settings()
        assert told.expires_ms == {place: told.committed_ms[place] + HOUR_MS}
        now = told.committed_ms[place]
        found = expiry_of(group, GroupState("Empty"), {place}, False, OffsetClocks("B", settings, {group: told}, now))
        assert found.left_ms(now) == HOUR_MS, found.sentence
        commit(cluster.bootstrap, {group: {("t", 0): 0}})
        assert records(facts, group)[group].expires_ms == {}
    finally:
        delete_groups(cluster.bootstrap, [group])


def test_a_classic_groups_record_is_read_in_every_version_that_kafka_itself_writes(cluster: Cluster) -> None:
    written = subprocess.run(
        [java_executable(), "-cp", str(cluster.jars / "*"), str(WRITER)], check=True, capture_output=True, text=True
    )
    lines = [line.split() for line in written.stdout.splitlines()]
    assert {version for version, _, _ in lines} >= {"0", "1", "2", "3", "4"}
    for version, members, value in lines:
        log = GroupLog()
        log.take([bytes.fromhex("0002 0002 6731")], [bytes.fromhex(value)])
        since = 1_700_000_000_000 if int(version) >= 2 and members == "0" else None
        assert log.groups() == {"g1": GroupRecord(GroupKind.CLASSIC, "consumer", since)}, (version, members)


def acls(cluster: Cluster, words: list[str]) -> None:
    """Run a printed `kafka-acls` command; its settings are nobody's in particular."""
    assert words[0] == "kafka-acls.sh"
    settings = cluster.folder / "admin.properties"
    settings.write_text("client.id=fence\n")
    words = [str(settings) if word == settings.name else word for word in words[1:]]
    subprocess.run(java_command(cluster.jars, ACL_COMMAND, *words), check=True, capture_output=True, timeout=60)


def test_a_printed_fence_keeps_a_group_out_lets_it_be_read_and_is_taken_away_by_the_other_line(
    cluster: Cluster, facts: KafkaCluster
) -> None:
    fenced, free = "it's, fenced", "simple-3"
    commit(cluster.bootstrap, {fenced: {("t", 0): 0}})
    header = {"flow": {"source_bootstrap": cluster.bootstrap}, "source_alias": "A"}
    lines = fence(make_plan([make_row(fenced)], **header), None, ("User:ANONYMOUS", "User:other"))
    add, remove, allow = [shlex.split(line) for line in lines if line.lstrip().startswith("kafka-acls.sh ")]
    reader = ConfluentAdmin(settings_of(cluster, Side.SOURCE), CALL_SECONDS)

    def refused(group: str) -> bool:
        try:
            commit(cluster.bootstrap, {group: {("t", 0): 1}})
        except (KafkaException, AssertionError) as error:
            return "GROUP_AUTHORIZATION_FAILED" in str(error)
        return False

    acls(cluster, add)
    try:
        wait_until(lambda: refused(fenced), CALL_SECONDS, "the fence")
        assert not refused(free)
        acls(cluster, allow)

        def seen() -> bool:
            state, commits = reader.group_states([fenced])[fenced], reader.commits([fenced])[fenced]
            return isinstance(state, GroupState) and not isinstance(commits, Failure) and len(commits) == 1

        wait_until(seen, CALL_SECONDS, "the group to be shown although it is fenced")
        assert refused(fenced)
    finally:
        acls(cluster, remove)
        acls(cluster, ["--remove" if word == "--add" else word for word in allow] + ["--force"])
    wait_until(lambda: not refused(fenced), CALL_SECONDS, "the fence to be gone")
    delete_groups(cluster.bootstrap, [fenced])


def test_connects_own_topics_are_told_from_others_of_such_names_by_their_settings(
    cluster: Cluster, facts: KafkaCluster
) -> None:
    worker, other = ("in-offsets", "in-configs"), ("app-offsets", "app-configs")
    for topic in (*worker, *other):
        create_topic(cluster.bootstrap, topic, 1, {"cleanup.policy": "compact" if topic in worker else "delete"})
    found = read_connect_topics(facts, [*worker, *other, "t", "gone-offsets", "gone-configs"], [], "")
    # A topic that does not tell is judged by its name.
    assert {each.topic for each in found} == {*worker, "gone-offsets", "gone-configs"}
    told = facts.topic_settings([*worker, *other, "gone-offsets"], CLEANUP_POLICY)
    assert not isinstance(told, Failure) and isinstance(told["gone-offsets"], Failure)
    assert {topic for topic, policy in told.items() if policy == "compact"} == {*worker}


def test_a_topic_tells_who_stamps_its_records_and_the_time_of_the_newest_and_none_of_an_empty_one(
    cluster: Cluster, facts: KafkaCluster
) -> None:
    create_topic(cluster.bootstrap, "by-broker", 1, {"message.timestamp.type": "LogAppendTime"})
    told = facts.topic_settings(["by-broker", "t", "gone"], TIMESTAMP_TYPE)
    assert not isinstance(told, Failure) and isinstance(told["gone"], Failure)
    assert (told["by-broker"], told["t"]) == ("LogAppendTime", "CreateTime")
    assert facts.newest_record_ms("t") is None
    newest = facts.newest_record_ms("__consumer_offsets")
    assert isinstance(newest, int | None), "partition 0 may hold none of the groups"


def test_what_is_forbidden_is_told_and_never_taken_for_nothing(cluster: Cluster, facts: KafkaCluster) -> None:
    # One ACL on a topic refuses whatever no other allows. On the cluster it would lock out the broker itself.
    with denied(cluster.bootstrap, ResourceType.TOPIC, OFFSETS_TOPIC, AclOperation.READ):
        wait_until(lambda: getattr(facts.group_records(["classic"]), "code", "") == DENIED, CALL_SECONDS, "the ACL")
        kinds = facts.group_kinds()
        assert not isinstance(kinds, Failure) and kinds["sharers"] == "unknown" and kinds["classic"] == "consumer"


def test_the_topic_that_a_commit_was_made_on_is_told_by_its_id_in_whatever_digits(
    cluster: Cluster, facts: KafkaCluster
) -> None:
    topics = [f"with-id-{n}" for n in range(12)]
    for topic in topics:
        create_topic(cluster.bootstrap, topic, 1)
    commit(cluster.bootstrap, {"of-twelve": {(topic, 0): 0 for topic in topics}})
    ids = ConfluentAdmin(settings_of(cluster), CALL_SECONDS).topic_ids(topics)
    made_on = records(facts, "of-twelve")["of-twelve"].made_on
    assert set(ids) == set(topics) and set(made_on) == {Partition(topic, 0) for topic in topics}
    for topic in topics:
        assert other_topic(Commit(0), made_on[Partition(topic, 0)], ids[topic]) == "", (topic, ids[topic])
    assert len({made.topic_id for made in made_on.values()}) == len(topics)


def test_of_a_group_that_nobody_has_made_yet_brokers_tell_the_rights_all_the_same(cluster: Cluster) -> None:
    found = ConfluentAdmin(settings_of(cluster), CALL_SECONDS).rights([READER_GROUP_PREFIX], [])
    operations = found.groups[READER_GROUP_PREFIX]
    assert isinstance(operations, frozenset) and "DESCRIBE" in operations


def test_an_offsets_topic_that_begins_later_is_read_from_where_it_begins(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a topic of another name: brokers delete no records of their own topics on demand, as retention does."""
    monkeypatch.setattr(group_facts, "OFFSETS_TOPIC", "begins-later")
    create_topic(cluster.bootstrap, "begins-later", 1)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(5):
        producer.produce("begins-later", b"value-%d" % number, b"key", 0)
    assert producer.flush(CALL_SECONDS) == 0
    delete_before(cluster.bootstrap, "begins-later", 0, 3)

    class Noting(GroupLog):
        values_taken: list[bytes | None] = []

        def take(self, keys: Iterable[bytes | None], values: Iterable[bytes | None]) -> None:
            self.values_taken += values

    log = Noting()
    config = {"bootstrap.servers": cluster.bootstrap}
    assert group_facts.read_offsets_topic(config, "B", {0: log}, CALL_SECONDS) is None
    assert log.values_taken == [b"value-3", b"value-4"]

"""What a real broker tells of its groups: their kinds, since when they are empty, and what it forbids."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from migrate.flow import Cluster as FlowCluster
from migrate.groupfacts import BrokerSettings
from migrate.grouprecords import OFFSETS_TOPIC, GroupKind
from migrate.kafka.groupfacts import ConfluentGroupFacts
from migrate.model import Failure, Side
from migrate.model import TopicPartition as Partition
from tests.integration.clusters import CALL_SECONDS, admin, commit, create_topic
from tests.integration.members import member_of_kip_848, share_consumer, stay_and_leave
from tests.lab.cluster import Cluster
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.kafka

SIMPLE = [f"simple-{n}" for n in range(20)]
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


@pytest.fixture
def facts(cluster: Cluster) -> ConfluentGroupFacts:
    settings = {"bootstrap.servers": cluster.bootstrap}
    return ConfluentGroupFacts(FlowCluster(Side.TARGET, "B", settings), settings, CALL_SECONDS)


def test_every_group_is_listed_with_its_kind_share_groups_too(facts: ConfluentGroupFacts) -> None:
    kinds = facts.group_kinds()
    assert kinds == dict.fromkeys([*SIMPLE, "classic", "kip-848"], "consumer") | {"sharers": "share"}


def test_the_records_tell_the_kind_and_since_when_a_classic_group_is_empty(facts: ConfluentGroupFacts) -> None:
    found = facts.group_records([*SIMPLE, "classic", "kip-848", "sharers", "nobody"])
    assert not isinstance(found, Failure)
    assert {g: r.kind for g, r in found.items()} == dict.fromkeys(SIMPLE, GroupKind.SIMPLE) | {
        "classic": GroupKind.CLASSIC, "kip-848": GroupKind.CONSUMER, "sharers": GroupKind.SHARE,
    }  # fmt: skip
    now, classic = time.time() * 1000, found["classic"]
    assert classic.protocol_type == "consumer" and classic.empty_since_ms is not None
    assert classic.committed_ms[Partition("t", 0)] <= classic.empty_since_ms <= now


def test_the_brokers_tell_how_long_they_keep_offsets_and_that_they_serve_kip_848(facts: ConfluentGroupFacts) -> None:
    assert facts.settings() == BrokerSettings(4321 * 60_000, True)


def test_the_newest_record_of_a_topic_is_told_and_none_of_an_empty_one(facts: ConfluentGroupFacts) -> None:
    assert facts.newest_record_ms("t") is None
    newest = facts.newest_record_ms("__consumer_offsets")
    assert isinstance(newest, int | None), "partition 0 may hold none of the groups"


def test_what_is_forbidden_is_told_and_never_taken_for_nothing(cluster: Cluster, facts: ConfluentGroupFacts) -> None:
    client = admin(cluster.bootstrap)
    # One ACL on a topic refuses whatever no other allows. On the cluster it would lock out the broker itself.
    rules = [
        AclBinding(
            ResourceType.TOPIC, OFFSETS_TOPIC, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission
        )
        for operation, permission in (
            (AclOperation.READ, AclPermissionType.DENY), (AclOperation.DESCRIBE, AclPermissionType.ALLOW),
        )
    ]  # fmt: skip
    for future in client.create_acls(rules).values():
        future.result(CALL_SECONDS)

    def code(answer: object) -> str:
        return answer.code if isinstance(answer, Failure) else ""

    try:
        wait_until(lambda: code(facts.group_records(["classic"])) == DENIED, CALL_SECONDS, "the ACL")
        kinds = facts.group_kinds()
        assert isinstance(kinds, Failure) and kinds.code == DENIED and "sharers" in kinds.message
    finally:
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        for future in client.delete_acls([everything]).values():
            future.result(CALL_SECONDS)

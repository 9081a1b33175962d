"""Names, against what the classes of Kafka 4.3.1 and 3.9.2 answer (recorded by asking them)."""

import pytest
from hypothesis import given

from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from tests.unit.names import POLICIES, TOPICS

DEFAULT = ReplicationPolicy(PolicyKind.DEFAULT, "source1", "target2")
IDENTITY = ReplicationPolicy(PolicyKind.IDENTITY, "source1", "target2")


@pytest.mark.parametrize(
    ("topic", "copy", "identity"),
    [
        ("topic3", "source1.topic3", "topic3"),
        ("target2.topic3", "topic3", "target2.topic3"),
        ("target2.orders.v1", "v1", "target2.orders.v1"),
        ("target2..t", "t", "target2..t"),
        ("target2.", "source1.target2.", "target2."),
        ("x.target2.t", "source1.x.target2.t", "x.target2.t"),
        ("xheartbeats", "source1.xheartbeats", "source1.xheartbeats"),
        ("target2.heartbeats", "heartbeats", "heartbeats"),
        ("..a", "source1...a", "..a"),
    ],
)
def test_policies_rename_as_mm2_does_in_its_checkpoints_the_identity_policy_heartbeats_alone(topic, copy, identity):
    assert (DEFAULT.target_topic(topic), IDENTITY.target_topic(topic)) == (copy, identity)


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY])
def test_internal_topics_are_those_of_kafka_4(policy):
    internal = ["mm2-offset-syncs.B.internal", "mm2x.internal", "A.checkpoints.internal", "__consumer_offsets", ".a"]
    assert all(map(policy.is_internal, internal))
    assert not any(map(policy.is_internal, ["foo.internal", "foo-internal", "mm2internal", "topic3"]))


@given(POLICIES, TOPICS)
def test_a_source_topic_is_named_for_what_is_really_its_copy_and_for_all_of_that(policy, topic):
    if policy.why_not_replicated(topic) is None:
        assert policy.source_topic(policy.target_topic(topic)) == topic
    source_topic = policy.source_topic(topic)
    assert source_topic is None or policy.target_topic(source_topic) == topic

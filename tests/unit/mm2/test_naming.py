"""Names, against what the classes of Kafka 4.3.1 and 3.9.2 answer (recorded by asking them)."""

import pytest
from hypothesis import given

from migrate.mm2.naming import PolicyKind, ReplicationPolicy
from migrate.model import Side
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


@pytest.mark.parametrize(("separator", "enabled", "used"), [(".", True, "."), ("__", True, "__"), ("__", False, ".")])
@pytest.mark.parametrize("kind", list(PolicyKind))
def test_mm2s_own_topics_use_the_separator_unless_that_is_disabled(kind, separator, enabled, used):
    policy = ReplicationPolicy(kind, "source1", "target2", separator, enabled)
    assert policy.checkpoints_topic() == f"source1{used}checkpoints{used}internal"
    assert policy.offset_syncs_topic(Side.SOURCE) == f"mm2-offset-syncs{used}target2{used}internal"
    assert policy.offset_syncs_topic(Side.TARGET) == f"mm2-offset-syncs{used}source1{used}internal"


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY])
def test_internal_topics_are_those_of_kafka_4(policy):
    internal = ["mm2-offset-syncs.B.internal", "mm2x.internal", "A.checkpoints.internal", "__consumer_offsets", ".a"]
    assert all(map(policy.is_internal, internal))
    assert not any(map(policy.is_internal, ["foo.internal", "foo-internal", "mm2internal", "topic3"]))


def test_a_topic_that_came_from_the_target_is_not_replicated_and_the_reason_says_so():
    assert DEFAULT.why_not_replicated("orders") is DEFAULT.why_not_replicated("source6.orders") is None
    assert DEFAULT.why_not_replicated("x.target2.t")
    assert "target2" in (DEFAULT.why_not_replicated("target2.orders") or "")
    assert IDENTITY.why_not_replicated("target2.orders") is None
    assert IDENTITY.why_not_replicated("target2.heartbeats")


@given(POLICIES, TOPICS)
def test_a_source_topic_is_named_for_what_is_really_its_copy_and_for_all_of_that(policy, topic):
    if policy.why_not_replicated(topic) is None:
        assert policy.source_topic(policy.target_topic(topic)) == topic
    source_topic = policy.source_topic(topic)
    assert source_topic is None or policy.target_topic(source_topic) == topic

"""Flows from mm2.properties and from client files."""

import pytest

from migrate.errors import ConfigError
from migrate.kafka.client_config import librdkafka_config
from migrate.mm2.config_file import Overrides, client_flow, read_flow, with_clients
from migrate.mm2.naming import PolicyKind
from migrate.model import Side
from tests.unit.mm2.flowlines import FILE_PROVIDER, refusal


def test_a_file_without_anything_special_gives_mm2s_defaults(flow_of):
    flow = flow_of()
    assert (flow.source.side, flow.source.alias, flow.source.bootstrap) == (Side.SOURCE, "A", "a:1")
    assert (flow.target.side, flow.target.alias, flow.target.bootstrap) == (Side.TARGET, "B", "b:1")
    assert (flow.policy.kind, flow.syncs_side) == (PolicyKind.DEFAULT, Side.SOURCE)
    assert (flow.checkpoints_topic, flow.offset_syncs_topic) == (
        "A.checkpoints.internal",
        "mm2-offset-syncs.B.internal",
    )
    assert (flow.named, flow.group_sync, flow.emits_offset_syncs) == (frozenset(), False, True)
    assert flow.mm2_isolation_level == "read_uncommitted"


def test_an_alias_that_is_not_there_is_told_with_those_that_are(flow_of):
    text = refusal(flow_of, source="a")
    assert "--source a" in text and "A, B, C" in text and "--target D" in refusal(flow_of, target="D")


def test_a_flow_that_is_not_enabled_is_told_with_the_default_and_those_that_are(flow_of):
    for source, target, state in (("B", "A", "is not true"), ("A", "C", "is not set")):
        text = refusal(flow_of, source=source, target=target)
        assert f"{source}->{target}.enabled {state}" in text
        assert "MM2's default is false" in text and "A->B, C->A" in text
    assert flow_of("enabled = true\n", "A", "C").target.alias == "C"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bootstrap.servers=a:1\n", "has no setting clusters"),
        ("clusters=A,B\nA->B.enabled=true\nA.bootstrap.servers=a:1\n", r"has no B\.bootstrap\.servers"),
    ],
)
def test_a_file_that_is_not_mm2s_and_a_cluster_without_brokers_are_told(tmp_path, text, told):
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        read_flow(path, "A", "B")


def test_a_setting_of_the_flow_wins_over_the_same_at_the_top_and_other_flows_do_not_count(flow_of):
    flow = flow_of(
        "topics = top.*\nA->B.topics = own.*\nC->A.topics = other.*\n"
        "sync.group.offsets.enabled = true\nA->B.emit.offset-syncs.enabled = False\n"
        "A->B.offset-syncs.topic.location = target\n"
    )
    assert flow.topic_filter.accepts("own1") and not flow.topic_filter.accepts("top1")
    assert (flow.group_sync, flow.emits_offset_syncs, flow.syncs_side) == (True, False, Side.TARGET)
    assert flow.offset_syncs_topic == "mm2-offset-syncs.A.internal"


@pytest.mark.parametrize(
    ("lines", "synced"),
    [
        ("", frozenset()),
        ("B->A.sync.group.offsets.enabled = true\nB->A.enabled = false\n", frozenset()),
        ("B->A.enabled = true\n", frozenset()),
        ("B->A.enabled = true\nB->A.sync.group.offsets.enabled = true\nB->A.groups = b.*\n", {"b1"}),
    ],
)
def test_on_the_way_back_mm2s_own_flow_that_way_says_which_groups_it_sets(flow_of, lines, synced):
    back = flow_of("A->B.sync.group.offsets.enabled = true\n" + lines).reversed()
    assert back.synced(["a1", "b1"]) == synced


def test_connections_come_from_the_top_then_the_alias_then_its_admin_or_consumer_then_the_flow(flow_of):
    lines = """
security.protocol = SSL
ssl.truststore.type = PEM
ssl.truststore.location = /top.pem
B.ssl.truststore.location = /b.pem
A.security.protocol = SASL_SSL
A.admin.sasl.mechanism = PLAIN
A.consumer.sasl.mechanism = SCRAM-SHA-256
B.consumer.security.protocol = PLAINTEXT
A.consumer.fetch.max.bytes = 5
A.producer.security.protocol = PLAINTEXT
B.offset.flush.interval.ms = 1000
B.exactly.once.source.support = enabled
B.client.id = mm2s-own
"""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/top.pem"}
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    flow = flow_of(lines)
    assert flow.source.properties == {"bootstrap.servers": "a:1", **login, **trust}
    of_target = {**trust, "security.protocol": "PLAINTEXT", "ssl.truststore.location": "/b.pem"}
    assert flow.target.properties == {"bootstrap.servers": "b:1", **of_target}
    own = """
A->B.source.cluster.security.protocol = SASL_PLAINTEXT
A->B.source.admin.sasl.mechanism = SCRAM-SHA-512
A->B.target.cluster.bootstrap.servers = b2:1
C->A.source.cluster.security.protocol = SSL
"""
    flow = flow_of(lines + own)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    assert flow.source.properties == {"bootstrap.servers": "a:1", **login, **trust}
    assert flow.target.properties == {"bootstrap.servers": "b2:1", **of_target}
    assert flow_of(lines + own, "C", "A").target.properties["security.protocol"] == "SASL_SSL"


def test_a_reference_in_a_connection_is_refused_unless_a_client_file_stands_in(flow_of):
    flow = flow_of(FILE_PROVIDER + "A.security.protocol=SSL\nA.ssl.truststore.location=${file:/none:y}\n")
    with pytest.raises(ConfigError, match="ssl.truststore.location in A refers to .*/none cannot be read"):
        librdkafka_config(flow.source.properties, "A")
    helped = with_clients(flow, {"security.protocol": "PLAINTEXT"}, None)
    config = librdkafka_config(helped.source.properties, "A")
    assert (config["bootstrap.servers"], config["security.protocol"]) == ("a:1", "PLAINTEXT")


def test_options_change_the_names_that_the_file_gave(flow_of):
    overrides = Overrides("identity", "__", Side.SOURCE, None, "mine")
    flow = flow_of("offset-syncs.topic.location = target\n", overrides=overrides)
    assert (flow.policy.kind, flow.syncs_side, flow.named) == (PolicyKind.IDENTITY, Side.SOURCE, {"mine"})
    assert (flow.checkpoints_topic, flow.offset_syncs_topic) == ("A__checkpoints__internal", "mine")
    assert "internal" in flow.why_not_replicated("x__checkpoints__internal")
    by_files = client_flow({}, {}, "A", "B", Overrides(checkpoints_topic="mine", separator="-"))
    assert (by_files.checkpoints_topic, by_files.offset_syncs_topic) == ("mine", "mm2-offset-syncs-B-internal")
    assert by_files.named == {"mine"}

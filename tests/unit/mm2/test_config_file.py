"""Flows from mm2.properties and from client files: what MM2's settings say, what it leaves out, and the way back."""

from dataclasses import replace

import pytest

from migrate.errors import ConfigError
from migrate.kafka.client_config import librdkafka_config
from migrate.mm2.config_file import Overrides, client_flow, read_flow, with_clients
from migrate.mm2.flow import BYTES, FlowFilter, TopicFilter
from migrate.mm2.naming import PolicyKind
from migrate.mm2.settings import java_pattern
from migrate.model import Side
from tests.unit.connectscene import MIRROR
from tests.unit.mm2.flowlines import FILE_PROVIDER, refusal
from tests.unit.surveyscene import FLOW


def test_a_file_without_anything_special_gives_mm2s_defaults(flow_of):
    flow = flow_of()
    assert (flow.source.side, flow.source.alias, flow.source.bootstrap) == (Side.SOURCE, "A", "a:1")
    assert (flow.target.side, flow.target.alias, flow.target.bootstrap) == (Side.TARGET, "B", "b:1")
    assert (flow.policy.kind, flow.syncs_side) == (PolicyKind.DEFAULT, Side.SOURCE)
    assert flow.checkpoints_topic == "A.checkpoints.internal"
    assert flow.offset_syncs_topic == "mm2-offset-syncs.B.internal"
    assert (flow.named, flow.group_sync, flow.emits_offset_syncs) == (frozenset(), False, True)
    assert flow.mm2_isolation_level == "read_uncommitted"


def test_a_flow_that_is_not_there_or_not_enabled_is_told_with_those_that_are_and_mm2s_default(flow_of):
    text = refusal(flow_of, source="a")
    assert "--source a" in text and "A, B, C" in text and "--target D" in refusal(flow_of, target="D")
    for source, target, state in (("B", "A", "is not true"), ("A", "C", "is not set")):
        text = refusal(flow_of, source=source, target=target)
        assert f"{source}->{target}.enabled {state}" in text
        assert "MM2's default is false" in text and "A->B, C->A" in text
    assert flow_of("enabled = true\n", "A", "C").target.alias == "C"


def test_a_file_that_is_not_mm2s_and_a_cluster_without_brokers_are_told(tmp_path):
    path = tmp_path / "client.properties"
    without_brokers = "clusters=A,B\nA->B.enabled=true\nA.bootstrap.servers=a:1\n"
    for text, told in (
        ("bootstrap.servers=a:1\n", "no setting clusters"),
        (without_brokers, r"no B\.bootstrap\.servers"),
    ):
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


@pytest.mark.parametrize(("lines", "synced"), [
    ("", frozenset()),
    ("B->A.sync.group.offsets.enabled = true\nB->A.enabled = false\n", frozenset()),
    ("B->A.enabled = true\n", frozenset()),
    ("B->A.enabled = true\nB->A.sync.group.offsets.enabled = true\nB->A.groups = b.*\n", {"b1"}),
])  # fmt: skip
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


def test_policy_and_separator_make_the_names(flow_of):
    flow = flow_of(
        f"replication.policy.class = {MIRROR}.IdentityReplicationPolicy\nreplication.policy.separator = __\n"
        "A->B.replication.policy.internal.topic.separator.enabled = false\n"
    )
    assert (flow.policy.kind, flow.policy.separator) == (PolicyKind.IDENTITY, "__")
    assert (flow.checkpoints_topic, flow.policy.target_topic("t")) == ("A.checkpoints.internal", "t")
    strimzi = "replication.policy.class=io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy\n"
    assert flow_of(strimzi).policy.kind is PolicyKind.IDENTITY
    dashes = flow_of("replication.policy.separator=-\n")
    assert dashes.checkpoints_topic == "A-checkpoints-internal"
    assert "internal" in dashes.why_not_replicated("A-checkpoints-internal")


def test_a_policy_of_the_users_own_needs_all_three_names(flow_of):
    own = "replication.policy.class = com.example.MyPolicy\n"
    named = {"checkpoints_topic": "c", "offset_syncs_topic": "s"}
    for given in ({}, {"replication_policy": "identity"}, named):
        text = refusal(flow_of, own, overrides=Overrides(**given))
        needed = ("com.example.MyPolicy", "--replication-policy", "--checkpoints-topic", "--offset-syncs-topic")
        assert not [word for word in needed if word not in text]
    flow = flow_of(own, overrides=Overrides(replication_policy="identity", **named))
    assert (flow.policy.kind, flow.checkpoints_topic, flow.offset_syncs_topic) == ("identity", "c", "s")
    assert flow.named == {"c", "s"}


@pytest.mark.parametrize(("line", "names"), [
    ("offset-syncs.topic.location = both\n", "offset-syncs.topic.location"),
    ("sync.group.offsets.enabled = yes\n", "sync.group.offsets.enabled"),
    ("topics = (a\n", "topics"),
    ("groups.exclude = a, [a-z&&[^b]]\n", "groups.exclude"),
    ("config.providers=f\ntopics = ${f:/x:topics}\n", "config.providers.f.class"),
    (f"{FILE_PROVIDER}topics = ${{file:/none:topics}}\n", "/none cannot be read"),
])  # fmt: skip
def test_a_setting_that_cannot_be_followed_is_named(flow_of, line, names):
    assert names in refusal(flow_of, line)


def test_the_default_filters_are_those_of_kafka_4_and_leave_internal_topics_and_connects_groups_out(flow_of):
    why_not = flow_of().why_not_replicated
    assert not any(map(why_not, ("orders", "foo.internal", "heartbeats")))
    assert all(map(why_not, ("a.replica", "__x", "mm2-offset-syncs.B.internal", "A.checkpoints.internal", ".x")))
    # Internal topics stay out whatever the filter says.
    why_not = flow_of("topics = x.*, __.*, mm2.*\ntopics.exclude =\n").why_not_replicated
    assert not why_not("x.replica") and "topic filter" in why_not("y")
    assert "internal" in why_not("__consumer_offsets") and "internal" in why_not("mm2-configs.A.internal")
    accepts = flow_of().group_filter.accepts
    assert [g for g in ("g", "connect-s", "console-consumer-1", "__g") if accepts(g)] == ["g"]
    # Lists are read as MM2 reads them.
    flow = flow_of("topics = a ,b.*\ngroups =\ngroups.exclude = z\n")
    assert flow.topic_filter.include == ("a", "b.*", "heartbeats") and not flow.group_filter.accepts("anything")


@pytest.mark.parametrize(
    ("lines", "level"),
    [
        ("A.consumer.isolation.level = read_committed\n", "read_committed"),
        ("A->B.consumer.isolation.level = read_committed\n", "read_committed"),
        ("A->B.consumer.isolation.level = read_committed\nA.consumer.isolation.level = read_uncommitted\n",
         "read_uncommitted"),
        ("A->B.source.consumer.isolation.level = read_committed\nA.consumer.isolation.level = x\n", "read_committed"),
        ("B.consumer.isolation.level = read_committed\nB.exactly.once.source.support = enabled\n", "read_uncommitted"),
    ],
)  # fmt: skip
def test_the_isolation_level_is_that_of_mm2s_source_consumer(flow_of, lines, level):
    assert flow_of(lines).mm2_isolation_level == level


@pytest.mark.parametrize(("lines", "group_sync", "emits"), [
    ("", True, True),
    ("emit.checkpoints.enabled = false\n", False, False),
    ("A->B.emit.checkpoints.enabled = False\n", False, False),
    ("C->A.emit.checkpoints.enabled = false\n", True, True),
    ("emit.checkpoints.interval.seconds = -1\n", False, False),
    ("sync.group.offsets.interval.seconds = -1\n", False, True),
])  # fmt: skip
def test_without_checkpoint_tasks_mm2_sets_no_offsets_of_groups(flow_of, lines, group_sync, emits):
    flow = flow_of("sync.group.offsets.enabled = true\n" + lines)
    assert (flow.group_sync, flow.emits_checkpoints) == (group_sync, emits)
    assert bool(flow.why_not_emitted("A.checkpoints.internal")) is not emits
    assert not flow.why_not_emitted("mm2-offset-syncs.B.internal")


@pytest.mark.parametrize("line", ["transforms = Route\n", "A->B.transforms = Route\n"])
def test_the_transforms_of_a_dedicated_mm2_are_known_and_may_send_records_elsewhere(flow_of, line):
    flow = flow_of(line)
    assert flow.runtime_words()["mm2_transforms"] == "Route"
    assert "transforms (Route)" in flow.why_perhaps_not_replicated("orders")
    assert not flow_of("C->A.transforms = Route\n").why_perhaps_not_replicated("orders")


@pytest.mark.parametrize("word", [BYTES, f" {BYTES} ", "ByteArrayConverter", " ByteArray"])
@pytest.mark.parametrize(
    ("of", "key"), [("A->B.", "header.converter"), ("B.", "value.converter"), ("", "key.converter")]
)
def test_a_converter_that_copies_bytes_is_none_that_changes_records_however_it_is_written(flow_of, of, key, word):
    assert "mm2_converters" not in flow_of(f"{of}{key} = {word}\n").runtime_words()
    assert flow_of(f"{of}{key} = x.Simple \n").runtime_words()["mm2_converters"] == f"{key} x.Simple"


ONLY_G = FlowFilter(((TopicFilter((java_pattern("g.*"),), (java_pattern("gx"),)),),))


def test_a_plans_header_tells_how_mm2_runs_and_nothing_that_is_not_known(flow_of):
    assert flow_of("A->B.header.converter = x.Simple\n").runtime_words() == {
        "mm2_runs": "dedicated",
        "mm2_offsets_topic": "mm2-offsets.A.internal",
        "mm2_source_connectors": "MirrorSourceConnector",
        "mm2_checkpoint_connectors": "MirrorCheckpointConnector",
        "mm2_converters": "header.converter x.Simple",
        "mm2_group_sync": "off",
        "mm2_isolation_level": "read_uncommitted",
    }
    plain = client_flow({}, {}, "A", "B")
    assert plain.runtime_words() == {"mm2_offsets_topic": "mm2-offsets.A.internal"}
    assert "mm2_offsets_topic" not in plain.reversed().runtime_words()
    assert "mm2_group_sync" not in flow_of().reversed().runtime_words()


def test_mm2s_group_filter_leaves_groups_out_and_says_nothing_of_the_way_back():
    flow = replace(FLOW, group_filter=ONLY_G, sync_filter=ONLY_G)
    assert flow.left_out(["g1", "gx", "h"]) == ("gx", "h")
    assert FLOW.left_out(["h"]) == flow.reversed().left_out(["h"]) == ()
    for group_sync, synced in ((None, None), (False, frozenset()), (True, {"g1"})):
        syncing = replace(flow, group_sync=group_sync)
        assert syncing.synced(["g1", "h"]) == synced and syncing.reversed().synced(["g1", "h"]) is None


def test_only_on_a_failback_may_aborted_records_count_and_not_where_mm2_leaves_them_out():
    back = {"read_uncommitted": "read_uncommitted", "read_committed": "read_committed", None: "read_uncommitted"}
    for of_mm2, level in back.items():
        flow = replace(FLOW, mm2_isolation_level=of_mm2)
        assert (flow.target_isolation_level, flow.reversed().target_isolation_level) == ("read_committed", level)

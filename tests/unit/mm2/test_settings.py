"""What MM2's settings say of a flow: the names of its topics, its filters, and how it reads its source."""

import pytest

from migrate.mm2.config_file import Overrides
from migrate.mm2.flow import BYTES
from migrate.mm2.naming import PolicyKind
from tests.unit.connectscene import MIRROR
from tests.unit.mm2.flowlines import FILE_PROVIDER, refusal


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


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("offset-syncs.topic.location = both\n", "offset-syncs.topic.location"),
        ("sync.group.offsets.enabled = yes\n", "sync.group.offsets.enabled"),
        ("topics = (a\n", "topics"),
        ("groups.exclude = a, [a-z&&[^b]]\n", "groups.exclude"),
        ("config.providers=f\ntopics = ${f:/x:topics}\n", "config.providers.f.class"),
        (f"{FILE_PROVIDER}topics = ${{file:/none:topics}}\n", "/none cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_named(flow_of, line, names):
    assert names in refusal(flow_of, line)


def test_the_default_topic_filter_is_that_of_kafka_4_with_internal_topics_left_out(flow_of):
    why_not = flow_of().why_not_replicated
    assert not any(map(why_not, ("orders", "foo.internal", "heartbeats")))
    assert all(map(why_not, ("a.replica", "__x", "mm2-offset-syncs.B.internal", "A.checkpoints.internal", ".x")))
    # Internal topics stay out whatever the filter says.
    why_not = flow_of("topics = x.*, __.*, mm2.*\ntopics.exclude =\n").why_not_replicated
    assert not why_not("x.replica") and "topic filter" in why_not("y")
    assert "internal" in why_not("__consumer_offsets") and "internal" in why_not("mm2-configs.A.internal")


def test_lists_are_read_as_mm2_reads_them_and_connect_and_console_groups_are_left_out_by_default(flow_of):
    flow = flow_of("topics = a ,b.*\ngroups =\ngroups.exclude = z\n")
    assert flow.topic_filter.include == ("a", "b.*", "heartbeats") and not flow.group_filter.accepts("anything")
    accepts = flow_of().group_filter.accepts
    assert [g for g in ("g", "connect-s", "console-consumer-1", "__g") if accepts(g)] == ["g"]


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


@pytest.mark.parametrize(
    ("lines", "group_sync", "emits"),
    [
        ("", True, True),
        ("emit.checkpoints.enabled = false\n", False, False),
        ("A->B.emit.checkpoints.enabled = False\n", False, False),
        ("C->A.emit.checkpoints.enabled = false\n", True, True),
        ("emit.checkpoints.interval.seconds = -1\n", False, False),
        ("sync.group.offsets.interval.seconds = -1\n", False, True),
    ],
)
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

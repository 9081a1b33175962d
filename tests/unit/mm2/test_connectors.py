"""The flow that MM2's connectors make up."""

import pytest

from migrate.errors import ConfigError
from tests.unit.connectscene import connectors, strimzi
from tests.unit.mm2.flowlines import from_strimzi, from_worker

SYNC = {"sync.group.offsets.enabled": "true"}
OWN_FILTER = {"group.filter.class": "com.example.F"}


def of_two(settings, of_more):
    """The flow of connectors with these settings, beside others from A to B with settings of their own."""
    return from_worker(connectors(settings) | connectors(of_more, name="more"))


@pytest.mark.parametrize(("setting", "source"), [("topics", "A"), ("source.cluster.alias", "${env:X}")])
def test_a_fact_that_only_the_worker_can_resolve_is_named(setting, source):
    with pytest.raises(ConfigError, match=f"{setting} in connector copy-Source.*reference"):
        from_worker(connectors({}, **{setting: "${env:X}"}), source=source)


def test_a_flow_that_no_connector_copies_is_told_with_those_that_are(tmp_path):
    listed = connectors({}) | connectors({}, "C", "D", "third")
    with pytest.raises(ConfigError, match="no MirrorSourceConnector from B to A; it has A -> B, C -> D"):
        from_worker(listed, source="B", target="A")
    assert from_worker(listed, source="C", target="D").source.alias == "C"
    with pytest.raises(ConfigError, match="none at all"):
        from_worker({})
    with pytest.raises(ConfigError, match="no resource of kind KafkaMirrorMaker2"):
        from_strimzi(tmp_path, {"kind": "Kafka", "spec": {}})


def test_topics_split_over_several_connectors_are_added_up_if_these_agree():
    flow = of_two({"topics": "a.*", "topics.exclude": "ax"}, {"topics": "b.*", "topics.exclude": "bx"})
    assert flow.runtime.source_connectors == ("copy-Source", "more-Source")
    assert [flow.topic_filter.accepts(t) for t in ("a1", "ax", "b1", "bx", "c1")] == [True, False, True, False, False]
    assert of_two({}, {"topic.filter.class": "com.example.F"}).topic_filter is None


@pytest.mark.parametrize("separator", ["-", "${env:SEPARATOR}"], ids=["another", "a reference"])
def test_a_separator_that_connectors_do_not_agree_on_or_only_refer_to_is_what_the_option_says(separator):
    apart = connectors({}) | connectors({"replication.policy.separator": separator}, name="more")
    with pytest.raises(ConfigError, match="do not agree.*--separator" if separator == "-" else "--separator"):
        from_worker(apart)
    assert from_worker(apart, separator="-").policy.target_topic("t") == "A-t"


@pytest.mark.parametrize("silent", [
    {"emit.checkpoints.enabled": "false"}, {"emit.checkpoints.enabled": False}, {"enabled": "false"},
    {"emit.checkpoints.interval.seconds": "-1"}, {"emit.checkpoints.interval.seconds": -1},
])  # fmt: skip
def test_a_checkpoint_connector_without_tasks_syncs_no_group(tmp_path, silent):
    flow = from_worker(connectors({**SYNC, **silent}))
    assert flow.synced(["g"]) == frozenset() and flow.why_not_emitted("A.checkpoints.internal")
    resource = strimzi(SYNC)
    resource["spec"]["mirrors"][0]["checkpointConnector"]["config"] |= silent
    assert from_strimzi(tmp_path, resource).synced(["g"]) == frozenset()


def test_a_group_that_one_checkpoint_connector_syncs_is_synced_although_another_makes_no_checkpoints():
    flow = of_two({"emit.checkpoints.enabled": "false", **SYNC}, SYNC)
    assert flow.synced(["g"]) == {"g"} and not flow.why_not_emitted("A.checkpoints.internal")


@pytest.mark.parametrize(
    ("settings", "of_more", "synced"),
    [
        ({"groups": "q.*"}, {"groups": "s.*", **SYNC}, {"s1"}),
        (OWN_FILTER, {"groups": "s.*", **SYNC}, {"s1"}),
        ({"groups": "q.*"}, {**OWN_FILTER, **SYNC}, {"q1", "s1"}),
    ],
)
def test_what_connectors_that_sync_may_take_is_synced_and_what_any_of_them_takes_is_not_left_out(
    settings, of_more, synced
):
    flow = of_two(settings, of_more)
    assert (flow.synced(["q1", "s1"]), flow.left_out(["q1", "s1"])) == (synced, ())


def orphaned(target_alias, **settings):
    """Connectors from A to B of which the checkpoint connector calls its target something else, None for nothing."""
    listed = connectors(SYNC)
    config = listed["copy-Checkpoint"]["info"]["config"]
    config |= {"target.cluster.alias": target_alias, **settings}
    if target_alias is None:
        del config["target.cluster.alias"]
    return listed


@pytest.mark.parametrize("target_alias", [None, "target", "dr"])
def test_a_checkpoint_connector_of_the_same_clusters_counts_whatever_it_calls_its_target(target_alias):
    """Nothing that it writes is named after its target: it makes the flow's checkpoints, and syncs its groups."""
    for listed in (orphaned(target_alias), connectors({}, name="more") | orphaned(target_alias)):
        flow = from_worker(listed)
        assert flow.synced(["g"]) == {"g"} and "copy-Checkpoint" in flow.runtime.checkpoint_connectors
        assert flow.offset_syncs_topic == "mm2-offset-syncs.B.internal"


@pytest.mark.parametrize("elsewhere", [
    {"target.cluster.bootstrap.servers": "c:1"}, {"source.cluster.bootstrap.servers": "c:1"},
    {"source.cluster.alias": "C"}, {"target.cluster.bootstrap.servers": "${env:B}"},
])  # fmt: skip
def test_a_checkpoint_connector_with_another_alias_that_is_not_known_to_be_of_the_same_clusters_says_nothing(elsewhere):
    assert from_worker(orphaned(None, **elsewhere)).synced(["g"]) is None


def test_a_checkpoint_connector_of_another_flow_is_of_that_flow_alone():
    other = connectors({**SYNC, "target.cluster.bootstrap.servers": "c:1"}, target="C", name="other")
    for target, synced in (("B", set()), ("C", {"g"})):
        assert from_worker(connectors({}) | other, target=target).synced(["g"]) == synced

"""The flow that MM2's connectors make up."""

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import ConfigError
from migrate.mm2.flow import BYTES
from tests.facts import options
from tests.fakeworker import worker
from tests.unit.connectscene import connectors, rest, strimzi, strimzi_file


@pytest.mark.parametrize("setting", ["topics", "source.cluster.alias"])
def test_a_fact_that_only_the_worker_can_resolve_is_named(setting):
    listed = connectors({}, **{setting: "${env:X}"})
    refused = pytest.raises(ConfigError, match=f"{setting} in connector copy-Source.*reference")
    with worker(rest(listed)) as url, refused:
        resolve_flow(options(connect_url=url, source="${env:X}" if "alias" in setting else "A"))


def test_a_flow_that_no_connector_copies_is_told_with_those_that_are(tmp_path):
    listed = connectors({}) | connectors({}, "C", "D", "third")
    with worker(rest(listed)) as url:
        with pytest.raises(ConfigError, match="no MirrorSourceConnector from B to A; it has A -> B, C -> D"):
            resolve_flow(options(connect_url=url, source="B", target="A"))
        assert resolve_flow(options(connect_url=url, source="C", target="D")).source.alias == "C"
    with worker(rest({})) as url, pytest.raises(ConfigError, match="none at all"):
        resolve_flow(options(connect_url=url))
    path = strimzi_file(tmp_path, {"kind": "Kafka", "spec": {}})
    with pytest.raises(ConfigError, match="no resource of kind KafkaMirrorMaker2"):
        resolve_flow(options(strimzi=path))


def test_topics_split_over_several_connectors_are_added_up_if_these_agree():
    more = connectors({"topics": "b.*"}, name="more")
    with worker(rest(connectors({"topics": "a.*"}) | more)) as url:
        flow = resolve_flow(options(connect_url=url))
    assert flow.runtime.source_connectors == ("copy-Source", "more-Source")
    assert [flow.topic_filter.accepts(t) for t in ("a1", "b1", "c1")] == [True, True, False]
    other = connectors({"topics": "b.*", "topics.exclude": "bx"}, name="more")
    with worker(rest(connectors({"topics": "a.*", "topics.exclude": "ax"}) | other)) as url:
        accepts = resolve_flow(options(connect_url=url)).topic_filter.accepts
    assert [accepts(t) for t in ("a1", "ax", "b1", "bx")] == [True, False, True, False]
    own = connectors({"topic.filter.class": "com.example.F"}, name="more")
    with worker(rest(connectors({}) | own)) as url:
        assert resolve_flow(options(connect_url=url)).topic_filter is None
    apart = connectors({"replication.policy.separator": "-"}, name="more")
    with worker(rest(connectors({}) | apart)) as url, pytest.raises(ConfigError, match="do not agree"):
        resolve_flow(options(connect_url=url))


@pytest.mark.parametrize("separator", ["-", "${env:SEPARATOR}"], ids=["another", "a reference"])
def test_a_separator_that_connectors_do_not_agree_on_or_only_refer_to_is_what_the_option_says(separator):
    apart = connectors({"replication.policy.separator": separator}, name="more")
    with worker(rest(connectors({}) | apart)) as url:
        with pytest.raises(ConfigError, match="--separator"):
            resolve_flow(options(connect_url=url))
        assert resolve_flow(options(connect_url=url, separator="-")).policy.target_topic("t") == "A-t"


@pytest.mark.parametrize(
    "silent",
    [
        {"emit.checkpoints.enabled": "false"},
        {"emit.checkpoints.enabled": False},
        {"emit.checkpoints.interval.seconds": "-1"},
        {"emit.checkpoints.interval.seconds": -1},
        {"enabled": "false"},
    ],
)
def test_a_checkpoint_connector_without_tasks_syncs_no_group(tmp_path, silent):
    settings = {"sync.group.offsets.enabled": "true", **silent}
    with worker(rest(connectors(settings))) as url:
        flow = resolve_flow(options(connect_url=url))
    assert flow.synced(["g"]) == frozenset() and flow.why_not_emitted("A.checkpoints.internal")
    resource = strimzi({"sync.group.offsets.enabled": "true"})
    resource["spec"]["mirrors"][0]["checkpointConnector"]["config"] |= silent
    assert resolve_flow(options(strimzi=strimzi_file(tmp_path, resource))).synced(["g"]) == frozenset()


def test_a_group_that_one_checkpoint_connector_syncs_is_synced_although_another_makes_no_checkpoints():
    silent = {"emit.checkpoints.enabled": "false", "sync.group.offsets.enabled": "true"}
    syncing = connectors({"sync.group.offsets.enabled": "true"}, name="more")
    with worker(rest(connectors(silent) | syncing)) as url:
        flow = resolve_flow(options(connect_url=url))
    assert flow.synced(["g"]) == {"g"} and not flow.why_not_emitted("A.checkpoints.internal")


@pytest.mark.parametrize("quiet_groups", [{"groups": "q.*"}, {"group.filter.class": "com.example.F"}])
def test_only_what_connectors_that_sync_take_is_synced_and_what_any_of_them_takes_is_not_left_out(quiet_groups):
    syncing = connectors({"groups": "s.*", "sync.group.offsets.enabled": "true"}, name="more")
    with worker(rest(connectors(quiet_groups) | syncing)) as url:
        flow = resolve_flow(options(connect_url=url))
    assert (flow.synced(["q1", "s1"]), flow.left_out(["q1", "s1"])) == ({"s1"}, ())


def test_where_a_connector_that_syncs_has_a_filter_of_the_users_own_every_group_may_be_synced():
    syncing = {"group.filter.class": "com.example.F", "sync.group.offsets.enabled": "true"}
    with worker(rest(connectors({"groups": "q.*"}) | connectors(syncing, name="more"))) as url:
        assert resolve_flow(options(connect_url=url)).synced(["q1", "s1"]) == {"q1", "s1"}


def orphaned(target_alias, **settings):
    """Connectors from A to B of which the checkpoint connector calls its target something else, None for nothing."""
    listed = connectors({"sync.group.offsets.enabled": "true"})
    config = listed["copy-Checkpoint"]["info"]["config"]
    config |= {"target.cluster.alias": target_alias, **settings}
    if target_alias is None:
        del config["target.cluster.alias"]
    return listed


@pytest.mark.parametrize("target_alias", [None, "target", "dr"])
def test_a_checkpoint_connector_of_the_same_clusters_counts_whatever_it_calls_its_target(target_alias):
    """Nothing that it writes is named after its target: it makes the flow's checkpoints, and syncs its groups."""
    quiet = connectors({}, name="more")
    for listed in (orphaned(target_alias), quiet | orphaned(target_alias)):
        with worker(rest(listed)) as url:
            flow = resolve_flow(options(connect_url=url))
        assert flow.synced(["g"]) == {"g"} and "copy-Checkpoint" in flow.runtime.checkpoint_connectors
        assert flow.offset_syncs_topic == "mm2-offset-syncs.B.internal"


@pytest.mark.parametrize("elsewhere", [
    {"target.cluster.bootstrap.servers": "c:1"}, {"source.cluster.bootstrap.servers": "c:1"},
    {"source.cluster.alias": "C"}, {"target.cluster.bootstrap.servers": "${env:B}"},
])  # fmt: skip
def test_a_checkpoint_connector_with_another_alias_that_is_not_known_to_be_of_the_same_clusters_says_nothing(elsewhere):
    with worker(rest(orphaned(None, **elsewhere))) as url:
        assert resolve_flow(options(connect_url=url)).synced(["g"]) is None


def test_a_checkpoint_connector_of_another_flow_is_of_that_flow_alone():
    of_c = {"sync.group.offsets.enabled": "true", "target.cluster.bootstrap.servers": "c:1"}
    quiet, other = connectors({}), connectors(of_c, target="C", name="other")
    with worker(rest(quiet | other)) as url:
        flows = {target: resolve_flow(options(connect_url=url, target=target)) for target in ("B", "C")}
    assert {target: flow.synced(["g"]) for target, flow in flows.items()} == {"B": set(), "C": {"g"}}


def test_a_connectors_converter_with_blanks_or_by_its_bare_name_is_the_same_class():
    for written in (f" {BYTES}", "ByteArrayConverter ", "\tByteArray"):
        with worker(rest(connectors({"value.converter": written}))) as url:
            assert "mm2_converters" not in resolve_flow(options(connect_url=url)).runtime_words(), written
    for listed in (
        connectors({"value.converter": "x.C"}) | connectors({"value.converter": BYTES}, name="more"),
        connectors({"value.converter": BYTES}) | connectors({"value.converter": "x.C"}, name="more"),
    ):
        with worker(rest(listed)) as url:
            assert resolve_flow(options(connect_url=url)).runtime_words()["mm2_converters"] == "value.converter x.C"

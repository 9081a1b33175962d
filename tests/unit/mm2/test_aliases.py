"""Aliases in MM2's settings that are not those of `clusters`: its topics, copies and positions bear the former."""

import json
from types import SimpleNamespace

import pytest

from migrate.errors import ConfigError
from migrate.match.equality import Content
from migrate.mm2.commands import resetting
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import LogRange, TopicPartition
from migrate.plan.build import flow_names
from migrate.session.clusters import mm2_worker_of
from migrate.show.explain import site_of
from tests.builders import make_header
from tests.unit.connectscene import connectors, strimzi
from tests.unit.mm2.flowlines import from_strimzi, from_worker

EMPTY_SEPARATOR = "replication.policy.separator =\n"
NO_ALIASES = "source.cluster.alias =\ntarget.cluster.alias =\n"


@pytest.mark.parametrize(
    ("lines", "alias", "separator", "syncs_of"),
    [
        ("source.cluster.alias = prod\n", "prod", ".", "B"),
        ("A->B.source.cluster.alias = own \nsource.cluster.alias = prod\nA.alias = mine\n", "own", ".", "B"),
        ("A.alias = mine\nsource.cluster.alias = prod\n", "mine", ".", "B"),
        ("source.cluster.alias = prod\noffset-syncs.topic.location = target\n", "prod", ".", "prod"),
        ("target.cluster.alias = dr\n", "A", ".", "dr"),
        ("source.cluster.alias =\n", "", ".", "B"),
        (NO_ALIASES + EMPTY_SEPARATOR, "", "", ""),
    ],
)
def test_a_flows_own_alias_wins_over_that_of_its_cluster_and_of_the_top_and_names_all_but_the_offsets_topic(
    flow_of, lines, alias, separator, syncs_of
):
    flow, copy = flow_of(lines), f"{alias}{separator}orders"
    assert (flow.policy.target_topic("orders"), flow.policy.source_topic(copy)) == (copy, "orders")
    assert flow.checkpoints_topic == f"{alias}{separator}checkpoints{separator}internal"
    assert flow.offset_syncs_topic == f"mm2-offset-syncs{separator}{syncs_of}{separator}internal"
    assert (flow.source.alias, flow.target.alias) == ("A", "B")
    # MM2's worker knows only the aliases of `clusters`.
    assert flow_names(flow)["mm2_offsets_topic"] == "mm2-offsets.A.internal"


def test_what_came_from_the_target_is_known_by_the_alias_in_mm2s_settings(flow_of):
    flow = flow_of("target.cluster.alias = dr\n")
    assert "came from dr" in flow.why_not_replicated("dr.orders")
    assert not flow.why_not_replicated("B.orders")
    assert not flow_of(NO_ALIASES + EMPTY_SEPARATOR).why_not_replicated("orders")
    # With a separator an empty alias is an origin like any other.
    assert "came from" in flow_of("target.cluster.alias =\nreplication.policy.separator = -\n").why_not_replicated("-t")


@pytest.mark.parametrize(("lines", "alias"), [("A->B.source.cluster.alias = prod\n", "prod"), (NO_ALIASES, "")])
def test_mm2s_positions_are_read_and_reset_under_the_alias_in_its_settings(flow_of, lines, alias):
    key = json.dumps(["MirrorSourceConnector", {"cluster": alias, "partition": 0, "topic": "t"}]).encode()
    log = SimpleNamespace(scan=lambda wanted: {place: {0: Content(0, key, b'{"offset":7}', ())} for place in wanted})
    flow = flow_of(lines)
    read = ConsumedMm2Topics(flow, log, log)
    assert read.positions("mm2-offsets.A.internal", {0: LogRange(0, 1)}) == {TopicPartition("t", 0): 7}
    site = site_of(make_header(flow=flow_names(flow)))
    assert f'"cluster":"{alias}"' in "\n".join(resetting(site, TopicPartition("orders", 3)))


def test_a_connector_without_an_alias_of_its_target_has_mm2s_default_and_its_name_for_the_syncs():
    listed = connectors({})
    for about in listed.values():
        about["info"]["config"].pop("target.cluster.alias", None)
    flow = from_worker(listed, target="target")
    assert flow.offset_syncs_topic == "mm2-offset-syncs.target.internal"
    assert (flow.target.alias, flow.checkpoints_topic) == ("target", "A.checkpoints.internal")
    for typed in ("", "B"):
        with pytest.raises(ConfigError, match="it has A -> target"):
            from_worker(listed, target=typed)


def test_a_cluster_whose_alias_is_empty_is_called_by_its_side():
    unnamed = {"source.cluster.alias": "", "replication.policy.separator": "", "target.cluster.alias": "B "}
    listed = connectors({}, **unnamed)
    flow = from_worker(listed, source="source")
    assert flow.source.alias == "source" and flow.policy.target_topic("orders") == "orders"
    assert (flow.checkpoints_topic, flow.offset_syncs_topic) == ("checkpointsinternal", "mm2-offset-syncsBinternal")
    assert mm2_worker_of(flow, 5.0).source_alias == ""
    with pytest.raises(ConfigError, match="it has source -> B"):
        from_worker(listed)


@pytest.mark.parametrize("form", ["v1beta2", "v1"])
def test_a_resources_clusters_and_its_connectors_may_have_another_alias(tmp_path, form):
    flow = from_strimzi(tmp_path, strimzi({}, form, config={"alias": "prod"}))
    assert (flow.source.alias, flow.policy.target_topic("orders")) == ("A", "prod.orders")
    assert flow.runtime.source_connectors == ("A->B.MirrorSourceConnector",)
    own = {"source.cluster.alias": "", "target.cluster.alias": "dr", "replication.policy.separator": ""}
    flow = from_strimzi(tmp_path, strimzi(own, form))
    assert (flow.policy.target_topic("orders"), flow.checkpoints_topic) == ("orders", "checkpointsinternal")
    assert flow.offset_syncs_topic == "mm2-offset-syncsdrinternal"

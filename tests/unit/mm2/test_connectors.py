"""The flow that MM2's connectors make up."""

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import ConfigError
from tests.facts import options
from tests.fakeworker import worker
from tests.unit.connectscene import connectors, rest, strimzi_file


def test_a_fact_that_is_a_reference_is_named():
    listed = connectors({"topics": "${env:TOPICS}"})
    with worker(rest(listed)) as url, pytest.raises(ConfigError, match="topics in connector copy-Source.*reference"):
        resolve_flow(options(connect_url=url))


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
    other = connectors({"topics.exclude": "x"}, name="more")
    with worker(rest(connectors({}) | other)) as url:
        assert resolve_flow(options(connect_url=url)).topic_filter is None
    apart = connectors({"replication.policy.separator": "-"}, name="more")
    with worker(rest(connectors({}) | apart)) as url, pytest.raises(ConfigError, match="do not agree"):
        resolve_flow(options(connect_url=url))


def test_without_a_checkpoint_connector_group_sync_and_the_group_filter_are_unknown():
    listed = connectors({})
    del listed["copy-Checkpoint"]
    with worker(rest(listed)) as url:
        flow = resolve_flow(options(connect_url=url))
    assert (flow.group_sync, flow.group_filter) == (None, None)


@pytest.mark.parametrize("separator", ["-", "${env:SEPARATOR}"], ids=["another", "a reference"])
def test_a_separator_that_connectors_do_not_agree_on_or_only_refer_to_is_what_the_option_says(separator):
    apart = connectors({"replication.policy.separator": separator}, name="more")
    with worker(rest(connectors({}) | apart)) as url:
        with pytest.raises(ConfigError, match="--separator"):
            resolve_flow(options(connect_url=url))
        assert resolve_flow(options(connect_url=url, separator="-")).policy.target_topic("t") == "A-t"

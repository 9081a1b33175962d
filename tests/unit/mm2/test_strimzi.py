"""A Strimzi resource: which of several is read, and what is refused without a word of what it holds."""

import shlex

import pytest
import yaml

from migrate.errors import ConfigError
from migrate.mm2.commands import resetting, stopping
from migrate.model import TopicPartition
from migrate.plan.build import flow_names
from migrate.show.explain import site_of
from tests.builders import make_header
from tests.unit.connectscene import strimzi
from tests.unit.mm2.flowlines import from_strimzi


def test_a_list_of_resources_and_several_documents_are_searched_for_the_flow(tmp_path):
    other = yaml.safe_load(yaml.safe_dump(strimzi({})).replace("alias: A", "alias: Z").replace(": A\n", ": Z\n"))
    documents = ({"kind": "List", "items": [other]}, None, strimzi({}))
    assert from_strimzi(tmp_path, *documents).source.alias == "A"
    assert from_strimzi(tmp_path, *documents, source="Z").source.alias == "Z"


def orders_and_bills(first=(), second=(), **of_second):
    """Two resources that split the topics of one flow, each with settings of its own."""
    orders = strimzi({"topics": "orders.*", "groups": "o.*", **dict(first)}, "v1", name="orders")
    bills = strimzi({"topics": "bills.*", "groups": "b.*", **dict(second)}, "v1", name="bills", **of_second)
    bills["spec"]["target"]["offsetStorageTopic"] = "bills-offsets"
    return orders, bills


@pytest.mark.parametrize("turn", [1, -1], ids=["in order", "the other way round"])
@pytest.mark.parametrize("kind", ["List", "KafkaMirrorMaker2List", ""], ids=["kubectl", "the API", "documents"])
def test_resources_of_one_flow_add_up_whatever_their_order(tmp_path, kind, turn):
    resources = orders_and_bills({"header.converter": "x.Simple"}, {"sync.group.offsets.enabled": "true"})[::turn]
    documents = [{"kind": kind, "items": list(resources)}] if kind else resources
    flow = from_strimzi(tmp_path, *documents)
    assert {t for t in ("orders1", "bills1", "others") if not flow.why_not_replicated(t)} == {"orders1", "bills1"}
    assert flow.synced(["o1", "b1", "x"]) == {"b1"}, "orders sync no group"
    assert flow.connect_offsets_topics == ("bills-offsets", "its-offsets")
    assert flow.runtime.resources == ("kafka/bills", "kafka/orders")
    assert flow.runtime_words()["mm2_converters"] == "header.converter x.Simple", "beside the others' bytes"


def test_of_resources_with_versions_of_their_own_each_is_read_by_its_own(tmp_path):
    resources = orders_and_bills({"groups.blacklist": "ox"}, {"groups.blacklist": "bx"}, version="3.9.0")
    flow = from_strimzi(tmp_path, *resources)
    taken = {g for g in ("o1", "ox", "b1", "bx") if flow.group_filter.accepts(g)}
    assert taken == {"o1", "ox", "b1"}, "orders run on 4.0.0, which knows no blacklist"
    assert (flow.runtime.version, flow.policy.before_kafka_4) == ("", None)


def test_resources_with_the_same_aliases_and_other_brokers_are_not_taken_for_one_flow(tmp_path):
    def read(brokers):
        orders, bills = orders_and_bills()
        bills["spec"]["mirrors"][0]["source"]["bootstrapServers"] = brokers
        return from_strimzi(tmp_path, orders, bills)

    with pytest.raises(ConfigError, match="connectors of A -> B do not name the same brokers of A"):
        read("elsewhere:1")
    assert read("a:2, a:1").runtime.resources == ("kafka/bills", "kafka/orders")


def test_every_resource_of_a_flow_gets_its_commands(tmp_path):
    flow = from_strimzi(tmp_path, *orders_and_bills())
    site = site_of(make_header(flow=flow_names(flow)))
    for lines in (stopping(site), resetting(site, TopicPartition("orders", 3))):
        words = [shlex.split(line) for line in lines if line.startswith("    ")]
        assert {word for each in words for word in each if word in ("orders", "bills")} == {"orders", "bills"}
    # Resetting the others would copy their topics again.
    assert "only of the resource that copies this topic" in " ".join(resetting(site, TopicPartition("orders", 3)))

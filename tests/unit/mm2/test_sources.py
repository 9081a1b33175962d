"""One flow, told by mm2.properties, by a Connect worker and by a Strimzi resource: the same facts, and no secret."""

import json
import shlex
from types import SimpleNamespace

import pytest
import yaml

from migrate.cli.options import resolve_flow
from migrate.errors import ClusterError, ConfigError, MigrateError, UsageError
from migrate.kafka.client_config import librdkafka_config
from migrate.match.equality import Content
from migrate.mm2.commands import resetting, stopping
from migrate.mm2.connectors import FACTS
from migrate.mm2.flow import BYTES
from migrate.mm2.naming import PolicyKind
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.model import LogRange, Side, TopicPartition
from migrate.plan.build import flow_names
from migrate.session.clusters import mm2_worker_of
from migrate.show.explain import site_of
from tests.builders import make_header
from tests.facts import facts, options
from tests.fakeworker import worker
from tests.unit.connectscene import MIRROR, connectors, strimzi
from tests.unit.mm2.flowlines import from_properties, from_strimzi, from_worker

SECRETS = ("hunter2", "s3cret", "${file:/x:pw}")

# What the three say of one flow, in the words of the connectors' settings.
FULL = {
    "replication.policy.class": f"{MIRROR}.IdentityReplicationPolicy",
    "replication.policy.separator": "_",
    "offset-syncs.topic.location": "target",
    "topics": "orders.*, bills",
    "topics.exclude": ".*tmp",
    "groups": "g.*",
    "groups.exclude": "gx",
    "sync.group.offsets.enabled": "true",
    "emit.offset-syncs.enabled": "false",
    "source.consumer.isolation.level": "read_committed",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "offsets.storage.topic": "own-offsets",
}


@pytest.mark.parametrize("settings", [{}, FULL], ids=["plain", "full"])
def test_properties_a_connect_worker_and_strimzi_give_the_same_facts(tmp_path, settings):
    from_rest = from_worker(connectors(settings))
    others = (
        from_properties(tmp_path, settings),
        from_strimzi(tmp_path, strimzi(settings)),
        from_strimzi(tmp_path, strimzi(settings, "v1")),
    )
    said = dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES)
    for flow in others:
        assert facts(flow) == facts(from_rest)
        assert said | flow.runtime.converters == said | from_rest.runtime.converters
    if settings:
        assert {flow.connect_offsets_topics for flow in (from_rest, *others)} == {("own-offsets",)}
        assert (from_rest.policy.kind, from_rest.syncs_side) == (PolicyKind.IDENTITY, Side.TARGET)
        assert from_rest.group_sync is True and not from_rest.group_filter.accepts("gx")


def test_each_says_how_mm2_runs_there(tmp_path):
    from_file = from_properties(tmp_path, {})
    assert (from_file.runtime.home, from_file.connect_offsets_topics) == ("dedicated", ("mm2-offsets.A.internal",))
    with worker({"/": {"version": "4.1.0"}, "/connectors?expand=info": connectors({})}) as url:
        told = resolve_flow(options(connect_url=url + "/"))
    assert (told.runtime.home, told.runtime.version, told.runtime.url) == ("connect", "4.1.0", url)
    assert told.runtime.source_connectors == ("copy-Source",)
    assert told.runtime.checkpoint_connectors == ("copy-Checkpoint",)
    assert told.connect_offsets_topics == ()
    assert from_worker(connectors({}), connect_offsets_topic="mine").connect_offsets_topics == ("mine",)
    flow = from_strimzi(tmp_path, strimzi({}))
    assert (flow.runtime.home, flow.runtime.version, flow.runtime.resources) == ("strimzi", "4.0.0", ("kafka/mm2",))
    assert flow.connect_offsets_topics == ("mirrormaker2-cluster-offsets",)
    assert flow.runtime.source_connectors == ("A->B.MirrorSourceConnector",)
    assert from_strimzi(tmp_path, strimzi({}, "v1")).connect_offsets_topics == ("its-offsets",)


def test_secrets_in_an_answer_or_a_resource_reach_neither_the_flow_nor_an_error(tmp_path):
    login = "PlainLoginModule required username='u' password='hunter2';"
    secret = {
        "source.cluster.sasl.jaas.config": login,
        "target.cluster.ssl.key.password": "s3cret",
        "source.cluster.ssl.keystore.password": "${file:/x:pw}",
    }
    resource = strimzi({}, config={"sasl.jaas.config": login, "ssl.key.password": "s3cret"})
    shown = ""
    for flow in (from_worker(connectors({}, **secret)), from_strimzi(tmp_path, resource)):
        shown += repr(flow) + repr(dict(flow.source.properties)) + repr(dict(flow.target.properties))
    broken = tmp_path / "broken.yaml"
    broken.write_text("spec: {password: hunter2, [}\n")
    for given in ({"connect_url": "http://u:hunter2@127.0.0.1:1"}, {"strimzi": broken}):
        with pytest.raises(MigrateError) as caught:
            resolve_flow(options(**given))
        shown += str(caught.value) + repr(caught.value)
    with pytest.raises(MigrateError) as caught:
        from_strimzi(tmp_path, {"kind": "KafkaMirrorMaker2", "spec": {"clusters": "hunter2"}})
    shown += str(caught.value) + repr(caught.value)
    with worker({"/": b'{"password": "hunter2"'}) as url, pytest.raises(ClusterError) as caught:
        resolve_flow(options(connect_url=url))
    shown += str(caught.value)
    assert not [s for s in SECRETS if s in shown]
    assert not [name for name in FACTS if any(word in name for word in ("jaas", "password", "keystore", "sasl"))]


def test_client_files_win_for_credentials_and_brokers_come_from_the_description_if_it_names_them(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    listed = connectors({}, **{"source.cluster.security.protocol": "SASL_SSL"})
    with pytest.raises(ConfigError, match="A speaks SASL_SSL.*--source-config FILE"):
        from_worker(listed)
    flow = from_worker(listed, source_config=client)
    assert flow.source.properties["bootstrap.servers"] == "a:1"
    assert flow.source.properties["sasl.mechanism"] == "PLAIN"
    assert librdkafka_config(flow.target.properties, "B")["bootstrap.servers"] == "b:1"
    with pytest.raises(ConfigError, match="B speaks SSL.*--target-config FILE"):
        from_worker(connectors({}, **{"target.producer.security.protocol": "ssl"}))
    for block in ({"tls": {}}, {"authentication": {"type": "scram-sha-512"}}, {"tls": {"trustedCertificates": []}}):
        with pytest.raises(ConfigError, match="A speaks S"):
            from_strimzi(tmp_path, strimzi({}, **block))
        assert from_strimzi(tmp_path, strimzi({}, **block), source_config=client).source.bootstrap == "a:1"
    client.write_text("bootstrap.servers=other:9\n")
    listed = connectors({}, **{"source.cluster.bootstrap.servers": "${env:BROKERS}"})
    with pytest.raises(ConfigError, match="how to reach A.*--source-config"):
        from_worker(listed)
    assert from_worker(listed, source_config=client).source.bootstrap == "other:9"


def test_only_one_description_of_mm2_may_be_given(tmp_path):
    with pytest.raises(UsageError, match="--connect-url and --strimzi exclude each other"):
        resolve_flow(options(connect_url="http://x:1", strimzi=tmp_path / "x"))


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
def test_a_checkpoint_connector_without_tasks_syncs_no_group_but_one_beside_it_may(tmp_path, silent):
    flow = from_worker(connectors({**SYNC, **silent}))
    assert flow.synced(["g"]) == frozenset() and flow.why_not_emitted("A.checkpoints.internal")
    resource = strimzi(SYNC)
    resource["spec"]["mirrors"][0]["checkpointConnector"]["config"] |= silent
    assert from_strimzi(tmp_path, resource).synced(["g"]) == frozenset()
    beside_one_with_tasks = of_two({**SYNC, **silent}, SYNC)
    assert beside_one_with_tasks.synced(["g"]) == {"g"}
    assert not beside_one_with_tasks.why_not_emitted("A.checkpoints.internal")


@pytest.mark.parametrize(("settings", "of_more", "synced"), [
    ({"groups": "q.*"}, {"groups": "s.*", **SYNC}, {"s1"}),
    (OWN_FILTER, {"groups": "s.*", **SYNC}, {"s1"}),
    ({"groups": "q.*"}, {**OWN_FILTER, **SYNC}, {"q1", "s1"}),
])  # fmt: skip
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


EMPTY_SEPARATOR = "replication.policy.separator =\n"
NO_ALIASES = "source.cluster.alias =\ntarget.cluster.alias =\n"


@pytest.mark.parametrize(("lines", "alias", "separator", "syncs_of"), [
    ("source.cluster.alias = prod\n", "prod", ".", "B"),
    ("A->B.source.cluster.alias = own \nsource.cluster.alias = prod\nA.alias = mine\n", "own", ".", "B"),
    ("A.alias = mine\nsource.cluster.alias = prod\n", "mine", ".", "B"),
    ("source.cluster.alias = prod\noffset-syncs.topic.location = target\n", "prod", ".", "prod"),
    ("target.cluster.alias = dr\n", "A", ".", "dr"),
    ("source.cluster.alias =\n", "", ".", "B"),
    (NO_ALIASES + EMPTY_SEPARATOR, "", "", ""),
])  # fmt: skip
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


OLD, NEW, UNKNOWN = "before 4.0", "from 4.0 on", "not known"
HOMES = [
    ("properties", "", UNKNOWN),
    ("connect", "3.9.2", OLD), ("connect", "7.9.0-ccs", OLD), ("connect", "4.0.0", NEW),
    ("connect", "vendor-9", UNKNOWN),
    ("strimzi", "3.9.0", OLD), ("strimzi", "4.1.0", NEW), ("strimzi", None, UNKNOWN),
]  # fmt: skip


def told(tmp_path, home, version, settings):
    """The flow A -> B with these settings, as that kind of MM2 tells it."""
    if home == "properties":
        return from_properties(tmp_path, settings)
    if home == "strimzi":
        return from_strimzi(tmp_path, strimzi(settings, version=version))
    return from_worker(connectors(settings), version)


@pytest.mark.parametrize(("home", "version", "age"), HOMES)
def test_before_kafka_4_blacklists_count_and_internal_endings_are_not_copied_and_of_an_unknown_version_either_may_be(
    tmp_path, home, version, age
):
    settings = {"groups.blacklist": "z.*", "sync.group.offsets.enabled": "true"}
    synced = {OLD: {"g", "connect-s"}, NEW: {"g", "z1"}, UNKNOWN: {"g", "z1", "connect-s"}}[age]
    assert told(tmp_path, home, version, settings).synced(["g", "z1", "connect-s"]) == synced
    flow = told(tmp_path, home, version, settings | {"groups.exclude": "y.*"})
    assert flow.synced(["g", "z1", "y1"]) == {"g", "z1"}, "groups.exclude wins in every version"
    flow = told(tmp_path, home, version, {"topics.blacklist": "z.*"})
    topics = ("orders", "z1", "a.replica")
    left_out = {topic for topic in topics if flow.why_not_replicated(topic)}
    perhaps = {topic for topic in topics if "depends on its version" in flow.why_perhaps_not_replicated(topic)}
    assert left_out == {OLD: {"z1"}, NEW: {"a.replica"}, UNKNOWN: set()}[age]
    assert perhaps == ({"z1", "a.replica"} if age is UNKNOWN else set())
    flow = told(tmp_path, home, version, {"topics.exclude": "none", "replication.policy.separator": "_"})
    for topic in ("foo.internal", "foo-internal", "foo_internal"):
        why, perhaps = flow.why_not_replicated(topic), flow.why_perhaps_not_replicated(topic)
        assert ("before Kafka 4.0" in why, "before Kafka 4.0" in perhaps) == (age is OLD, age is UNKNOWN)
    assert not flow.why_not_replicated("internally") and not flow.why_perhaps_not_replicated("internally")
    # By the defaults too, whatever else leaves it out.
    plain = told(tmp_path, home, version, {})
    assert bool(plain.why_not_replicated("foo-internal")) is (age is OLD)
    assert not plain.why_not_replicated("foo_internal")

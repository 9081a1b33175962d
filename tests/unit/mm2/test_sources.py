"""One flow, told by mm2.properties, by a Connect worker and by a Strimzi resource: the same facts, and no secret."""

import pytest
import yaml

from migrate.cli.options import resolve_flow
from migrate.errors import ClusterError, ConfigError, MigrateError, UsageError
from migrate.kafka.client_config import librdkafka_config
from migrate.mm2.connect_worker import LOGIN, Mm2Worker, connect_worker
from migrate.mm2.connectors import FACTS, Role
from migrate.mm2.flow import BYTES
from migrate.mm2.naming import PolicyKind
from migrate.model import Side, TopicPartition
from tests.facts import facts, options
from tests.fakeworker import worker
from tests.lab.ipv6 import has_ipv6
from tests.unit.connectscene import MIRROR, connectors, rest

IDENTITY = f"{MIRROR}.IdentityReplicationPolicy"
SECRETS = ("hunter2", "s3cret", "${file:/x:pw}")

# What the three say of one flow, in the words of the connectors' settings.
PLAIN = {}
FULL = {
    "replication.policy.class": IDENTITY,
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


def properties(tmp_path, settings):
    lines = {"clusters": "A, B", "A.bootstrap.servers": "a:1", "B.bootstrap.servers": "b:1", "A->B.enabled": "true"}
    lines |= {f"A->B.{key}": value for key, value in settings.items()}
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


def strimzi(settings, form="v1beta2", **cluster):
    a = {"alias": "A", "bootstrapServers": "a:1", **cluster}
    b = {"alias": "B", "bootstrapServers": "b:1"}
    rest_of = {k: v for k, v in settings.items() if k not in ("topics", "topics.exclude", "groups", "groups.exclude")}
    mirror = {
        "sourceConnector": {"tasksMax": 2, "config": rest_of},
        "checkpointConnector": {"config": {k: yaml.safe_load(v) if v == "true" else v for k, v in rest_of.items()}},
    }
    for key, name in (("topics", "topicsPattern"), ("topics.exclude", "topicsExcludePattern"),
                      ("groups", "groupsPattern"), ("groups.exclude", "groupsExcludePattern")):  # fmt: skip
        if key in settings:
            mirror[name] = settings[key]
    spec = {"version": "4.0.0", "replicas": 1}
    if form == "v1beta2":
        spec |= {"connectCluster": "B", "clusters": [a, b]}
        spec["mirrors"] = [{"sourceCluster": "A", "targetCluster": "B"} | mirror]
    else:
        spec |= {"target": b | {"groupId": "g", "offsetStorageTopic": "its-offsets"}}
        spec["mirrors"] = [{"source": a} | mirror]
    return {"kind": "KafkaMirrorMaker2", "metadata": {"name": "mm2", "namespace": "kafka"}, "spec": spec}


def strimzi_file(tmp_path, *documents):
    path = tmp_path / "mm2.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def bytes_unless_said(converters):
    return {key: converters.get(key, BYTES) for key in ("key.converter", "value.converter", "header.converter")}


@pytest.mark.parametrize("settings", [PLAIN, FULL], ids=["plain", "full"])
def test_properties_a_connect_worker_and_strimzi_give_the_same_facts(tmp_path, settings):
    from_file = resolve_flow(options(mm2_config=properties(tmp_path, settings)))
    with worker(rest(connectors(settings))) as url:
        from_rest = resolve_flow(options(connect_url=url))
    from_strimzi = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi(settings))))
    from_v1 = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi(settings, "v1"))))
    assert facts(from_file) == facts(from_rest) == facts(from_strimzi) == facts(from_v1)
    said = [bytes_unless_said(f.runtime.converters) for f in (from_file, from_rest, from_strimzi, from_v1)]
    assert all(each == said[0] for each in said)
    if settings:
        assert {f.connect_offsets_topic for f in (from_file, from_rest, from_strimzi, from_v1)} == {"own-offsets"}
        assert from_rest.policy.kind is PolicyKind.IDENTITY
        assert from_rest.syncs_side is Side.TARGET
        assert from_rest.group_sync is True
        assert not from_rest.group_filter.accepts("gx")


def test_each_says_how_mm2_runs_there(tmp_path):
    from_file = resolve_flow(options(mm2_config=properties(tmp_path, {})))
    assert (from_file.runtime.home, from_file.connect_offsets_topic) == ("dedicated", "mm2-offsets.A.internal")
    with worker(rest(connectors({}))) as url:
        told = resolve_flow(options(connect_url=url + "/"))
        assert (told.runtime.home, told.runtime.version, told.runtime.url) == ("connect", "4.1.0", url)
        assert told.runtime.source_connectors == ("copy-Source",)
        assert told.runtime.checkpoint_connectors == ("copy-Checkpoint",)
        assert told.connect_offsets_topic == ""
        named = resolve_flow(options(connect_url=url, connect_offsets_topic="mine"))
        assert named.connect_offsets_topic == "mine"
    flow = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi({}))))
    assert (flow.runtime.home, flow.runtime.version, flow.runtime.resource) == ("strimzi", "4.0.0", "kafka/mm2")
    assert flow.connect_offsets_topic == "mirrormaker2-cluster-offsets"
    assert flow.runtime.source_connectors == ("A->B.MirrorSourceConnector",)
    newer = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi({}, "v1"))))
    assert newer.connect_offsets_topic == "its-offsets"


def test_the_properties_name_another_offsets_topic_at_the_top_or_with_the_target(tmp_path):
    path = properties(tmp_path, {})
    before = path.read_text()
    path.write_text(before + "B.offset.storage.topic = b-offsets\n")
    assert resolve_flow(options(mm2_config=path)).connect_offsets_topic == "b-offsets"
    path.write_text(before + "B.offset.storage.topic = b-offsets\noffset.storage.topic = top-offsets\n")
    assert resolve_flow(options(mm2_config=path)).connect_offsets_topic == "top-offsets"


def test_secrets_in_an_answer_or_a_resource_reach_neither_the_flow_nor_an_error(tmp_path):
    login = "PlainLoginModule required username='u' password='hunter2';"
    secret = {
        "source.cluster.sasl.jaas.config": login,
        "target.cluster.ssl.key.password": "s3cret",
        "source.cluster.ssl.keystore.password": "${file:/x:pw}",
    }
    with worker(rest(connectors({}, **secret))) as url:
        flow = resolve_flow(options(connect_url=url))
    shown = repr(flow) + repr(dict(flow.source.properties)) + repr(dict(flow.target.properties))
    resource = strimzi({}, config={"sasl.jaas.config": login, "ssl.key.password": "s3cret"})
    flow = resolve_flow(options(strimzi=strimzi_file(tmp_path, resource)))
    shown += repr(flow) + repr(dict(flow.source.properties)) + repr(dict(flow.target.properties))
    broken = tmp_path / "broken.yaml"
    broken.write_text("spec: {password: hunter2, [}\n")
    for given in (
        {"connect_url": "http://u:hunter2@127.0.0.1:1"},
        {"strimzi": broken},
        {"strimzi": strimzi_file(tmp_path, {"kind": "KafkaMirrorMaker2", "spec": {"clusters": "hunter2"}})},
    ):
        with pytest.raises(MigrateError) as caught:
            resolve_flow(options(**given))
        shown += str(caught.value) + repr(caught.value)
    with worker({"/": b'{"password": "hunter2"'}) as url, pytest.raises(ClusterError) as caught:
        resolve_flow(options(connect_url=url))
    shown += str(caught.value)
    assert not [s for s in SECRETS if s in shown]
    assert not [name for name in FACTS if any(word in name for word in ("jaas", "password", "keystore", "sasl"))]


def test_client_files_win_for_credentials_and_take_brokers_from_the_description(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    listed = connectors({}, **{"source.cluster.security.protocol": "SASL_SSL"})
    with worker(rest(listed)) as url:
        with pytest.raises(ConfigError, match="A speaks SASL_SSL.*--source-config FILE"):
            resolve_flow(options(connect_url=url))
        flow = resolve_flow(options(connect_url=url, source_config=client))
    assert flow.source.properties["bootstrap.servers"] == "a:1"
    assert flow.source.properties["sasl.mechanism"] == "PLAIN"
    assert librdkafka_config(flow.target.properties, "B")["bootstrap.servers"] == "b:1"
    listed = connectors({}, **{"target.producer.security.protocol": "ssl"})
    with worker(rest(listed)) as url, pytest.raises(ConfigError, match="B speaks SSL.*--target-config FILE"):
        resolve_flow(options(connect_url=url))
    for block in ({"tls": {}}, {"authentication": {"type": "scram-sha-512"}}, {"tls": {"trustedCertificates": []}}):
        path = strimzi_file(tmp_path, strimzi({}, **block))
        with pytest.raises(ConfigError, match="A speaks S"):
            resolve_flow(options(strimzi=path))
        assert resolve_flow(options(strimzi=path, source_config=client)).source.bootstrap == "a:1"


def test_brokers_that_only_the_worker_knows_are_asked_for(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("bootstrap.servers=other:9\n")
    listed = connectors({}, **{"source.cluster.bootstrap.servers": "${env:BROKERS}"})
    with worker(rest(listed)) as url:
        with pytest.raises(ConfigError, match="how to reach A.*--source-config"):
            resolve_flow(options(connect_url=url))
        assert resolve_flow(options(connect_url=url, source_config=client)).source.bootstrap == "other:9"


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


def test_a_list_of_resources_and_several_documents_are_searched_for_the_flow(tmp_path):
    other = yaml.safe_load(yaml.safe_dump(strimzi({})).replace("alias: A", "alias: Z").replace(": A\n", ": Z\n"))
    path = strimzi_file(tmp_path, {"kind": "List", "items": [other]}, None, strimzi({}))
    assert resolve_flow(options(strimzi=path)).source.alias == "A"
    assert resolve_flow(options(strimzi=path, source="Z")).source.alias == "Z"


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


def test_a_worker_tells_the_positions_of_its_connectors():
    def entry(cluster, topic, partition, offset):
        return {"partition": {"cluster": cluster, "topic": topic, "partition": partition}, "offset": {"offset": offset}}

    answers = {
        "/connectors/A-%3EB.x%2Fy/offsets": {"offsets": [entry("A", "t", 0, 41), entry("C", "t", 1, 9)]},
        "/connectors/z/offsets": {"offsets": [entry("A", "t", 0, 40), {"partition": {}, "offset": None}, 5]},
    }
    with worker(answers) as url:
        reader = Mm2Worker(connect_worker(url), dict.fromkeys(("A->B.x/y", "z"), Role.SOURCE), "A")
        assert reader.positions() == {TopicPartition("t", 0): 40}
        with pytest.raises(ClusterError, match="older than Kafka 3.5.*--connect-offsets-topic"):
            Mm2Worker(connect_worker(url), {"gone": Role.SOURCE}, "A").positions()


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6: nobody can listen on ::1")
def test_a_worker_with_an_ipv6_address_is_asked_there():
    with worker(rest(connectors({})), host="::1") as url:
        assert url.startswith("http://[::1]:")
        assert connect_worker(url).described().connectors


def test_a_login_comes_from_the_environment_and_is_asked_for(monkeypatch):
    monkeypatch.delenv(LOGIN, raising=False)
    with worker(rest(connectors({})), login="Basic dTpodW50ZXIy") as url:
        with pytest.raises(ClusterError, match=LOGIN):
            connect_worker(url).described()
        monkeypatch.setenv(LOGIN, "u:hunter2")
        assert connect_worker(url).described().connectors
        assert "hunter2" not in repr(connect_worker(url))


def test_a_login_that_goes_over_an_unencrypted_line_is_warned_of_and_not_shown(monkeypatch, capsys):
    monkeypatch.delenv(LOGIN, raising=False)
    with worker(rest(connectors(PLAIN))) as url:
        given = options(connect_url=url)
        resolve_flow(given)
        assert capsys.readouterr().err == ""
        monkeypatch.setenv(LOGIN, "u:hunter2")
        resolve_flow(given)
    told = capsys.readouterr().err
    assert "warning" in told and LOGIN in told and url in told and "https://" in told and "hunter2" not in told


@pytest.mark.parametrize("url", ["https://connect:8083", "HTTPS://connect:8083"])
def test_a_login_over_https_is_not_warned_of(monkeypatch, url):
    monkeypatch.setenv(LOGIN, "u:hunter2")
    assert connect_worker(url).warning == ""


@pytest.mark.parametrize(
    "url", ["connect:8083", "ftp://x", "http://", "http://x:port", "http://u:p@x", "http://x/?a=b"]
)
def test_what_is_no_address_of_a_worker_is_refused(url):
    with pytest.raises(UsageError, match="--connect-url"):
        connect_worker(url)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({}, "HTTP 404"),
        ({"/": 409}, "rebalancing"),
        ({"/": {}, "/connectors?expand=info": {}}, "no Kafka Connect worker"),
        ({"/": b"<html>"}, "no Kafka Connect worker"),
        (rest([]), "no Kafka Connect worker"),
    ],
)
def test_an_answer_that_is_no_workers_is_one_paragraph(answers, words):
    with worker(answers) as url, pytest.raises(ClusterError, match=words):
        connect_worker(url).described()


def test_a_worker_that_does_not_answer_is_told_with_the_way_around_it():
    with worker({}) as url:
        pass
    with pytest.raises(ClusterError, match=r"does not answer: .*--source-config"):
        connect_worker(url).described()


def test_only_one_description_of_mm2_may_be_given(tmp_path):
    with pytest.raises(UsageError, match="--connect-url and --strimzi exclude each other"):
        resolve_flow(options(connect_url="http://x:1", strimzi=tmp_path / "x"))

"""One flow, told by mm2.properties, by a Connect worker and by a Strimzi resource: the same facts, and no secret."""

import pytest

from migrate.cli.options import resolve_flow
from migrate.errors import ClusterError, ConfigError, MigrateError, UsageError
from migrate.kafka.client_config import librdkafka_config
from migrate.mm2.connectors import FACTS
from migrate.mm2.flow import BYTES
from migrate.mm2.naming import PolicyKind
from migrate.model import Side
from tests.facts import facts, options
from tests.fakeworker import worker
from tests.unit.connectscene import MIRROR, connectors, rest, strimzi, strimzi_file

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
        assert {f.connect_offsets_topics for f in (from_file, from_rest, from_strimzi, from_v1)} == {("own-offsets",)}
        assert from_rest.policy.kind is PolicyKind.IDENTITY
        assert from_rest.syncs_side is Side.TARGET
        assert from_rest.group_sync is True
        assert not from_rest.group_filter.accepts("gx")


def test_each_says_how_mm2_runs_there(tmp_path):
    from_file = resolve_flow(options(mm2_config=properties(tmp_path, {})))
    assert (from_file.runtime.home, from_file.connect_offsets_topics) == ("dedicated", ("mm2-offsets.A.internal",))
    with worker(rest(connectors({}))) as url:
        told = resolve_flow(options(connect_url=url + "/"))
        assert (told.runtime.home, told.runtime.version, told.runtime.url) == ("connect", "4.1.0", url)
        assert told.runtime.source_connectors == ("copy-Source",)
        assert told.runtime.checkpoint_connectors == ("copy-Checkpoint",)
        assert told.connect_offsets_topics == ()
        named = resolve_flow(options(connect_url=url, connect_offsets_topic="mine"))
        assert named.connect_offsets_topics == ("mine",)
    flow = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi({}))))
    assert (flow.runtime.home, flow.runtime.version, flow.runtime.resources) == ("strimzi", "4.0.0", ("kafka/mm2",))
    assert flow.connect_offsets_topics == ("mirrormaker2-cluster-offsets",)
    assert flow.runtime.source_connectors == ("A->B.MirrorSourceConnector",)
    newer = resolve_flow(options(strimzi=strimzi_file(tmp_path, strimzi({}, "v1"))))
    assert newer.connect_offsets_topics == ("its-offsets",)


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


def test_only_one_description_of_mm2_may_be_given(tmp_path):
    with pytest.raises(UsageError, match="--connect-url and --strimzi exclude each other"):
        resolve_flow(options(connect_url="http://x:1", strimzi=tmp_path / "x"))

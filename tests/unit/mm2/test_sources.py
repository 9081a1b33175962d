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


def test_client_files_win_for_credentials_and_take_brokers_from_the_description(tmp_path):
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


def test_brokers_that_only_the_worker_knows_are_asked_for(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("bootstrap.servers=other:9\n")
    listed = connectors({}, **{"source.cluster.bootstrap.servers": "${env:BROKERS}"})
    with pytest.raises(ConfigError, match="how to reach A.*--source-config"):
        from_worker(listed)
    assert from_worker(listed, source_config=client).source.bootstrap == "other:9"


def test_only_one_description_of_mm2_may_be_given(tmp_path):
    with pytest.raises(UsageError, match="--connect-url and --strimzi exclude each other"):
        resolve_flow(options(connect_url="http://x:1", strimzi=tmp_path / "x"))

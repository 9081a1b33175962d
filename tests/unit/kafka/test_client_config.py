"""Java client properties for librdkafka, Spark and Java: mapped, ignored or refused by name, never told."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.kafka.client_config import CLIENT_ID, client_settings, librdkafka_config
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings
from tests.unit.clientscene import BROKERS, OAUTH, PASSWORD, PLAIN, TLS, accepted, mapped, refusal


def test_a_plain_client_gets_a_name_creates_no_topic_and_keeps_quiet(capfd):
    config = mapped(BROKERS)
    assert config["client.id"] == CLIENT_ID
    assert config["allow.auto.create.topics"] == "false"
    assert accepted(BROKERS | {"security.protocol": "plaintext", "isolation.level": "read_committed"})
    assert accepted({"bootstrap.servers": "[::1]:1,127.0.0.1:1"})
    assert capfd.readouterr() == ("", "")
    own = mapped(BROKERS | {"client.id": "mine", "allow.auto.create.topics": "true"})
    assert (own["client.id"], own["allow.auto.create.topics"]) == ("mine", "false")


@pytest.mark.parametrize(
    ("change", "names", "advice"),
    [
        ({"security.protocol": "TLS"}, "security.protocol", "SASL_SSL"),
        ({"sasl.username": "u"}, "sasl.username", "Java clients"),
        ({"security.protcol": "SSL"}, "security.protcol", "spelling"),
        ({"security_protocol": "SASL_SSL"}, "security_protocol", "spelling"),
        ({"Security.Protocol": "SSL"}, "Security.Protocol", "spelling"),
        ({"admin.security.protocol": "SSL"}, "admin.security.protocol", "spelling"),
        ({"producer.sasl.jaas.config": "x"}, "producer.sasl.jaas.config", "spelling"),
        ({"bootstrap.servers": " "}, "bootstrap.servers", "HOST:PORT"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name_with_what_to_do(change, names, advice):
    text = refusal(PLAIN | change)
    assert names in text
    assert advice in text


def test_what_only_java_clients_have_is_left_out():
    properties = BROKERS | {
        "key.deserializer": "a.B",
        "enable.auto.commit": "false",
        "group.id": "g",
        "request.timeout.ms": "30000",
        "ssl.truststore.location": "/not/used/without/tls.jks",
        "sasl.mechanism": "GSSAPI",
        "config.providers": "file",
        "config.providers.file.class": "a.B",
    }
    assert librdkafka_config(properties, "f") == librdkafka_config(BROKERS, "f")


def test_a_reference_that_stands_for_nothing_is_refused_only_where_the_setting_is_used():
    reference = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "sasl.jaas.config": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}",
    }
    assert mapped(BROKERS | reference)["bootstrap.servers"] == "127.0.0.1:1"
    assert "client.rack" in refusal(PLAIN | reference | {"client.rack": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}"})
    assert "MM2_MIGRATE_NO_SUCH_VARIABLE" in refusal(PLAIN | reference)


WORDS = st.fixed_dictionaries(
    {},
    optional={
        "client.id": st.just("mine"),
        "client.rack": st.just("r1"),
        "client.dns.lookup": st.sampled_from(["default", "use_all_dns_ips"]),
        "isolation.level": st.just("read_committed"),
        "acks": st.just("all"),
        "ssl.endpoint.identification.algorithm": st.sampled_from(["", "https", "HTTPS"]),
        "ssl.enabled.protocols": st.just("TLSv1.3"),
    },
)


SECURITY = st.sampled_from([BROKERS, PLAIN, OAUTH, TLS])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECURITY, st.booleans(), WORDS)
def test_whatever_is_mapped_librdkafka_accepts_in_silence(capfd, security, tls, words):
    properties = security | words
    if tls and security is not BROKERS:
        properties["security.protocol"] = properties["security.protocol"].replace("PLAINTEXT", "SSL")
    assert accepted(properties)
    assert capfd.readouterr() == ("", "")


def test_a_mapped_configuration_does_not_show_itself():
    cluster = Cluster(Side.SOURCE, "A", PLAIN)
    assert PASSWORD in client_settings(cluster).config.values() and PASSWORD in client_settings(cluster).secrets
    assert PASSWORD not in repr((cluster, client_settings(cluster), java_settings(cluster)))

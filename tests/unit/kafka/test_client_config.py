"""Java client properties for librdkafka, Spark and Java: mapped, ignored or refused by name, never told."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.kafka import client_config
from migrate.kafka.client_config import CLIENT_ID, client_settings
from migrate.mm2.flow import Cluster
from migrate.mm2.jaas import OAUTH_SETTINGS
from migrate.model import Side
from migrate.spark.java_settings import java_settings
from tests.unit.clientscene import BROKERS, OAUTH, PASSWORD, PLAIN, TLS, accepted, mapped, refusal


def test_a_plain_client_gets_a_name_creates_no_topic_and_keeps_quiet(capfd):
    config = mapped(BROKERS)
    assert (config["client.id"], config["allow.auto.create.topics"]) == (CLIENT_ID, "false")
    assert accepted(BROKERS | {"security.protocol": "plaintext", "isolation.level": "read_committed"})
    assert accepted({"bootstrap.servers": "[::1]:1,127.0.0.1:1"})
    assert capfd.readouterr() == ("", "")
    own = mapped(BROKERS | {"client.id": "mine", "allow.auto.create.topics": "true"})
    assert (own["client.id"], own["allow.auto.create.topics"]) == ("mine", "false")


@pytest.mark.parametrize(
    ("change", "names", "advice"),
    [
        ({"security.protocol": "TLS"}, "security.protocol", "SASL_SSL"),
        ({"sasl.jaas.confg": "x", "sasl.new": "x"}, "sasl.jaas.confg, sasl.new", "spelling"),
        ({"bootstrap.servers": " "}, "bootstrap.servers", "HOST:PORT"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_with_what_to_do(change, names, advice):
    text = refusal(PLAIN | change)
    assert names in text and advice in text


@pytest.mark.parametrize(
    "key", ["security_protocol", "Security.Protocol", "admin.security.protocol", "producer.sasl.jaas.config"]
)
def test_a_login_that_would_be_lost_to_its_spelling_is_refused(key):
    assert "spelling" in refusal(BROKERS | {key: "SASL_SSL"})
    assert mapped(PLAIN | {key: "SASL_SSL"}) == mapped(PLAIN)


def test_words_of_librdkafka_are_told_all_at_once_with_what_java_clients_call_them():
    printed = BROKERS | {
        "security.protocol": "SASL_SSL", "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u",
        "sasl.password": PASSWORD, "ssl.ca.location": "/etc/ssl/ca.pem", "session.timeout.ms": "45000",
    }  # fmt: skip
    text = refusal(printed)
    for words in ("sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location", "sasl.mechanism;",
                  "org.apache.kafka.common.security.scram.ScramLoginModule required username=",
                  "ssl.truststore.location and ssl.truststore.type=PEM"):  # fmt: skip
        assert words in text
    assert "plain.PlainLoginModule" in refusal(printed | {"sasl.mechanisms": "PLAIN"})
    assert "bootstrap.servers" in refusal({"metadata.broker.list": "127.0.0.1:1"})


@pytest.mark.parametrize("word", client_config._LIBRDKAFKA_WORDS)
def test_words_of_librdkafka_beside_those_of_java_clients_are_passed_over_as_java_does(word):
    keys = {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.truststore.location": __file__}
    both = OAUTH | TLS | {"security.protocol": "SASL_SSL", "ssl.truststore.type": "PEM"} | keys
    both |= dict.fromkeys(OAUTH_SETTINGS, "mine")
    if word == "ssl.ca.pem":
        both |= {"ssl.truststore.certificates": "x", "ssl.truststore.location": ""}
    if word in ("ssl.certificate.location", "ssl.key.location"):
        both |= {"ssl.keystore.location": __file__, "ssl.keystore.type": "PEM"}
    assert mapped(both | {word: "theirs"}) == mapped(both)


def test_what_java_passes_over_in_an_address_is_passed_over():
    for scheme in ("EXTERNAL://", "http://", "SASL_SSL://", ""):
        properties = PLAIN | {"bootstrap.servers": f"{scheme}127.0.0.1:1, {scheme}[::1]:2"}
        assert mapped(properties)["bootstrap.servers"] == "127.0.0.1:1,[::1]:2" and accepted(properties)


def test_values_in_quotes_are_refused_all_at_once_passwords_excepted():
    text = refusal({"bootstrap.servers": '"h:1"', "security.protocol": "'SSL'", "ssl.truststore.password": '"p"'})
    assert "bootstrap.servers, security.protocol in a.properties have quotes" in text
    assert "password" not in text
    quoted = PLAIN | {"sasl.jaas.config": f"'{PLAIN['sasl.jaas.config']}'"}
    assert "sasl.jaas.config in a.properties has quotes" in refusal(quoted)


def test_what_only_java_clients_have_or_only_warn_of_is_left_out():
    warned_of = {"schema.registry.url": "http://r:1", "basic.auth.user.info": "u:p", "no.such.setting": "x"}
    assert mapped(PLAIN | warned_of) == mapped(PLAIN)
    only_javas = {
        "key.deserializer": "a.B", "enable.auto.commit": "false", "group.id": "g", "request.timeout.ms": "30000",
        "ssl.truststore.location": "/not/used/without/tls.jks", "sasl.mechanism": "GSSAPI",
        "config.providers": "file", "config.providers.file.class": "a.B",
    }  # fmt: skip
    assert mapped(BROKERS | only_javas) == mapped(BROKERS)


def test_a_reference_that_stands_for_nothing_is_refused_only_where_the_setting_is_used():
    reference = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "sasl.jaas.config": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}",
    }
    assert mapped(BROKERS | reference)["bootstrap.servers"] == "127.0.0.1:1"
    assert "client.rack" in refusal(PLAIN | reference | {"client.rack": "${env:MM2_MIGRATE_NO_SUCH_VARIABLE}"})
    assert "MM2_MIGRATE_NO_SUCH_VARIABLE" in refusal(PLAIN | reference)


WORDS = {
    "client.id": st.just("mine"), "client.rack": st.just("r1"), "isolation.level": st.just("read_committed"),
    "client.dns.lookup": st.sampled_from(["default", "use_all_dns_ips"]), "acks": st.just("all"),
    "ssl.endpoint.identification.algorithm": st.sampled_from(["", "https", "HTTPS"]),
    "ssl.enabled.protocols": st.just("TLSv1.3"),
}  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([BROKERS, PLAIN, OAUTH, TLS]), st.booleans(), st.fixed_dictionaries({}, optional=WORDS))
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

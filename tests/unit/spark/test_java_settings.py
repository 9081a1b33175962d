"""A client's properties as Kafka's Java clients and Spark's Kafka source take them."""

from migrate.mm2.flow import CLIENT_ID, Cluster
from migrate.mm2.jaas import LoginModule, parse_jaas
from migrate.model import Side
from migrate.spark.java_settings import java_settings

BROKERS = {"bootstrap.servers": "127.0.0.1:1"}
PLAIN = BROKERS | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
    'password="hunter2";',
}


def test_spark_and_java_get_the_properties_as_they_are_but_for_what_they_reject():
    properties = PLAIN | {
        "auto.offset.reset": "latest",
        "key.deserializer": "a.B",
        "value.deserializer": "a.B",
        "enable.auto.commit": "true",
        "interceptor.classes": "a.B",
        "metric.reporters": "a.B",
        "group.id": "g",
        "ssl.truststore.location": "/x.jks",
        "config.providers": "file",
        "config.providers.file.class": "a.B",
        "allow.auto.create.topics": "true",
    }
    kept = PLAIN | {
        "ssl.truststore.location": "/x.jks",
        "client.id": CLIENT_ID,
        "allow.auto.create.topics": "false",
    }
    settings = java_settings(Cluster(Side.SOURCE, "A", properties))
    assert settings.admin == kept
    assert settings.source == {f"kafka.{key}": value for key, value in kept.items()}
    assert java_settings(Cluster(Side.SOURCE, "A", BROKERS | {"client.id": "mine"})).admin["client.id"] == "mine"


def test_a_spark_that_is_older_than_the_settings_of_oauth_gets_them_in_the_login_module():
    given = BROKERS | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": "a.OAuthBearerLoginModule required extension_pool='p';",
        "sasl.oauthbearer.client.credentials.client.id": "id2",
        "sasl.oauthbearer.client.credentials.client.secret": 'a"b\\c',
        "sasl.oauthbearer.scope": "all",
    }
    settings = java_settings(Cluster(Side.SOURCE, "A", given))
    for told in (settings.admin["sasl.jaas.config"], settings.source["kafka.sasl.jaas.config"]):
        assert parse_jaas(told, "x") == LoginModule(
            "a.OAuthBearerLoginModule", "required",
            {"extension_pool": "p", "clientId": "id2", "clientSecret": 'a"b\\c', "scope": "all"},
        )  # fmt: skip
    assert 'a"b\\c' in settings.secrets
    plain = PLAIN | {"sasl.oauthbearer.client.credentials.client.id": "id2"}
    assert java_settings(Cluster(Side.SOURCE, "A", plain)).admin["sasl.jaas.config"] == PLAIN["sasl.jaas.config"]


def test_what_is_left_over_of_a_login_that_is_not_used_is_no_error():
    left = BROKERS | {"security.protocol": "SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.scope": "all"}
    assert "sasl.jaas.config" not in java_settings(Cluster(Side.SOURCE, "A", left)).admin

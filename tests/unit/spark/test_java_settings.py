"""A client's properties as Kafka's Java clients and Spark's Kafka source take them."""

from migrate.mm2.flow import CLIENT_ID, Cluster
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

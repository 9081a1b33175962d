"""What cannot be read, or written to a topic, is one sentence without a secret."""

import pytest

from migrate.errors import ClusterError
from migrate.extras.offsets_topic.topic_writer import TopicWriter, refuse_showing_secrets
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="pssst!";'


def settings(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return java_settings(Cluster(Side.TARGET, "C", {"bootstrap.servers": "127.0.0.1:1", **given}))


def test_an_embedded_spark_shows_no_secret_by_itself(spark):
    refuse_showing_secrets(spark, settings(sasl_jaas_config=JAAS))


def test_a_cluster_that_does_not_take_them_is_one_sentence_without_a_secret(spark):
    secured = settings(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_jaas_config=JAAS[:-1],
                       max_block_ms="200")  # fmt: skip
    records = spark.range(3).selectExpr("cast('pssst!' as binary) as key", "cast(id as string) as value")
    with pytest.raises(ClusterError, match="Not all could be read and written to topic json") as raised:
        TopicWriter(secured, "json").write(records)
    assert "pssst!" not in str(raised.value)
    with pytest.raises(ClusterError) as raised:
        failing = records.selectExpr("key", "cast(raise_error('read-secret') as string) as value")
        TopicWriter(settings(), "json", {"read-secret"}).write(failing)
    assert "read-secret" not in str(raised.value)

"""A table appears whole or not at all; what cannot be written, here or to a topic, is a sentence without a secret."""

import stat

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from migrate.errors import ClusterError, MigrateError, Refused
from migrate.extras.offsets_topic.table_folder import TableFolder
from migrate.extras.offsets_topic.topic_writer import TopicWriter, refuse_showing_secrets
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings


@pytest.mark.parametrize("before", ["", "file:"])
def test_a_table_is_written_beside_its_place_and_then_gets_its_name(spark, tmp_path, before):
    place = tmp_path / "out é"
    folder = TableFolder(spark, f"{before}{place}")
    assert folder.write(spark.range(7)) == 7 and not place.exists()
    assert folder.write(spark.range(5)) == 5, "an earlier attempt is replaced"
    folder.keep()
    folder.discard()
    assert spark.read.parquet(str(place)).count() == 5
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".crc")] == ["out é"]
    with pytest.raises(Refused, match="it is not overwritten"):
        folder.refuse_existing()


def test_what_kafka_says_while_the_table_is_read_is_not_said_of_its_place(spark, tmp_path):
    # Nobody listens there: the topic cannot be read.
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "500"}
    places = {"assign": '{"t":[0]}', "startingOffsets": '{"t":{"0":0}}', "endingOffsets": '{"t":{"0":1}}'}
    table = spark.read.format("kafka").options(**options, **places).load()
    with pytest.raises((Py4JError, PySparkException)) as raised:
        TableFolder(spark, str(tmp_path / "out")).write(table)
    assert not isinstance(raised.value, MigrateError)


class GoneSpark:
    """A Spark whose JVM is gone."""

    @property
    def _jvm(self):
        raise Py4JNetworkError("gone")


@pytest.mark.parametrize("is_gone", [False, True])
def test_what_is_not_kept_leaves_nothing_even_where_the_jvm_is_gone(spark, tmp_path, is_gone):
    folder = TableFolder(spark, str(tmp_path / "out"))
    folder.write(spark.range(1))
    (TableFolder(GoneSpark(), str(tmp_path / "out")) if is_gone else folder).discard()
    assert not list(tmp_path.iterdir())
    with pytest.raises(Py4JNetworkError):
        TableFolder(GoneSpark(), "s3a://bucket/out").discard()


def test_a_place_that_cannot_be_written_is_one_sentence(spark, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MigrateError, match="cannot be written"):
        TableFolder(spark, str(tmp_path / "file" / "out")).write(spark.range(1))


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

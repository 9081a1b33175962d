"""Spark's Kafka connector: the version that fits, the user's own, and a repository out of reach."""

import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark.jars import connector_coordinate, connector_jars, spark_jars_folder
from tests.lab.ports import free_ports


def test_the_connector_has_the_version_of_the_installed_pyspark():
    import pyspark

    assert connector_coordinate() == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert any(jar.name.startswith("kafka-clients-") for jar in connector_jars())


def test_who_has_no_pyspark_is_given_the_versions_that_the_product_requires(monkeypatch):
    settings = ConfigParser()
    settings.read(Path(__file__).parents[2] / "setup.cfg")
    required = next(line for line in settings["options"]["install_requires"].splitlines() if line.startswith("pyspark"))
    monkeypatch.setitem(sys.modules, "pyspark.find_spark_home", None)
    with pytest.raises(EnvironmentLacks, match="pyspark is not installed") as lacking:
        spark_jars_folder()
    assert f"pip install '{required}'" in lacking.value.todo


def test_a_connector_of_the_users_own_is_left_to_spark():
    assert connector_jars({"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"}) == []
    assert connector_jars({"spark.jars": "/opt/spark-sql-kafka-0-10_2.13-4.0.0.jar,/opt/kafka-clients.jar"}) == []


def test_a_repository_out_of_reach_is_named_with_what_to_set(monkeypatch, tmp_path):
    repository = f"http://127.0.0.1:{free_ports(1)[0]}/"
    monkeypatch.setenv("MM2_MIGRATE_CACHE", str(tmp_path))
    monkeypatch.setenv("MM2_MIGRATE_MAVEN_REPOSITORY", repository)
    with pytest.raises(EnvironmentLacks, match=rf"from {repository}.*MM2_MIGRATE_MAVEN_REPOSITORY"):
        connector_jars()
    assert not list((tmp_path / "spark-kafka").glob("org*"))

"""What Spark and its Java are started with: flags, the connector, a Java that fits, and clients' properties."""

import os
import sys
from pathlib import Path

import pytest

from migrate.errors import EnvironmentLacks, UsageError
from migrate.mm2.flow import CLIENT_ID, Cluster
from migrate.mm2.jaas import LoginModule, parse_jaas
from migrate.model import Side
from migrate.spark import session_settings
from migrate.spark.java import java_version, refuse_java_too_new
from migrate.spark.java_settings import java_settings
from migrate.spark.session_settings import CLASS_PATH, JAVA_OPTIONS, PYTHON, is_plain, master_of, settings_of
from tests.unit.clientscene import BROKERS, PLAIN

JARS = [Path("/cache/a.jar"), Path("/cache/b.jar")]


@pytest.fixture(autouse=True)
def no_java(monkeypatch):
    monkeypatch.setattr(session_settings, "java_version", lambda: "17")
    monkeypatch.setattr(session_settings, "connector_jars", lambda conf: JARS)
    monkeypatch.setattr(session_settings, "msk_jars", lambda conf: [])
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def test_a_jvm_that_has_little_to_read_starts_quickly_and_another_runs_fast():
    assert settings_of("local[*]", {}, small=True)[JAVA_OPTIONS] == session_settings.SMALL_JAVA
    assert settings_of("local[*]", {})[JAVA_OPTIONS] == session_settings.LARGE_JAVA
    assert settings_of("local[*]", {JAVA_OPTIONS: "-Xss2m"}, small=True)[JAVA_OPTIONS] == "-Xss2m"


def test_the_connector_is_on_the_class_path_of_this_machine_and_goes_to_a_clusters_executors(monkeypatch):
    here = settings_of("local[2]", {})
    assert here[CLASS_PATH] == "/cache/a.jar:/cache/b.jar" and "spark.jars" not in here
    there = settings_of("spark://host:7077", {"spark.jars": "/mine.jar"})
    assert there["spark.jars"] == "/mine.jar,/cache/a.jar,/cache/b.jar"
    assert CLASS_PATH not in there and JAVA_OPTIONS not in there
    # Amazon's jar wins over no class of Spark's own.
    monkeypatch.setattr(session_settings, "msk_jars", lambda conf: [Path("/cache/msk.jar")])
    here = settings_of("local[2]", {})
    assert (here[CLASS_PATH], here["spark.jars"]) == ("/cache/a.jar:/cache/b.jar", "/cache/msk.jar")
    there = settings_of("spark://host:7077", {"spark.jars": "/mine.jar"})
    assert there["spark.jars"] == "/mine.jar,/cache/a.jar,/cache/b.jar,/cache/msk.jar"


def test_a_spark_that_somebody_has_set_up_keeps_its_classes_as_they_say(monkeypatch, tmp_path):
    assert is_plain({"spark.driver.memory": "4g"})
    mine = settings_of("local[2]", {CLASS_PATH: "/mine/*"})
    assert mine[CLASS_PATH] == "/mine/*" and mine["spark.jars"] == "/cache/a.jar,/cache/b.jar"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert is_plain({})
    (tmp_path / "spark-defaults.conf").touch()
    assert not is_plain({}) and CLASS_PATH not in settings_of("local[2]", {})
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-class-path x.jar pyspark-shell")
    assert not is_plain({}) and CLASS_PATH not in settings_of("local[2]", {})


@pytest.mark.parametrize(
    ("option", "variable", "python"),
    [("/opt/p", "/usr/p", "/opt/p"), ("", "/usr/p", "/usr/p"), ("", "", sys.executable)],
)
def test_tasks_run_in_the_python_that_spark_is_told_of(monkeypatch, option, variable, python):
    monkeypatch.setenv("PYSPARK_PYTHON", variable)
    settings = settings_of("spark://host:7077", {PYTHON: option} if option else {})
    with session_settings.pyspark_python(settings):
        assert os.environ["PYSPARK_PYTHON"] == python
    assert os.environ["PYSPARK_PYTHON"] == variable


def test_what_spark_defaults_conf_says_is_left_to_it_but_for_what_every_answer_depends_on(monkeypatch, tmp_path):
    """spark-submit prefers what it is told by `--conf`, which is how all settings of ours reach it."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(
        f"{PYTHON} /opt/p\nspark.jars /mine/hadoop-aws.jar\nspark.driver.memory 16g\n{JAVA_OPTIONS} -Xss2m\n"
        "spark.ui.enabled true\nspark.sql.session.timeZone Europe/Berlin\nspark.hadoop.fs.s3a.secret.key hidden\n"
    )
    settings = settings_of("local[2]", {}, small=True)
    assert not {"spark.driver.memory", JAVA_OPTIONS, "spark.ui.enabled"} & settings.keys()
    assert "hidden" not in settings.values() and settings["spark.sql.session.timeZone"] == "UTC"
    assert settings[PYTHON] == "/opt/p" and "spark.executorEnv.PYTHONPATH" not in settings
    assert settings["spark.jars"] == "/mine/hadoop-aws.jar,/cache/a.jar,/cache/b.jar"
    assert settings_of("local[2]", {"spark.driver.memory": "4g"})["spark.driver.memory"] == "4g"


def test_the_address_of_a_driver_here_and_the_encryption_of_its_disk_are_not_taken_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.host db7\nspark.io.encryption.enabled false\n")
    here = settings_of("local[2]", {})
    assert here["spark.driver.host"] == here["spark.driver.bindAddress"] == "127.0.0.1"
    assert here["spark.io.encryption.enabled"] == "true"
    there = settings_of("spark://host:7077", {})
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.io.encryption.enabled"} & there.keys()


def test_a_master_that_is_configured_is_not_contradicted(monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master spark://there:7077 pyspark-shell")
    assert master_of(None, {}) == "spark://there:7077"
    with pytest.raises(UsageError, match="--master local contradicts spark.master=spark://there:7077"):
        master_of("local", {})
    assert master_of(None, {"spark.master": "local[3]"}) == "local[3]"


def test_java_missing_is_one_line_that_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"Java was not found.*Install Java 17") as raised:
        java_version()
    assert "\n" not in str(raised.value)


def _home(of, version):
    executable = of / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    (of / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return str(of)


def test_an_old_java_is_refused_with_its_version(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", _home(tmp_path, "1.8.0_402"))
    with pytest.raises(EnvironmentLacks, match=r"is Java 8\.0_402; Spark 4 needs 17"):
        java_version()


def test_a_java_that_spark_4_0_cannot_start_on_is_refused_before_it_is_started(monkeypatch, tmp_path):
    """Spark 4.0.0 on Java 25: `UnsupportedOperationException: getSubject is not supported`."""
    monkeypatch.setenv("JAVA_HOME", _home(tmp_path, "25.0.1"))
    monkeypatch.setattr("pyspark.__version__", "4.0.0")
    with pytest.raises(
        EnvironmentLacks, match=r"is Java 25\.0\.1; Spark 4\.0\.0 does not start on Java 23.*Install Java 17"
    ):
        refuse_java_too_new()


@pytest.mark.parametrize(("spark", "version"), [("4.0.0", "21.0.5"), ("4.0.0", "22.0.2"), ("4.2.0", "25.0.1")])
def test_a_java_that_may_do_is_tried(monkeypatch, tmp_path, spark, version):
    monkeypatch.setenv("JAVA_HOME", _home(tmp_path, version))
    monkeypatch.setattr("pyspark.__version__", spark)
    refuse_java_too_new()
    assert java_version() == version


def test_spark_and_java_get_the_properties_as_they_are_but_for_what_they_reject():
    properties = PLAIN | {
        "auto.offset.reset": "latest", "key.deserializer": "a.B", "value.deserializer": "a.B",
        "enable.auto.commit": "true", "interceptor.classes": "a.B", "metric.reporters": "a.B", "group.id": "g",
        "ssl.truststore.location": "/x.jks", "config.providers": "file", "config.providers.file.class": "a.B",
        "allow.auto.create.topics": "true",
    }  # fmt: skip
    own = {"client.id": CLIENT_ID, "allow.auto.create.topics": "false"}
    kept = PLAIN | {"ssl.truststore.location": "/x.jks"} | own
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
    # What is left over of a login that is not used is no error.
    left = BROKERS | {"security.protocol": "SSL", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.scope": "all"}
    assert "sasl.jaas.config" not in java_settings(Cluster(Side.SOURCE, "A", left)).admin

"""What Spark is started with: flags by what is to be read, the connector where an archive can take its classes."""

import os
import sys
from pathlib import Path

import pytest

from migrate.errors import UsageError
from migrate.spark import session_settings
from migrate.spark.session_settings import (
    CLASS_PATH,
    JAVA_OPTIONS,
    LARGE_JAVA,
    PYTHON,
    SMALL_JAVA,
    is_plain,
    master_of,
    pyspark_python,
    settings_of,
)

JARS = [Path("/cache/a.jar"), Path("/cache/b.jar")]


@pytest.fixture(autouse=True)
def no_java(monkeypatch):
    monkeypatch.setattr(session_settings, "java_version", lambda: "17")
    monkeypatch.setattr(session_settings, "connector_jars", lambda conf: JARS)
    monkeypatch.setattr(session_settings, "msk_jars", lambda conf: [])
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def test_a_jvm_that_has_little_to_read_starts_quickly_and_another_runs_fast():
    assert settings_of("local[*]", {}, small=True)[JAVA_OPTIONS] == SMALL_JAVA
    assert settings_of("local[*]", {})[JAVA_OPTIONS] == LARGE_JAVA
    assert settings_of("local[*]", {JAVA_OPTIONS: "-Xss2m"}, small=True)[JAVA_OPTIONS] == "-Xss2m"


def test_the_connector_is_on_the_class_path_of_this_machine_and_goes_to_a_clusters_executors():
    here = settings_of("local[2]", {})
    assert here[CLASS_PATH] == "/cache/a.jar:/cache/b.jar" and "spark.jars" not in here
    there = settings_of("spark://host:7077", {"spark.jars": "/mine.jar"})
    assert there["spark.jars"] == "/mine.jar,/cache/a.jar,/cache/b.jar" and CLASS_PATH not in there
    assert JAVA_OPTIONS not in there


def test_amazons_jar_wins_over_no_class_of_sparks_own(monkeypatch):
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
def test_tasks_run_in_the_python_that_spark_is_told_of_which_pyspark_takes_from_the_environment(
    monkeypatch, option, variable, python
):
    monkeypatch.setenv("PYSPARK_PYTHON", variable)
    settings = settings_of("spark://host:7077", {PYTHON: option} if option else {})
    with pyspark_python(settings):
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

"""The Java that Spark runs on: without one that fits, one line says how to get it."""

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark.java import java_version, refuse_java_too_new


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

"""The Java that Spark runs on: without one that fits, one line says how to get it."""

import pytest

from migrate.errors import EnvironmentLacks
from migrate.spark.java import java_executable, java_version


def test_java_missing_is_one_line_that_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"Java was not found.*Install Java 17") as raised:
        java_version()
    assert "\n" not in str(raised.value)


def test_a_wrong_java_home_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=str(tmp_path)):
        java_executable()


def test_an_old_java_is_refused_with_its_version(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_402"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"is Java 8\.0_402; Spark 4 needs 17"):
        java_version()

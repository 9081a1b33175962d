"""`--version`: what a report of a fault needs."""

import platform
import sys

import confluent_kafka
from click.testing import CliRunner

from migrate import __version__
from migrate.cli import version
from migrate.cli.main import cli
from migrate.errors import EnvironmentLacks
from migrate.spark.java import java_version


def told():
    done = CliRunner().invoke(cli, ["--version"])
    assert done.exit_code == 0
    return done.stdout.splitlines()


def test_it_tells_the_tool_and_all_that_it_works_with():
    tool, python, spark, librdkafka, java = told()
    assert tool == f"mm2-migrate {__version__}"
    assert python.startswith(f"Python {platform.python_version()}") and spark.startswith("Spark 4.")
    assert librdkafka.startswith(f"librdkafka {confluent_kafka.libversion()[0]}")
    assert java.startswith(f"Java {java_version()}")


def test_what_is_missing_is_told_and_no_failure(monkeypatch):
    def lacks():
        raise EnvironmentLacks("Java was not found.")

    monkeypatch.setattr(version, "java_version", lacks)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert told()[3].startswith("librdkafka: ") and told()[4] == "Java: Java was not found."

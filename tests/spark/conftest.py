"""One JVM for the files of this folder that a worker runs one after another, and a session of its own for each file."""

import pytest

from migrate.spark.session import spark_session
from tests.spark.processes import stop_running_spark


@pytest.fixture(scope="package")
def _jvm_until_the_last_file():
    yield
    stop_running_spark()


@pytest.fixture(scope="module")
def spark(_jvm_until_the_last_file):
    """A session with the tool's own settings: starts Spark where none runs, with the connector."""
    return spark_session("local[2]")

"""One Spark session for the whole run, with the connector, so that tests of all kinds share its JVM."""

import pytest

from migrate.spark.session import spark_session, stop_session


@pytest.fixture(scope="session")
def spark():
    session = spark_session("local[2]")
    yield session
    stop_session(session)

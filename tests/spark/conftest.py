"""One Spark session for each file, with the connector: other tests of the same worker may end the JVM in between."""

import pytest

from migrate.spark.session import spark_session, stop_session


@pytest.fixture(scope="module")
def spark():
    session = spark_session("local[2]")
    yield session
    stop_session(session)

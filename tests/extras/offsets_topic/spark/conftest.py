"""Spark as the tests of `tests/spark` have it."""

import pytest

from migrate.spark.consumer_offsets import offsets_session
from tests.spark.conftest import _jvm_until_the_last_file, spark

__all__ = ["_jvm_until_the_last_file", "quick", "spark"]


@pytest.fixture(scope="module")
def quick(spark):
    """A session that compiles no query, as for any small topic: that takes longer than all else in these tests."""
    return offsets_session(lambda: spark, is_small=True)

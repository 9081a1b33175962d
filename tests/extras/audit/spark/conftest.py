"""Spark as the tests of `tests/spark` have it."""

from tests.spark.conftest import _jvm_until_the_last_file, spark

__all__ = ["_jvm_until_the_last_file", "spark"]

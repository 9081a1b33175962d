"""For tests that start Spark or a JVM: the environment of an own process, and the end of this process's Spark."""

import os
from pathlib import Path

from migrate.spark.session import stop_session


def with_our_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def stop_running_spark() -> None:
    """End the Spark of this process and its JVM, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        stop_session(SparkSession.builder.getOrCreate())

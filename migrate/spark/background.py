"""A Spark session that starts while the clusters are asked their first questions: it takes seconds."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from migrate.spark.dead_jvm import needing_machine
from migrate.spark.session import break_off_start, spark_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Session = Callable[[], "SparkSession"]
"""Waits for a session that may still be starting; raises what its start raised."""


@contextmanager
def background_spark(master: str | None, conf: Mapping[str, str]) -> Iterator[Session]:
    """Start Spark in the background, and yield what gives its session.

    In the end the session is stopped, with its JVM; a start that nobody waits for any more is broken off. Raises
    `ClusterError` if the JVM ends before.
    """
    pool = ThreadPoolExecutor(1, "spark-start")
    start = pool.submit(spark_session, master, conf)
    try:
        with needing_machine():
            yield start.result
    finally:
        if not start.done():
            break_off_start(lambda seconds: bool(wait([start], seconds).done))
        pool.shutdown(wait=True)
        if start.exception() is None:
            stop_session(start.result())

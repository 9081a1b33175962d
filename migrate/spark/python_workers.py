"""Spark's Python workers, started before there is work for them: each takes a second or two to import what it needs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from migrate.spark.session_settings import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_workers(spark: "SparkSession", prepare: Callable[[], None]) -> None:
    """Call `prepare` in Python workers of this machine, as many as there are cores if all start at once.

    Executors elsewhere start theirs with the first task. Whatever goes wrong, goes wrong again where the work is,
    and is reported there.
    """
    context = spark.sparkContext
    if not is_local(context.master):
        return

    def prepared(numbers: Iterable[int]) -> Iterator[int]:
        prepare()
        yield from numbers

    with suppress(Exception):
        context.parallelize(range(context.defaultParallelism)).mapPartitions(prepared).collect()

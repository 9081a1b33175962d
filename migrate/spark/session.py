"""A Spark session for the tool: the one that is there, else a local one that starts fast and keeps quiet."""

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.errors import UsageError
from migrate.progress import in_background
from migrate.spark.archive import ClassArchive
from migrate.spark.java import refuse_java_too_new
from migrate.spark.machine import (
    ADMIN_CLASS,
    has_class,
    leave_nothing_at,
    not_started,
    open_gateway,
    require_class,
    stop_java_machine,
)
from migrate.spark.session_settings import (
    APP_NAME,
    SQL_SETTINGS,
    is_local,
    is_plain,
    master_of,
    pyspark_python,
    settings_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What spark-submit tells a Python program that it starts beside a JVM.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# Spark 4.0 makes this folder where it is started, and leaves it there, empty (SPARK-52396).
ARTIFACTS = "artifacts"
CONNECTOR_CLASS = "org/apache/spark/sql/kafka010/KafkaSourceProvider.class"
_V1_SOURCES = "spark.sql.sources.useV1SourceList"


@dataclass
class _Started:
    """The Spark that we started last, None before: any other that runs is the user's, and is never stopped here."""

    context: Any = None


_started = _Started()


def spark_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    small: bool = False,
    records: bool = False,
    machine_up: Callable[[Any], None] = lambda jvm: None,
) -> "SparkSession":
    """Return a session of the running Spark, or start Spark.

    `conf` holds Spark settings by their full names and wins over the tool's own. `master` counts only where
    neither a session nor a `spark.master` setting exists; without any it is local[*]. The others count for a Spark that
    starts here, in a JVM of its own: `small`: little is to be read, so that a quick start counts more than fast code;
    `records`: its JVM may keep its classes in the end; `machine_up` is called in mid-start, with py4j's view of it,
    once Kafka's classes can be used there.
    Raises `EnvironmentLacks` if Java or the connector's jars are missing or Spark does not start, and
    `UsageError` if `master` contradicts a master that is already configured.
    """
    conf = dict(conf or {})
    running = _running_session()
    if running is None:
        own = _launch(master, conf, small, records, machine_up)
        _started.context = own.sparkContext
    else:
        own = running.newSession()
    with_newer_sources(own)
    for key, value in SQL_SETTINGS.items():
        own.conf.set(key, conf.get(key, value))
    require_class(own._jvm, CONNECTOR_CLASS)
    return own


def with_newer_sources(spark: "SparkSession") -> "SparkSession":
    """Let a session of ours read Kafka through Spark's newer reader: the older one copies every record twice more."""
    v1_sources = spark.conf.get(_V1_SOURCES) or ""
    spark.conf.set(_V1_SOURCES, ",".join(s for s in v1_sources.split(",") if s.strip().lower() != "kafka"))
    return spark


def stop_session(spark: "SparkSession", keep_classes: bool = False) -> None:
    """Stop Spark and end its JVM, as `stop_java_machine` does. Leaves a Spark, and a JVM, that we did not start."""
    try:
        stop_spark(spark)
    finally:
        stop_java_machine(keep_classes)


def stop_spark(spark: "SparkSession") -> None:
    """Stop Spark, if it runs and we started it; its JVM goes on. A notebook's own, or a platform's, goes on too."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    if SparkContext._gateway is None or (context is not None and context is not _started.context):
        return
    server = getattr(context, "_accumulatorServer", None)
    if context is not None and server is not None:
        # It looks once a second whether it should stop, and pyspark would wait for it; that its JVM is gone by then is
        # no news, and it would print a stack trace over it.
        server.handle_error = lambda *_: None
        context._accumulatorServer = None
        in_background(server.shutdown, "spark-accumulators")
    try:
        with _without_warnings():
            # Where the JVM is gone, pyspark only warns of it, or raises: both are no news any more.
            spark.stop()
    except Exception:
        # What Spark keeps in this process of a JVM that is gone would be taken for a session by the next.
        SparkContext._active_spark_context = None
        type(spark)._instantiatedSession = None


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Ignore warnings inside; in the main thread alone, for their filters belong to the whole process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _running_session() -> "SparkSession | None":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None or SparkContext._active_spark_context is None:
        return active
    return SparkSession.builder.getOrCreate()


def _launch(
    master: str | None, conf: Mapping[str, str], small: bool, records: bool, machine_up: Callable[[Any], None]
) -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SUBMITTED in os.environ:
        return _submitted(master, conf)
    chosen = master_of(master, conf)
    refuse_java_too_new()
    settings = settings_of(chosen, conf, small)
    leave_nothing_at(Path.cwd() / ARTIFACTS)
    plain = is_local(chosen) and is_plain(conf)
    open_gateway(settings, ClassArchive(settings) if plain else None, records)
    if is_local(chosen) and has_class(SparkContext._jvm, ADMIN_CLASS):
        machine_up(SparkContext._jvm)
    try:
        with pyspark_python(settings):
            return SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except Exception as error:
        raise not_started(error) from error


def _submitted(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    """Return a session of the Spark that spark-submit has set up, with its master and jars: nothing is ours there."""
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.config(map={"spark.app.name": APP_NAME, **conf}).getOrCreate()
    except Exception as error:
        raise not_started(error) from error
    if master and spark.sparkContext.master != master:
        raise UsageError(
            f"--master {master} contradicts the master of spark-submit, {spark.sparkContext.master}.",
            "Give it to spark-submit alone.",
        )
    return spark

"""A Spark session for the tool: the one that is there, else a local one that starts fast and keeps quiet.

The JVM writes its log, and whatever else it says, to a file in the cache folder: nothing of it reaches the
user's terminal, and errors name the file.
"""

import contextlib
import logging
import os
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.errors import EnvironmentLacks, UsageError
from migrate.spark.jars import HOW_TO_GIVE, cache_folder, connector_jars, spark_jars_folder
from migrate.spark.java import java_version
from migrate.spark.java_settings import PREFER_IPV6

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_DEADLINE_SECONDS = 20
# A JVM that dies closes its sockets before its parent can see that it has ended.
ENDING_SECONDS = 5.0
_LOOK_SECONDS = 0.1
CONNECTOR_CLASS = "org/apache/spark/sql/kafka010/KafkaSourceProvider.class"
ADMIN_CLASS = "org/apache/kafka/clients/admin/Admin.class"
NO_SCRATCH = ("No space left on device", "Failed to create a temp directory")
HOW_TO_GIVE_SCRATCH = (
    "Make room in Spark's scratch folder, /tmp unless it was told otherwise, or name another with SPARK_LOCAL_DIRS or "
    "--spark-conf spark.local.dir=FOLDER."
)

# What every answer of this tool depends on: set on our own session only, never on one that we were given.
_SQL_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
# Spark reads Kafka through its newer reader: the older one copies every record twice more on its way.
_V1_SOURCES = "spark.sql.sources.useV1SourceList"
_LOCAL_SETTINGS = {
    # Both, or the driver cannot be reached under the host's other address.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "2g",
    # Shorter pauses are worth nothing to a batch, throughput is.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    # Where memory is short, Spark puts what it broadcasts on disk, tasks with the clusters' settings too.
    "spark.io.encryption.enabled": "true",
}
# Whatever Spark the user configures: no file of a crash, in the folder where they work, holds the JVM's memory.
_CRASH_OPTIONS = "-XX:-CreateCoredumpOnCrash -XX:ErrorFile=/dev/null"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    # Spark keeps each reading's consumers, and what they fetched ahead, for five minutes in case the same reading
    # needs them again: it never does, and after a few readings the heap is full of them.
    "spark.kafka.consumer.cache.capacity": "4",
    "spark.kafka.consumer.cache.timeout": "5s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}


def spark_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> "SparkSession":
    """Return a session of the running Spark, or start Spark.

    `conf` holds Spark settings by their full names and wins over the tool's own. `master` counts only where
    neither a session nor a `spark.master` setting exists; without any it is local[*].
    Raises `EnvironmentLacks` if Java or the connector's jars are missing or Spark does not start, and
    `UsageError` if `master` contradicts a master that is already configured.
    """
    conf = dict(conf or {})
    running = _running_session()
    own = _launch(_settings(_master(master, conf), conf)) if running is None else running.newSession()
    v1_sources = own.conf.get(_V1_SOURCES) or ""
    own.conf.set(_V1_SOURCES, ",".join(s for s in v1_sources.split(",") if s.strip().lower() != "kafka"))
    for key, value in _SQL_SETTINGS.items():
        own.conf.set(key, conf.get(key, value))
    _require_class(own._jvm, CONNECTOR_CLASS)
    return own


def java_machine() -> Any:
    """Return py4j's view of a JVM that has Kafka's classes: the running Spark's, else one without a Spark session.

    Raises `EnvironmentLacks` if Java or the jars are missing, or the JVM does not start.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        _open_gateway(_settings("local[1]", {}))
    jvm: Any = SparkContext._jvm
    _require_class(jvm, ADMIN_CLASS)
    return jvm


def stop_session(spark: "SparkSession") -> None:
    """Stop Spark and end its JVM, and wait until it is gone. Leaves a JVM that we did not launch."""
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        return
    try:
        with warnings.catch_warnings():
            # Where the JVM is gone, pyspark only warns of it, or raises: both are no news any more.
            warnings.simplefilter("ignore")
            spark.stop()
    except Exception:
        # What Spark keeps in this process of a JVM that is gone would be taken for a session by the next.
        SparkContext._active_spark_context = None
        type(spark)._instantiatedSession = None
    finally:
        stop_java_machine()


def stop_java_machine() -> None:
    """End the JVM that we launched, if there is one, and wait until it is gone."""
    from pyspark import SparkContext

    gateway, process = SparkContext._gateway, _process()
    if process is None:
        return
    SparkContext._gateway = None
    SparkContext._jvm = None
    with contextlib.suppress(Exception):
        gateway.shutdown()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(STOP_DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.returncode == 0:
        log_file().unlink(missing_ok=True)


def break_off_start(has_ended: Callable[[float], bool]) -> None:
    """End the JVM of a start that is under way in another thread, which then fails; return when it has ended.

    `has_ended` waits so many seconds at most, and returns True once the start is over. Who has pressed Ctrl-C, or whose
    password is wrong, does not wait for a Spark that nobody will use. SIGTERM lets Spark delete its temporary folders.
    """
    from pyspark import SparkContext

    ended: subprocess.Popen[bytes] | None = None
    while not has_ended(_LOOK_SECONDS):
        process = _process()
        if process is not None and process is not ended:
            ended = process
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_DEADLINE_SECONDS)
            process.kill()
    if ended is not None:
        SparkContext._active_spark_context = None
        stop_java_machine()
        log_file().unlink(missing_ok=True)


def machine_ending() -> str | None:
    """Return how the JVM that we launched has ended, e.g. "by SIGKILL"; None while it runs, or if we launched none."""
    process = _process()
    if process is None:
        return None
    try:
        status = process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def _process() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that we launched, None if we launched none."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def log_file() -> Path:
    """Return the file that this process's JVM writes its log to."""
    return cache_folder() / "logs" / f"spark-{os.getpid()}.log"


def _running_session() -> "SparkSession | None":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None or SparkContext._active_spark_context is None:
        return active
    return SparkSession.builder.getOrCreate()


def _master(by_option: str | None, conf: Mapping[str, str]) -> str:
    configured = conf.get("spark.master") or _configured_master()
    if configured and by_option and configured != by_option:
        raise UsageError(
            f"--master {by_option} contradicts spark.master={configured}, which is configured already.",
            "Leave out --master, or take spark.master out of Spark's configuration.",
        )
    return configured or by_option or "local[*]"


def _configured_master() -> str | None:
    """What spark-submit would take as its master: PYSPARK_SUBMIT_ARGS, then spark-defaults.conf."""
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if before == "--master":
            return argument
        for start in ("--master=", "spark.master=", "--conf=spark.master="):
            if argument.startswith(start):
                return argument.removeprefix(start)
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_jars_folder().parent / "conf")
    try:
        import javaproperties

        with Path(folder, "spark-defaults.conf").open(encoding="utf-8") as handle:
            master: str | None = javaproperties.load(handle).get("spark.master")
            return master
    except OSError:
        return None


def _settings(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    java_version()
    settings = {**_SETTINGS, **_SQL_SETTINGS, "spark.master": master, "spark.app.name": "mm2-migrate"}
    settings["spark.jars.ivy"] = str(cache_folder() / "spark-ivy")
    settings["spark.sql.warehouse.dir"] = str(cache_folder() / "spark-warehouse")
    if master.startswith("local"):
        settings |= _LOCAL_SETTINGS
    settings |= conf
    if jars := [str(path) for path in connector_jars(conf)]:
        settings["spark.jars"] = ",".join([*filter(None, [conf.get("spark.jars")]), *jars])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if PREFER_IPV6 in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        # Such a JVM hands rows over at ::1, and pyspark would look for it at 127.0.0.1.
        os.environ.setdefault("SPARK_PREFER_IPV6", "true")
    return settings


def _launch(settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    _open_gateway(settings)
    try:
        return SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except Exception as error:
        raise _not_started(error) from error


def _open_gateway(settings: Mapping[str, str]) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    _quieten_py4j()
    try:
        with _open_log() as log, _crash_options():
            spark_conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            # A session of its own: Ctrl-C, Ctrl-\ and a terminal that closes are for this process, which still needs
            # the JVM's answers. It ends when its standard input does, however this process ends.
            own = {"stdout": log, "stderr": log, "start_new_session": True}
            SparkContext._ensure_initialized(gateway=launch_gateway(spark_conf, own))
    except EnvironmentLacks:
        raise
    except Exception as error:
        raise _not_started(error) from error


@contextlib.contextmanager
def _crash_options() -> Iterator[None]:
    """Give the JVM options that the user's own `spark.driver.extraJavaOptions` do not replace."""
    name = "SPARK_SUBMIT_OPTS"
    before = os.environ.get(name)
    os.environ[name] = f"{_CRASH_OPTIONS} {before or ''}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _quieten_py4j() -> None:
    """Keep py4j's stack traces off the terminal: what it logs, it raises as well, and the command reports that."""
    logging.getLogger("py4j").propagate = False
    root = logging.getLogger()
    if _not_of_py4j not in root.filters:
        # Some it logs by the root logger (seen with 0.10.9.9: "KeyboardInterrupt while sending command.").
        root.addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def _not_started(error: Exception) -> EnvironmentLacks:
    lines = _log_lines()
    words = _last_words(error, lines)
    todo = [f"Spark's own log is {log_file()}."]
    if any(word in words for word in NO_SCRATCH):
        todo.insert(0, HOW_TO_GIVE_SCRATCH)
    if any("UNRESOLVED DEPENDENCIES" in line or "unresolved dependency" in line for line in lines):
        todo.append(HOW_TO_GIVE)
    return EnvironmentLacks(f"Spark did not start: {words}.", " ".join(todo))


def _open_log() -> Any:
    path = log_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC, 0o600), "wb")
    except OSError as error:
        raise EnvironmentLacks(
            f"The log file {path} cannot be written: {error.strerror}.",
            "Make room, or name another cache folder with MM2_MIGRATE_CACHE.",
        ) from None


def _last_words(error: Exception, lines: Sequence[str]) -> str:
    """The most telling line: the JVM's own error if its log has one, else Python's."""
    for line in lines:
        # What Spark complains of afterwards are only its consequences.
        if any(word in line for word in NO_SCRATCH):
            return line.strip().rstrip(".!")
    for line in reversed(lines):
        for word in ("Exception in thread", "Error:", "Error occurred", "Exception:"):
            if word in line and not line.lstrip().startswith("at "):
                return line.strip().rstrip(".")
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip(".")


def _log_lines() -> list[str]:
    try:
        return log_file().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _require_class(jvm: Any, resource: str) -> None:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getResource(resource) is None:
        raise EnvironmentLacks(
            "Spark's Kafka connector is not loaded in the Spark session that runs here.",
            "Start Spark with it, for example with spark-submit --packages "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION-OF-SPARK.",
        )

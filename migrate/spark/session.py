"""A Spark session for the tool: the one that is there, else a local one that starts fast and keeps quiet.

The JVM writes its log, and whatever else it says, to a file in the cache folder: nothing of it reaches the
user's terminal, and errors name the file.
"""

import contextlib
import logging
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.errors import EnvironmentLacks, UsageError
from migrate.spark.archive import RECORDING, ClassArchive
from migrate.spark.jars import HOW_TO_GIVE, cache_folder
from migrate.spark.session_settings import APP_NAME, SQL_SETTINGS, is_local, is_plain, master_of, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_DEADLINE_SECONDS = 20
# What spark-submit tells a Python program that it starts beside a JVM.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
# Spark 4.0 makes this folder where it is started, and leaves it there, empty (SPARK-52396).
ARTIFACTS = "artifacts"
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
_V1_SOURCES = "spark.sql.sources.useV1SourceList"
# Whatever Spark the user configures: no file of a crash, in the folder where they work, holds the JVM's memory.
_CRASH_OPTIONS = "-XX:-CreateCoredumpOnCrash -XX:ErrorFile=/dev/null"


@dataclass
class _Started:
    """What is to be remembered of the JVM that was started last.

    `recording` is the archive that it records classes for, `leaves_behind` a folder that was not there before.
    """

    recording: ClassArchive | None = None
    leaves_behind: Path | None = None


_started = _Started()


def spark_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, small: bool = False, recording: bool = False
) -> "SparkSession":
    """Return a session of the running Spark, or start Spark.

    `conf` holds Spark settings by their full names and wins over the tool's own. `master` counts only where
    neither a session nor a `spark.master` setting exists; without any it is local[*]. `small` says that little is to be
    read, so that a quick start counts more than fast code; `recording`, that `keep_classes` may be called in the end.
    Raises `EnvironmentLacks` if Java or the connector's jars are missing or Spark does not start, and
    `UsageError` if `master` contradicts a master that is already configured.
    """
    conf = dict(conf or {})
    running = _running_session()
    own = _launch(master, conf, small, recording) if running is None else running.newSession()
    with_newer_sources(own)
    for key, value in SQL_SETTINGS.items():
        own.conf.set(key, conf.get(key, value))
    _require_class(own._jvm, CONNECTOR_CLASS)
    return own


def with_newer_sources(spark: "SparkSession") -> "SparkSession":
    """Let a session of ours read Kafka through Spark's newer reader: the older one copies every record twice more."""
    v1_sources = spark.conf.get(_V1_SOURCES) or ""
    spark.conf.set(_V1_SOURCES, ",".join(s for s in v1_sources.split(",") if s.strip().lower() != "kafka"))
    return spark


def java_machine() -> Any:
    """Return py4j's view of a JVM that has Kafka's classes: the running Spark's, else one without a Spark session.

    Raises `EnvironmentLacks` if Java or the jars are missing, or the JVM does not start.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        settings = settings_of("local[1]", {}, small=True)
        _open_gateway(settings, ClassArchive(settings) if is_plain({}) else None)
    jvm: Any = SparkContext._jvm
    _require_class(jvm, ADMIN_CLASS)
    return jvm


def keep_classes(secrets: Collection[str], announce: Callable[[], None]) -> None:
    """Keep what the JVM has loaded for the next one to start with, where it was started to record that.

    `announce` is called before: it takes some seconds. No file is kept that holds one of the `secrets`.
    """
    from pyspark import SparkContext

    archive, _started.recording = _started.recording, None
    if archive is None:
        return
    announce()
    try:
        archive.keep(SparkContext._jvm, SparkContext._gateway.new_array, secrets)
    except Exception:
        # A disk without room, a JVM that has ended over it: the next start is slower without, and that is all.
        archive.refuse()


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
    leaves_behind, _started.leaves_behind = _started.leaves_behind, None
    if leaves_behind is not None:
        with contextlib.suppress(OSError):
            leaves_behind.rmdir()
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


def _launch(master: str | None, conf: Mapping[str, str], small: bool, recording: bool) -> "SparkSession":
    from pyspark.sql import SparkSession

    if SUBMITTED in os.environ:
        return _submitted(master, conf)
    chosen = master_of(master, conf)
    settings = settings_of(chosen, conf, small)
    artifacts = Path.cwd() / ARTIFACTS
    _started.leaves_behind = None if artifacts.exists() else artifacts
    archive = ClassArchive(settings) if is_local(chosen) and is_plain(conf) else None
    _open_gateway(settings, archive, recording)
    try:
        return SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except Exception as error:
        raise _not_started(error) from error


def _submitted(master: str | None, conf: Mapping[str, str]) -> "SparkSession":
    """Return a session of the Spark that spark-submit has set up, with its master and jars: nothing is ours there."""
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.config(map={"spark.app.name": APP_NAME, **conf}).getOrCreate()
    except Exception as error:
        raise _not_started(error) from error
    if master and spark.sparkContext.master != master:
        raise UsageError(
            f"--master {master} contradicts the master of spark-submit, {spark.sparkContext.master}.",
            "Give it to spark-submit alone.",
        )
    return spark


def _open_gateway(settings: Mapping[str, str], archive: ClassArchive | None, recording: bool = False) -> None:
    """Start a JVM, with the archive of its classes where there is one; without, where it does not start with it."""
    options = archive.options(recording) if archive else ""
    _started.recording = archive if options == RECORDING else None
    try:
        _start_machine(settings, options)
    except EnvironmentLacks:
        if archive is None or not options:
            raise
        _started.recording = None
        _start_machine(settings, "")
        archive.refuse()


def _start_machine(settings: Mapping[str, str], options: str) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    _quieten_py4j()
    try:
        with _open_log() as log, _java_options(options):
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
def _java_options(of_archive: str) -> Iterator[None]:
    """Give the JVM options that the user's own `spark.driver.extraJavaOptions` do not replace."""
    name = "SPARK_SUBMIT_OPTS"
    before = os.environ.get(name)
    os.environ[name] = " ".join(filter(None, [_CRASH_OPTIONS, of_archive, before]))
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

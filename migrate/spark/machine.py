"""The JVM that we start, for Spark or for Kafka's Java client alone: its start, its end, and its log.

The JVM writes its log, and whatever else it says, to a file in the cache folder: nothing of it reaches the
user's terminal, and errors name the file.
"""

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.errors import EnvironmentLacks
from migrate.progress import in_background
from migrate.spark.archive import RECORDING, ClassArchive
from migrate.spark.jars import HOW_TO_GIVE, cache_folder
from migrate.spark.session_settings import environment_variable, is_plain, pyspark_python, settings_of

STOP_DEADLINE_SECONDS = 20
# What a JVM has that would write its classes then, which nobody wants of a command that failed.
UNKEPT_SECONDS = 3
# A JVM that dies closes its sockets before its parent can see that it has ended.
ENDING_SECONDS = 5.0
_LOOK_SECONDS = 0.1
ADMIN_CLASS = "org/apache/kafka/clients/admin/Admin.class"
NO_SCRATCH = ("No space left on device", "Failed to create a temp directory")
HOW_TO_GIVE_SCRATCH = (
    "Make room in Spark's scratch folder, /tmp unless set otherwise, or name another with SPARK_LOCAL_DIRS or "
    "--spark-conf spark.local.dir=FOLDER."
)
# Whatever Spark the user configures: no file of a crash, in the folder where they work, holds the JVM's memory.
_CRASH_OPTIONS = "-XX:-CreateCoredumpOnCrash -XX:ErrorFile=/dev/null"


@dataclass
class _Started:
    """What is to be remembered of the JVM that was started last.

    `process` is its own: one of another process is the user's, and is never ended here. `recording` is the archive that
    it records classes for, `leaves_behind` a folder that was not there before.
    """

    process: "subprocess.Popen[bytes] | None" = None
    recording: ClassArchive | None = None
    leaves_behind: Path | None = None


_started = _Started()


def java_machine() -> Any:
    """Return py4j's view of a JVM that has Kafka's classes: the running Spark's, else one without a Spark session.

    Raises `EnvironmentLacks` if Java or the jars are missing, or the JVM does not start.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is None:
        settings = settings_of("local[1]", {}, small=True)
        open_gateway(settings, ClassArchive(settings) if is_plain({}) else None)
    jvm: Any = SparkContext._jvm
    require_class(jvm, ADMIN_CLASS)
    return jvm


def open_gateway(settings: Mapping[str, str], archive: ClassArchive | None, recording: bool = False) -> None:
    """Start a JVM, with the archive of its classes where there is one; without, where it does not start with it.

    Where this process has one already, Spark starts in that.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        return
    options = archive.options(recording) if archive else ""
    _started.recording = archive if archive and options.startswith(RECORDING) else None
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
        with _open_log() as log, _java_options(options), pyspark_python(settings):
            spark_conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            # A session of its own: Ctrl-C, Ctrl-\ and a terminal that closes are for this process, which still needs
            # the JVM's answers. It ends when its standard input does, however this process ends.
            own = {"stdout": log, "stderr": log, "start_new_session": True}
            SparkContext._ensure_initialized(gateway=launch_gateway(spark_conf, own))
            _started.process = SparkContext._gateway.proc
    except EnvironmentLacks:
        raise
    except Exception as error:
        raise not_started(error) from error


def leave_nothing_at(folder: Path) -> None:
    """Remove this folder when the JVM has ended, if it is not there yet, and is empty then."""
    _started.leaves_behind = None if folder.exists() else folder


def stop_java_machine(keep_classes: bool = False) -> None:
    """End the JVM that we launched, if there is one, and wait until it is gone.

    With `keep_classes`, nobody waits for one that writes its classes at its exit: that takes it some ten seconds.
    """
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
    archive, _started.recording = _started.recording, None
    left, _started.leaves_behind = _started.leaves_behind, None
    if archive is not None and keep_classes:
        in_background(process.wait, "java-end")
        _remove_once_empty(left, process)
        log_file().unlink(missing_ok=True)
        return
    _end(process, archive, left)
    if process.returncode == 0 or archive is not None:
        log_file().unlink(missing_ok=True)


def _end(process: "subprocess.Popen[bytes]", archive: ClassArchive | None, left: Path | None) -> None:
    """Wait until a JVM is gone that was asked to end; without its classes, where it was to write an archive of them."""
    _remove_once_empty(left, process)
    try:
        process.wait(STOP_DEADLINE_SECONDS if archive is None else UNKEPT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if archive is not None:
        archive.remove()


def _remove_once_empty(left: Path | None, process: "subprocess.Popen[bytes]") -> None:
    """Remove the folder that Spark leaves behind, which it empties at its end, before the JVM writes its classes.

    A JVM that is killed before that leaves it full.
    """
    deadline = time.monotonic() + STOP_DEADLINE_SECONDS
    while left is not None:
        is_last = process.poll() is not None or time.monotonic() > deadline
        with contextlib.suppress(OSError):
            left.rmdir()
        if is_last or not left.exists():
            return
        time.sleep(_LOOK_SECONDS)


def break_off_start(has_ended: Callable[[float], bool]) -> None:
    """End the JVM of a start that is under way in another thread, which then fails; return when it has ended.

    `has_ended` waits so many seconds at most, and returns True once the start is over. A user who pressed Ctrl-C, or
    whose password is wrong, does not wait for a Spark that nobody will use. SIGTERM lets Spark delete its temporary
    folders.
    """
    from pyspark import SparkContext

    ended: subprocess.Popen[bytes] | None = None
    while not has_ended(_LOOK_SECONDS):
        process = _process()
        if process is not None and process is not ended:
            ended = process
            process.terminate()
            _end(process, _started.recording, _started.leaves_behind)
    if ended is not None:
        SparkContext._active_spark_context = None
        stop_java_machine()
        log_file().unlink(missing_ok=True)


def machine_ending() -> str | None:
    """Return how this process's JVM has ended, e.g. "by SIGKILL"; None while it runs, or if none was launched here."""
    process = _launched_here()
    if process is None:
        return None
    try:
        status = process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def _process() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that we launched, None if we launched none."""
    process = _launched_here()
    return process if process is _started.process else None


def _launched_here() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that this process has launched, be it a notebook's own; None if it has none."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def log_file() -> Path:
    """Return the file that this process's JVM writes its log to."""
    return cache_folder() / "logs" / f"spark-{os.getpid()}.log"


def _java_options(of_archive: str) -> contextlib.AbstractContextManager[None]:
    """Give the JVM options that the user's own `spark.driver.extraJavaOptions` do not replace."""
    name = "SPARK_SUBMIT_OPTS"
    return environment_variable(name, " ".join(filter(None, [_CRASH_OPTIONS, of_archive, os.environ.get(name)])))


def _quieten_py4j() -> None:
    """Keep py4j's stack traces off the terminal: what it logs, it raises as well, and the command reports that."""
    logging.getLogger("py4j").propagate = False
    root = logging.getLogger()
    if _not_of_py4j not in root.filters:
        # Some it logs by the root logger (seen with 0.10.9.9: "KeyboardInterrupt while sending command.").
        root.addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


def not_started(error: Exception) -> EnvironmentLacks:
    """Return the error that says why the JVM, or Spark in it, did not start: its log's most telling line."""
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


def has_class(jvm: Any, resource: str) -> bool:
    """Return True if the JVM (py4j's view of it) has a resource such as `ADMIN_CLASS`."""
    return jvm.java.lang.Thread.currentThread().getContextClassLoader().getResource(resource) is not None


def require_class(jvm: Any, resource: str) -> None:
    """Raise `EnvironmentLacks` if the JVM lacks a resource of Spark's Kafka connector."""
    if not has_class(jvm, resource):
        raise EnvironmentLacks(
            "Spark's Kafka connector is not loaded in the Spark session that runs here.",
            "Start Spark with it, for example with spark-submit --packages "
            "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION-OF-SPARK.",
        )

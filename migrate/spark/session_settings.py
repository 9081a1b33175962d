"""The settings that Spark and its JVM start with: the user's own win over the tool's."""

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from migrate.errors import UsageError
from migrate.spark.jars import cache_folder, connector_jars, msk_jars, spark_jars_folder
from migrate.spark.java import java_version
from migrate.spark.java_settings import PREFER_IPV6

APP_NAME = "mm2-migrate"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
PYTHON = "spark.pyspark.python"
_PYTHON_VARIABLE = "PYSPARK_PYTHON"
CLASS_PATH = "spark.driver.extraClassPath"
# Shorter pauses are worth nothing to a batch, throughput is. By default a JVM that reads for half a minute spends a
# quarter of its CPU on optimising code that soon ends: here a method or a loop has to run ten times as often first.
LARGE_JAVA = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# A JVM that lives for seconds compiles for longer than it runs.
SMALL_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# For readings that take less time than compiling their queries would.
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
# What every answer of this tool depends on: set on our own session only, never on one that we were given.
SQL_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
_LOCAL_SETTINGS = {
    # Both, or the driver cannot be reached under the host's other address.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "2g",
    # Where memory is short, Spark puts what it broadcasts on disk, tasks with the clusters' settings too.
    "spark.io.encryption.enabled": "true",
}
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    # Queries, and parts of one, whose code is the same share one compiled class.
    "spark.sql.codegen.useIdInClassName": "false",
    # Spark keeps each reading's consumers, and what they fetched ahead, for five minutes in case the same reading
    # needs them again: it never does, and after a few readings the heap is full of them.
    "spark.kafka.consumer.cache.capacity": "4",
    "spark.kafka.consumer.cache.timeout": "5s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}


# What every answer depends on, that the driver is reached, and that no password lies on a disk.
_OURS = {
    *SQL_SETTINGS, "spark.master", "spark.app.name", "spark.driver.bindAddress", "spark.driver.host",
    "spark.io.encryption.enabled",
}  # fmt: skip
# Where a user says which classes Spark has: then all of it stays as it was said.
_CLASSES = ("spark.jars", "spark.jars.packages", CLASS_PATH, "spark.driver.defaultJavaOptions")
_VARIABLES = ("PYSPARK_SUBMIT_ARGS", "SPARK_DIST_CLASSPATH", "SPARK_CLASSPATH")


def is_plain(conf: Mapping[str, str]) -> bool:
    """True if Spark runs as it was installed: nobody has set it up, or says which classes it has."""
    if any(conf.get(name) for name in _CLASSES) or any(os.environ.get(name) for name in _VARIABLES):
        return False
    try:
        return not any(_conf_folder().iterdir())
    except OSError:
        return True


def _conf_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_jars_folder().parent / "conf")


def is_local(master: str) -> bool:
    """True if Spark's tasks run in this machine's own JVM and Python."""
    return master == "local" or master.startswith("local[")


def master_of(by_option: str | None, conf: Mapping[str, str]) -> str:
    """Return Spark's master; raises `UsageError` if the option contradicts what is configured."""
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
    return _defaults().get("spark.master")


def _defaults() -> dict[str, str]:
    """Return the settings of spark-defaults.conf, none where there is no such file."""
    import javaproperties

    try:
        with Path(_conf_folder(), "spark-defaults.conf").open(encoding="utf-8") as handle:
            defaults: dict[str, str] = javaproperties.load(handle)
            return defaults
    except OSError:
        return {}


def settings_of(master: str, conf: Mapping[str, str], small: bool = False) -> dict[str, str]:
    """Return all settings of a Spark that we start; `small` is True where MM2's topics are known to be.

    What spark-defaults.conf says is left to it, secrets among it: whatever is named here would win over that file.
    Raises `EnvironmentLacks` if Java or the connector's jars are missing.
    """
    java_version()
    settings = {**_SETTINGS, **SQL_SETTINGS, "spark.master": master, "spark.app.name": APP_NAME}
    settings["spark.jars.ivy"] = str(cache_folder() / "spark-ivy")
    settings["spark.sql.warehouse.dir"] = str(cache_folder() / "spark-warehouse")
    if is_local(master):
        settings |= _LOCAL_SETTINGS | {JAVA_OPTIONS: SMALL_JAVA if small else LARGE_JAVA}
    defaults = _defaults()
    python = conf.get(PYTHON) or defaults.get(PYTHON) or os.environ.get(_PYTHON_VARIABLE) or sys.executable
    if is_local(master) and python == sys.executable:
        # Its workers import what this process does, and nothing from the folder where somebody happens to work.
        path = os.pathsep.join(entry for entry in sys.path if entry)
        settings |= {"spark.executorEnv.PYTHONPATH": path, "spark.executorEnv.PYTHONSAFEPATH": "1"}
    settings = {key: value for key, value in settings.items() if key not in defaults or key in _OURS}
    settings |= {**conf, PYTHON: python}
    of_the_user = {**defaults, **conf}
    connector, loaded = (list(map(str, jars)) for jars in (connector_jars(of_the_user), msk_jars(of_the_user)))
    if connector and is_local(master) and is_plain(conf) and os.pathsep not in "".join(connector):
        # What Spark loads from `spark.jars` has a loader of its own, from which no class-data archive takes classes.
        # Amazon's jar has that: it holds classes that Spark has too, of other versions, which would win here.
        settings[CLASS_PATH] = os.pathsep.join(connector)
    else:
        loaded = [*connector, *loaded]
    if loaded:
        settings["spark.jars"] = ",".join([*filter(None, [of_the_user.get("spark.jars")]), *loaded])
    if PREFER_IPV6 in os.environ.get("JAVA_TOOL_OPTIONS", ""):
        # Such a JVM hands rows over at ::1, and pyspark would look for it at 127.0.0.1.
        os.environ.setdefault("SPARK_PREFER_IPV6", "true")
    return settings


def pyspark_python(settings: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """Have a Spark that starts inside run its workers in the Python of these settings.

    pyspark reads the variable alone; the setting is read only by spark-submit. The variable is put back afterwards: the
    next Spark of this process, as in a notebook, may be given another Python, or none.
    """
    return environment_variable(_PYTHON_VARIABLE, settings[PYTHON])


@contextlib.contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment inside, and put it back afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before

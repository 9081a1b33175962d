"""What the executors of a Spark cluster need of us: our package, and a Python that is looked at before they read."""

import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING, Any

import migrate
from migrate.errors import EnvironmentLacks
from migrate.spark.java_errors import last_line
from migrate.spark.machine import log_file
from migrate.spark.session_settings import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ARCHIVE = "mm2-migrate-package.zip"
# A cluster that grows on demand, or is busy, has no executor at once.
EXECUTORS_SECONDS = 300.0
HOW_TO_GIVE = (
    "Executors need this machine's Python version, {version}, with confluent-kafka: name it with --spark-conf "
    "spark.pyspark.python=/opt/venv/bin/python, or send it with --spark-conf spark.archives (docs/spark.md)."
)


def refuse_lacking(spark: "SparkSession", most_seconds: float = EXECUTORS_SECONDS) -> tuple[str, ...]:
    """Return the hosts of Spark's executors; raise `EnvironmentLacks` where they lack what comparing records needs.

    Names, by host, the Pythons without confluent-kafka. Twice as many tasks as cores look, so that every executor that
    is there takes some; one that joins later and lacks it fails its tasks, which Spark gives to another. Nothing can be
    lacking where tasks run on this machine: (). Waits `most_seconds` for the first executor.
    """
    context = spark.sparkContext
    if is_local(context.master):
        return ()
    ship_package(spark)
    todo = HOW_TO_GIVE.format(version=platform.python_version())
    seen = _look(context, todo, most_seconds)
    lacking = [f"{python} on {host}: {problem}" for host, python, problem in sorted(seen) if problem]
    if lacking:
        raise EnvironmentLacks(f"Spark's executors lack what reads records: {'; '.join(lacking)}.", todo)
    return tuple(sorted({host for host, _, _ in seen}))


def _look(context: "SparkContext", todo: str, most_seconds: float) -> set[tuple[str, str, str]]:
    """Return the host, the Python and what it lacks ("" for nothing) of each executor that took a task."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    group, tasks = f"mm2-migrate-executors-{id(context)}", 2 * context.defaultParallelism
    nobody: list[bool] = []

    # Nested, so that it is pickled by value: for a function of a module, the executor would import the package first.
    def look(numbers: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        problem = ""
        try:
            import confluent_kafka  # noqa: F401
        except ImportError as error:
            problem = str(error)
        yield platform.node(), sys.executable, problem

    def give_up() -> None:
        if not _has_begun(context, group):
            nobody.append(True)
            context.cancelJobGroup(group)

    timer = Timer(most_seconds, give_up)
    timer.daemon = True
    context.setJobGroup(group, "looking at the executors' Python")
    timer.start()
    try:
        return set(context.parallelize(range(tasks), tasks).mapPartitions(look).collect())
    except (Py4JError, PySparkException) as error:
        if nobody:
            raise EnvironmentLacks(
                f"No executor of {context.master} has taken work within {most_seconds:g} s.",
                "The cluster may have no free cores or memory (spark.executor.memory, spark.cores.max), or its "
                f"executors cannot reach this machine (spark.driver.host). Spark's own log is {log_file()}.",
            ) from error
        raise EnvironmentLacks(f"Spark's executors cannot run our tasks: {last_line(error)}.", todo) from error
    finally:
        timer.cancel()
        context._jsc.clearJobGroup()


def _has_begun(context: "SparkContext", group: str) -> bool:
    tracker: Any = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return any(stage is not None and (stage.numActiveTasks or stage.numCompletedTasks) for stage in stages)


def ship_package(spark: "SparkSession") -> None:
    """Send the installed package to all executors, once per Spark application; a local master needs nothing."""
    context = spark.sparkContext
    if is_local(context.master) or any(name.endswith(ARCHIVE) for name in context._python_includes):
        return
    archive = Path(_folder().name, ARCHIVE)
    pack(archive)
    context.addPyFile(str(archive))


@cache
def _folder() -> "TemporaryDirectory[str]":
    """Return a folder that lasts as long as this process: executors fetch what is in it when they first need it."""
    return TemporaryDirectory(prefix="mm2-migrate-")


def pack(archive: Path) -> None:
    """Write the package's modules into a zip from which Python can import them."""
    package = Path(migrate.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(package.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                packed.write(path, path.relative_to(package.parent))

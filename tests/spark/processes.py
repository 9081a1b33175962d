"""For tests that start Spark or a JVM: code in a process of its own, and the end of this process's Spark."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from migrate.spark.session import stop_session


def with_our_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def ran(
    code: str, *words: Path | str, under: Sequence[str] = (), cwd: Path | None = None, **environment: Path | str
) -> subprocess.CompletedProcess[str]:
    """Run Python code with our package, once it is over."""
    command = [*under, sys.executable, "-P", "-c", code, *map(str, words)]
    settings = with_our_package() | {name: str(value) for name, value in environment.items()}
    return subprocess.run(command, env=settings, cwd=cwd, capture_output=True, text=True, timeout=400, check=False)


def stop_running_spark() -> None:
    """End the Spark of this process and its JVM, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        stop_session(SparkSession.builder.getOrCreate())

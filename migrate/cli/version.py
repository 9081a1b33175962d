"""What `--version` prints: the tool, and what it found here to work with, for a report of a fault."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from migrate import __version__
from migrate.errors import EnvironmentLacks
from migrate.spark.java import java_executable, java_version


def version_lines() -> Iterator[str]:
    """Yield a line for each; the tool's comes first, and no JVM starts where Java's own files tell its version."""
    yield f"mm2-migrate {__version__}"
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield f"Spark {_installed('pyspark')}"
    try:
        from confluent_kafka import libversion

        yield f"librdkafka {libversion()[0]} (confluent-kafka {_installed('confluent-kafka')})"
    except ImportError as error:
        yield f"librdkafka: {error}"
    try:
        yield f"Java {java_version()} ({java_executable()})"
    except EnvironmentLacks as lack:
        yield f"Java: {lack.problem}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"

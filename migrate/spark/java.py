"""The Java that Spark runs on: found and judged before a JVM is launched, so that its lack is one line."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from migrate.errors import EnvironmentLacks

LEAST_VERSION = 17
# Java 23 took away what Spark 4.0's Hadoop asks when a session starts (`Subject.getSubject`, HADOOP-19212).
NEWEST_FOR_SPARK_4_0 = 22
HOW_TO_GET = (
    f"Install Java {LEAST_VERSION} (for example `apt install openjdk-{LEAST_VERSION}-jre-headless`, "
    f"`dnf install java-{LEAST_VERSION}-openjdk-headless` or `brew install openjdk@{LEAST_VERSION}`) "
    "and put `java` on the PATH or set JAVA_HOME."
)


def java_executable() -> Path:
    """Return the `java` that Spark's own scripts will take: JAVA_HOME's, else the one on the PATH.

    Raises `EnvironmentLacks` if there is none.
    """
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise EnvironmentLacks(f"JAVA_HOME is {home}, but there is no bin/java in it.", HOW_TO_GET)
        return java
    on_path = shutil.which("java")
    if on_path is None:
        raise EnvironmentLacks("Java was not found: neither is JAVA_HOME set nor `java` on the PATH.", HOW_TO_GET)
    return Path(on_path)


def refuse_java_too_new() -> None:
    """Raise `EnvironmentLacks` for a Java on which the installed Spark starts no session; Kafka's client needs none."""
    from pyspark import __version__

    version = java_version()
    if int(version.split(".")[0]) > NEWEST_FOR_SPARK_4_0 and __version__.startswith("4.0."):
        raise EnvironmentLacks(
            f"{java_executable()} is Java {version}; Spark {__version__} does not start on Java "
            f"{NEWEST_FOR_SPARK_4_0 + 1} or newer.",
            HOW_TO_GET,
        )


def java_version() -> str:
    """Return the version of that Java, such as "17.0.15", without starting a JVM where its files tell.

    Raises `EnvironmentLacks` if there is no working Java, or only one older than Spark 4 accepts.
    """
    java = java_executable()
    version = _released_version(java) or _printed_version(java)
    if version is None:
        raise EnvironmentLacks(f"`{java} -version` does not work.", HOW_TO_GET)
    if int(version.split(".")[0]) < LEAST_VERSION:
        raise EnvironmentLacks(f"{java} is Java {version}; Spark 4 needs {LEAST_VERSION} or newer.", HOW_TO_GET)
    return version


def _released_version(java: Path) -> str | None:
    try:
        text = (java.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return _version_in(r'^JAVA_VERSION="([^"]+)"', text)


def _printed_version(java: Path) -> str | None:
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _version_in(r'version "([^"]+)"', shown.stderr + shown.stdout)


def _version_in(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, re.MULTILINE)
    # Java 8 called itself "1.8.0_402".
    version = match[1].removeprefix("1.") if match else ""
    return version if version.split(".")[0].isdecimal() else None

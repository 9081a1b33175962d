"""The classes of Kafka's JVMs, kept in the cache for the next start, which then takes half as long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.lab.jars import cache_folder, java_executable, locked

DUMP_SECONDS = 120.0


def archive(jars: Path, main_class: str) -> Path:
    """The archive for a program of these jars under the present Java: MM2's and Connect's are one, all others another.

    The JVM leaves aside one that does not fit it.
    """
    java = Path(java_executable()).resolve()
    kind = "connect" if "connect" in main_class else "broker"
    return cache_folder() / "lab-classes" / f"{jars.name}-{kind}-{java.stat().st_mtime_ns}.jsa"


def keep_classes(pid: int | None, to: Path) -> None:
    """Have the JVM `pid`, which is up, write its classes to an archive, if there is none and the JDK's jcmd is here.

    In a run of pytest alone: it takes five seconds, and whoever sees the demo may never start another lab.
    """
    jcmd = Path(java_executable()).resolve().with_name("jcmd")
    if to.exists() or not jcmd.exists() or "PYTEST_VERSION" not in os.environ:
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    with locked(to.with_suffix(".lock")):
        if to.exists():
            return
        fresh = to.with_suffix(".fresh")
        fresh.unlink(missing_ok=True)
        words = [str(jcmd), str(pid), "VM.cds", "static_dump", str(fresh)]
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DUMP_SECONDS, check=False)
        if fresh.exists():
            fresh.replace(to)
        # What the JVM that wrote it has said lies where this one was started, under a pid that nobody tells.
        for said in Path().glob("java_pid[0-9]*_std*"):
            said.unlink(missing_ok=True)

"""Spark's own cluster manager: a standalone master and two workers, as processes of their own.

Their Python has confluent-kafka and not this package, which the driver has to send.
"""

import json
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.lab.jars import java_executable
from tests.lab.ports import HOST, free_ports
from tests.lab.process import GuardedProcess

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0
PACKAGE = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Standalone:
    """Spark's own cluster manager with two workers of one core. `python` is what its executors run."""

    url: str
    python: Path
    bare: Path
    worker_ports: tuple[int, int]
    workers: Sequence[GuardedProcess]

    def executors(self) -> list[int]:
        """The process ids of the executors that run now."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_text(errors="replace").split("\0")
                ours = any(word.endswith(f"@{HOST}:{port}") for word in words for port in self.worker_ports)
                if ours and "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
                    found.append(int(path.parent.name))
        return found


@contextmanager
def started_standalone(folder: Path) -> Iterator[Standalone]:
    """Yield a master and two workers that are ready; what they write lies in the folder."""
    port, page, *ports = free_ports(6)
    url = f"spark://{HOST}:{port}"
    words = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
    processes = [GuardedProcess("Spark's master", java("master.Master", *words), folder / "master.log")]
    for number, (worker_port, worker_page) in enumerate(batched(ports)):
        words = ["--host", HOST, "--port", str(worker_port), "--webui-port", str(worker_page), "--cores", "1",
                 "--memory", "1g", "--work-dir", str(folder / f"work-{number}"), url]  # fmt: skip
        log = folder / f"worker-{number}.log"
        processes.append(GuardedProcess(f"Spark's worker {number}", java("worker.Worker", *words), log))

    def ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=5) as page_:
                return json.load(page_)["aliveworkers"] == len(processes) - 1
        except (OSError, json.JSONDecodeError):
            # The page is served before its JSON is, and answers for it meanwhile.
            return False

    try:
        for process in processes:
            process.start()
        processes[-1].wait_ready(ready, START_SECONDS, "two workers at Spark's master")
        fit, bare = python_with(folder, "fit", confluent_kafka=True), python_with(folder, "bare")
        yield Standalone(url, fit, bare, (ports[0], ports[2]), processes[1:])
    finally:
        for process in reversed(processes):
            process.stop()


def batched(ports: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(ports[::2], ports[1::2], strict=True)


def java(main_class: str, *words: str) -> list[str]:
    settings = [f"SPARK_HOME={SPARK_HOME}", "SPARK_SCALA_VERSION=2.13", f"SPARK_LOCAL_IP={HOST}"]
    jars = str(SPARK_HOME / "jars" / "*")
    return ["env", *settings, java_executable(), "-Xmx512m", "-cp", jars, f"{PACKAGE}.{main_class}", *words]


def python_with(folder: Path, name: str, confluent_kafka: bool = False) -> Path:
    """Write a Python that has no libraries but, perhaps, confluent-kafka; nor the package that is being developed."""
    script, libraries = folder / name, folder / f"{name}-libraries"
    libraries.mkdir()
    if confluent_kafka:
        for installed in Path(sysconfig.get_path("purelib")).glob("confluent_kafka*"):
            (libraries / installed.name).symlink_to(installed)
    # Without the site module nothing of a development install takes effect.
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


def settings(cluster: Standalone, python: Path | None = None, **more: str) -> dict[str, str]:
    return {
        "spark.pyspark.python": str(python or cluster.python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.executor.memory": "1g",
    } | {key.replace("_", "."): value for key, value in more.items()}


def on(cluster: Standalone, python: Path | None = None, **more: str) -> tuple[str, ...]:
    """The options that make a plan on this cluster."""
    pairs = settings(cluster, python, **more).items()
    return ("--master", cluster.url, *(word for key, value in pairs for word in ("--spark-conf", f"{key}={value}")))

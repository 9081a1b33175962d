"""A plan made by Spark on a cluster of the user's own: a standalone master and a worker, as processes of their own.

The worker's Python has confluent-kafka and not this package, which the driver has to send.
"""

import json
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.integration.cli import CommandLine
from tests.integration.clusters import AnyLab
from tests.integration.scene import Scene
from tests.lab.cluster import HOST, free_ports
from tests.lab.jars import java_executable
from tests.lab.process import GuardedProcess
from tests.seeds import new_seed

pytestmark = [pytest.mark.kafka, pytest.mark.long]

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0
PACKAGE = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Standalone:
    """Spark's own cluster manager with one worker. `python` is what its executors run."""

    url: str
    python: Path


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = tmp_path_factory.mktemp("standalone")
    port, page, worker_port, worker_page = free_ports(4)
    url = f"spark://{HOST}:{port}"
    words = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
    master = GuardedProcess("Spark's master", java("master.Master", *words), folder / "master.log")
    words = ["--host", HOST, "--port", str(worker_port), "--webui-port", str(worker_page), "--cores", "2",
             "--memory", "2g", "--work-dir", str(folder / "work"), url]  # fmt: skip
    worker = GuardedProcess("Spark's worker", java("worker.Worker", *words), folder / "worker.log")

    def workers() -> bool:
        with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=5) as page_:
            return bool(json.load(page_)["aliveworkers"])

    def ready() -> bool:
        try:
            return workers()
        except OSError:
            return False

    try:
        master.start()
        worker.start()
        worker.wait_ready(ready, START_SECONDS, "a worker at Spark's master")
        yield Standalone(url, bare_python(folder))
    finally:
        worker.stop()
        master.stop()


def java(main_class: str, *words: str) -> list[str]:
    settings = [f"SPARK_HOME={SPARK_HOME}", "SPARK_SCALA_VERSION=2.13", f"SPARK_LOCAL_IP={HOST}"]
    jars = str(SPARK_HOME / "jars" / "*")
    return ["env", *settings, java_executable(), "-Xmx512m", "-cp", jars, f"{PACKAGE}.{main_class}", *words]


def bare_python(folder: Path) -> Path:
    """Write a Python that has the libraries of this one, but not the package that is being developed beside them."""
    script = folder / "python"
    libraries = sysconfig.get_path("purelib")
    # Without the site module nothing of a development install takes effect.
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script


def test_a_plan_made_on_a_spark_cluster_is_the_plan_made_on_this_machine(
    lab: AnyLab, standalone: Standalone, tmp_path: Path
) -> None:
    scene = Scene(lab, "cluster", new_seed())
    plain = scene.create("plain", 4)
    scene.write([(plain, p) for p in range(4)], 800)
    ends = scene.source_ends()
    for number in range(8):
        scene.commit({scene.group(f"g{number}"): {p: scene.dice.randint(*ends[p]) for p in scene.partitions}})
    scene.wait_replicated()
    commands = CommandLine.of(lab, tmp_path)
    group = ("--group", f".*{scene.suffix}")
    commands.plan("here.plan", *group).expect(0)
    settings = {
        "spark.pyspark.python": str(standalone.python),
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.executor.memory": "1g",
        "spark.cores.max": "2",
    }
    words = [word for key, value in settings.items() for word in ("--spark-conf", f"{key}={value}")]
    commands.plan("there.plan", *group, "--master", standalone.url, *words).expect(0)
    here, there = (commands.document(name)["rows"] for name in ("here.plan", "there.plan"))
    assert here and here == there
    assert {row["grade"] for row in there} == {"exact"}

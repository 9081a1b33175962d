"""A plan made by Spark on a cluster of the user's own: a standalone master and two workers, as processes of their own.

Their Python has confluent-kafka and not this package, which the driver has to send.
"""

import json
import os
import shlex
import signal
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark
import pytest

import migrate
from migrate.spark.jars import connector_jars
from tests.integration.cli import CommandLine, Ran
from tests.integration.clusters import AnyLab
from tests.integration.scene import Scene
from tests.lab.jars import java_executable
from tests.lab.ports import HOST, free_ports
from tests.lab.process import GuardedProcess
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 90.0
PACKAGE = "org.apache.spark.deploy"


RECORDS, GROUPS = 20_000, 8


@dataclass(frozen=True)
class Standalone:
    """Spark's own cluster manager with two workers of one core. `python` is what its executors run."""

    url: str
    python: Path
    bare: Path
    worker_ports: tuple[int, int]

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


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    folder = tmp_path_factory.mktemp("standalone")
    port, page, *ports = free_ports(6)
    url = f"spark://{HOST}:{port}"
    words = ["--host", HOST, "--port", str(port), "--webui-port", str(page)]
    processes = [GuardedProcess("Spark's master", java("master.Master", *words), folder / "master.log")]
    for number, (worker_port, worker_page) in enumerate(batched(ports)):
        words = ["--host", HOST, "--port", str(worker_port), "--webui-port", str(worker_page), "--cores", "1",
                 "--memory", "1g", "--work-dir", str(folder / f"work-{number}"), url]  # fmt: skip
        log = folder / f"worker-{number}.log"
        processes.append(GuardedProcess(f"Spark's worker {number}", java("worker.Worker", *words), log))

    def workers() -> bool:
        with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=5) as page_:
            return json.load(page_)["aliveworkers"] == len(processes) - 1

    def ready() -> bool:
        try:
            return workers()
        except OSError:
            return False

    try:
        for process in processes:
            process.start()
        processes[-1].wait_ready(ready, START_SECONDS, "two workers at Spark's master")
        fit, bare = python_with(folder, "fit", confluent_kafka=True), python_with(folder, "bare")
        yield Standalone(url, fit, bare, (ports[0], ports[2]))
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


class Here:
    """A scene, and the plan of it that this machine made by itself."""

    def __init__(self, lab: AnyLab, folder: Path) -> None:
        self.scene = scene = Scene(lab, "cluster", new_seed())
        plain = scene.create("plain", 4)
        scene.write([(plain, p) for p in range(4)], RECORDS)
        ends = scene.source_ends()
        for number in range(GROUPS):
            scene.commit({scene.group(f"g{number}"): {p: scene.dice.randint(*ends[p]) for p in scene.partitions}})
        scene.wait_replicated()
        self.commands = CommandLine.of(lab, folder)
        self.group = ("--group", f".*{scene.suffix}")
        self.commands.plan("here.plan", *self.group).expect(0)
        self.rows = self.commands.document("here.plan")["rows"]
        assert len(self.rows) == 4 * GROUPS and {row["grade"] for row in self.rows} == {"exact"}

    def judge(self, ran: Ran) -> None:
        """The plan that a cluster made is the one that this machine made."""
        ran.expect(0)
        assert self.commands.document("there.plan")["rows"] == self.rows


@pytest.fixture(scope="module")
def here(lab: AnyLab, tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(lab, tmp_path_factory.mktemp("here"))


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


def test_a_plan_made_on_a_spark_cluster_is_the_plan_made_on_this_machine(here: Here, standalone: Standalone) -> None:
    here.judge(here.commands.plan("there.plan", *here.group, *on(standalone)))


def test_executors_that_come_and_go_on_demand_make_the_same_plan(here: Here, standalone: Standalone) -> None:
    demand = {
        "spark_dynamicAllocation_enabled": "true",
        "spark_dynamicAllocation_shuffleTracking_enabled": "true",
        "spark_dynamicAllocation_executorIdleTimeout": "1s",
    }
    here.judge(here.commands.plan("there.plan", *here.group, *on(standalone, **demand)))


def test_an_executor_that_is_killed_in_mid_comparison_changes_nothing(
    here: Here, standalone: Standalone, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.touch()
    aside = replace(here.commands, launcher=("sh", "-c", f'exec "$@" 2>{told}', "sh"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(aside.plan, "there.plan", *here.group, *on(standalone))
        wait_until(lambda: running.done() or "] comparing" in told.read_text(), START_SECONDS, "plan to compare")
        killed, *others = standalone.executors()
        os.kill(killed, signal.SIGKILL)
        assert "reading MM2's checkpoints" not in told.read_text().partition("] comparing")[2]
        here.judge(running.result())
    assert others


def test_executors_without_confluent_kafka_are_named_before_anything_is_read(
    here: Here, standalone: Standalone
) -> None:
    for command in ("plan", "doctor"):
        words = ("--out", "no.plan") if command == "plan" else ()
        ran = here.commands.run(command, *here.commands.clusters, *here.group, *on(standalone, standalone.bare), *words)
        said = " ".join((ran.expect(1).stdout + ran.stderr).split())
        assert "Spark's executors lack what reads records" in said and "No module named 'confluent_kafka'" in said
        assert "spark.pyspark.python=" in said and "reading MM2's offset syncs" not in said
    assert not (here.commands.folder / "no.plan").exists()


def test_a_plan_under_spark_submit_is_the_plan_made_on_this_machine(here: Here, standalone: Standalone) -> None:
    """With the master and the connector that spark-submit was given, and nothing of ours."""
    conf = [word for key, value in settings(standalone).items() for word in ("--conf", f"{key}={value}")]
    jars = ",".join(map(str, connector_jars({})))
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", standalone.url, "--jars", jars, *conf]
    main = Path(migrate.__file__).with_name("__main__.py")
    # In place of "python -m migrate".
    words = shlex.join([*submit, str(main)])
    submitted = replace(here.commands, launcher=("sh", "-c", f'shift 3; exec {words} "$@"', "sh"))
    here.judge(submitted.plan("there.plan", *here.group))
    wrong = submitted.plan("wrong.plan", *here.group, "--master", "local[2]").expect(2)
    # Where spark-submit sends all that its program says.
    assert f"contradicts the master of spark-submit, {standalone.url}." in " ".join(wrong.stdout.split())

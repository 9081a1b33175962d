"""A plan made by Spark on a cluster of the user's own."""

import os
import shlex
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import migrate
from migrate.spark.jars import connector_jars
from tests.integration.cli import DEADLINE_SECONDS, CommandLine, Ran
from tests.integration.scene import Scene
from tests.integration.standalone import SPARK_HOME, Standalone, on, settings, started_standalone
from tests.lab.lab import Lab
from tests.lab.waiting import wait_until
from tests.seeds import new_seed

pytestmark = pytest.mark.long

RECORDS, GROUPS = 20_000, 8


class Here:
    """A scene, and the plan of it that this machine made by itself."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.scene = scene = Scene(lab, "cluster", new_seed())
        plain = scene.create("plain", 4)
        scene.write([(plain, p) for p in range(4)], RECORDS)
        ends = scene.source_ends()
        for number in range(GROUPS):
            scene.commit({scene.group(f"g{number}"): {p: scene.dice.randint(*ends[p]) for p in scene.partitions}})
        scene.wait_replicated()
        lab.mirror.wait_checkpoints([])
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
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with started_standalone(tmp_path_factory.mktemp("standalone")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def here(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(lab, tmp_path_factory.mktemp("here"))


def test_a_plan_made_on_a_spark_cluster_is_the_plan_made_on_this_machine(here: Here, standalone: Standalone) -> None:
    here.judge(here.commands.plan("there.plan", *here.group, *on(standalone)))


def test_an_executor_that_is_killed_in_mid_comparison_changes_nothing(
    here: Here, standalone: Standalone, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    told.touch()
    aside = replace(here.commands, launcher=("sh", "-c", f'exec "$@" 2>{told}', "sh"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(aside.plan, "there.plan", *here.group, *on(standalone))
        wait_until(lambda: running.done() or "] comparing" in told.read_text(), DEADLINE_SECONDS, "plan to compare")
        assert not running.done(), str(running.result())
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

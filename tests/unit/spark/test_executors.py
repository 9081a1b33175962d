"""Our package for executors, and executors elsewhere looked at before anything is read with them."""

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import confluent_kafka
import pytest
from py4j.protocol import Py4JError

from migrate.errors import EnvironmentLacks
from migrate.spark import executors
from migrate.spark.executors import pack, refuse_lacking, ship_package


def session(*answers, fails=False, master="spark://here:7077", begun=1):
    """A session whose tasks answer what they are given to, or run, or fail; `begun` tasks have been started."""
    context = MagicMock(master=master, defaultParallelism=2, _python_includes=[])
    context.addPyFile = context._python_includes.append
    tracker = context.statusTracker.return_value
    tracker.getJobIdsForGroup.return_value = tracker.getJobInfo.return_value.stageIds = [1]
    tracker.getStageInfo.return_value = SimpleNamespace(numActiveTasks=begun, numCompletedTasks=0)
    tasks = context.parallelize.return_value.mapPartitions
    collect = tasks.return_value.collect
    if fails:
        collect.side_effect = Py4JError("Job aborted: ModuleNotFoundError")
    else:
        collect.side_effect = lambda: list(answers) or list(tasks.call_args.args[0](range(2)))
    return SimpleNamespace(sparkContext=context)


FIT, LACKING = ("h1", "/venv/python", ""), ("h2", "/usr/python", "No module named 'x'")


def test_where_tasks_run_on_this_machine_nobody_is_asked():
    spark = session(LACKING, master="local[*]")
    assert refuse_lacking(spark) == () and not spark.sparkContext.parallelize.called


def test_executors_that_have_all_are_named_by_host_and_more_tasks_look_than_there_are_cores():
    spark = session(FIT, FIT, ("h3", "/venv/python", ""))
    assert refuse_lacking(spark) == ("h1", "h3")
    assert spark.sparkContext.parallelize.call_args.args[1] == 4 and spark.sparkContext._python_includes


def test_an_executor_that_lacks_confluent_kafka_is_named_with_its_python_and_what_to_do():
    with pytest.raises(EnvironmentLacks, match=r"/usr/python on h2: No module named 'x'") as refused:
        refuse_lacking(session(FIT, LACKING))
    assert "h1" not in refused.value.problem
    for word in (f"{sys.version_info.major}.{sys.version_info.minor}", "spark.pyspark.python"):
        assert word in refused.value.todo
    # One that cannot run our tasks at all is no stack trace.
    with pytest.raises(EnvironmentLacks, match="cannot run our tasks: Job aborted: ModuleNotFoundError"):
        refuse_lacking(session(fails=True))


@pytest.mark.parametrize("begun", [0, 1])
def test_a_cluster_that_gives_no_executor_is_given_up_and_one_that_is_slow_is_not(monkeypatch, begun):
    given = []

    def at_once(seconds, call):
        given.append(seconds)
        return SimpleNamespace(start=call, cancel=lambda: None)

    monkeypatch.setattr(executors, "Timer", at_once)
    spark = session(FIT, begun=begun, fails=not begun)
    if begun:
        assert refuse_lacking(spark, 7) == ("h1",) and not spark.sparkContext.cancelJobGroup.called
    else:
        with pytest.raises(EnvironmentLacks, match="No executor of spark://here:7077 has taken work within 7 s"):
            refuse_lacking(spark, 7)
        spark.sparkContext.cancelJobGroup.assert_called_once()
    assert given == [7]


def test_a_task_finds_confluent_kafka_here_and_says_what_is_missing_without(monkeypatch):
    assert refuse_lacking(session()) == (platform.node(),)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(EnvironmentLacks, match=f"{sys.executable} on {platform.node()}: .*confluent_kafka"):
        refuse_lacking(session())


def test_what_tasks_import_comes_from_the_archive_that_is_shipped_and_needs_confluent_kafka_alone(tmp_path):
    """As on an executor: no package of this environment but that one."""
    installed = Path(confluent_kafka.__file__).parent
    for folder in installed.parent.glob("confluent_kafka*"):
        (tmp_path / folder.name).symlink_to(folder)
    archive = tmp_path / "package.zip"
    pack(archive)
    modules = "migrate.match.task, migrate.match.calibration, migrate.kafka.reader_pair, migrate.kafka.record_reader"
    code = f"import {modules}; print(migrate.__file__)"
    words, environment = [sys.executable, "-S", "-c", code], {"PYTHONPATH": f"{archive}:{tmp_path}"}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ran.stderr, ran.stdout.strip()) == ("", f"{archive}/migrate/__init__.py")


@pytest.mark.parametrize(("master", "archives"), [("local[2]", 0), ("spark://here:7077", 1), ("yarn", 1)])
def test_executors_elsewhere_get_the_package_once_and_local_ones_need_none(master, archives):
    spark = session(master=master)
    for _ in range(2):
        ship_package(spark)
    assert len(spark.sparkContext._python_includes) == archives

"""Our package for executors, and executors elsewhere looked at before anything is read with them; Spark itself is real
in tests/integration.
"""

import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import confluent_kafka
import pytest
from py4j.protocol import Py4JError

import migrate
from migrate.errors import EnvironmentLacks
from migrate.spark import executors
from migrate.spark.executors import pack, refuse_lacking, ship_package


class Context:
    """Spark's context: its tasks answer what they are given to, or fail; `begun` tasks have been started."""

    defaultParallelism = 2  # noqa: N815

    def __init__(self, *answers, error=None, master="spark://here:7077", begun=1):
        self.master, self._answers, self._error, self._begun = master, answers, error, begun
        self._python_includes, self.cancelled, self.looked = [], [], 0
        self._jsc = SimpleNamespace(clearJobGroup=lambda: None)

    def addPyFile(self, path):  # noqa: N802
        self._python_includes.append(path)

    def setJobGroup(self, *words):  # noqa: N802
        pass

    def cancelJobGroup(self, group):  # noqa: N802
        self.cancelled.append(group)

    def parallelize(self, numbers, tasks):
        self.looked += tasks
        return self

    def mapPartitions(self, function):  # noqa: N802
        self.task = function
        return self

    def collect(self):
        if not self._answers and self._error is None:
            return list(self.task(range(2)))
        if self._error is not None:
            raise Py4JError("Job aborted: ModuleNotFoundError")
        return list(self._answers)

    def statusTracker(self):  # noqa: N802
        stage = SimpleNamespace(numActiveTasks=self._begun, numCompletedTasks=0)
        return SimpleNamespace(
            getJobIdsForGroup=lambda group: [1],
            getJobInfo=lambda job: SimpleNamespace(stageIds=[1]),
            getStageInfo=lambda stage_id: stage,
        )


def session(*answers, **more):
    return SimpleNamespace(sparkContext=Context(*answers, **more))


FIT, LACKING = ("h1", "/venv/python", ""), ("h2", "/usr/python", "No module named 'x'")


def test_where_tasks_run_on_this_machine_nobody_is_asked():
    spark = session(LACKING, master="local[*]")
    assert refuse_lacking(spark) == () and not spark.sparkContext.looked


def test_executors_that_have_all_are_named_by_host_and_more_tasks_look_than_there_are_cores():
    spark = session(FIT, FIT, ("h3", "/venv/python", ""))
    assert refuse_lacking(spark) == ("h1", "h3")
    assert spark.sparkContext.looked == 4 and spark.sparkContext._python_includes


def test_an_executor_that_lacks_confluent_kafka_is_named_with_its_python_and_what_to_do():
    with pytest.raises(EnvironmentLacks, match=r"/usr/python on h2: No module named 'x'") as refused:
        refuse_lacking(session(FIT, LACKING))
    assert "h1" not in refused.value.problem
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in refused.value.todo
    assert "spark.pyspark.python" in refused.value.todo


def test_executors_that_cannot_run_our_tasks_at_all_are_no_stack_trace():
    with pytest.raises(EnvironmentLacks, match="cannot run our tasks: Job aborted: ModuleNotFoundError"):
        refuse_lacking(session(error=True))


@pytest.mark.parametrize("begun", [0, 1])
def test_a_cluster_that_gives_no_executor_is_given_up_and_one_that_is_slow_is_not(monkeypatch, begun):
    given = []
    monkeypatch.setattr(executors, "Timer", lambda seconds, call: given.append(seconds) or Now(call))
    spark = session(FIT, begun=begun, error=None if begun else True)
    if begun:
        assert refuse_lacking(spark, 7) == ("h1",) and not spark.sparkContext.cancelled
    else:
        with pytest.raises(EnvironmentLacks, match="No executor of spark://here:7077 has taken work within 7 s"):
            refuse_lacking(spark, 7)
        assert len(spark.sparkContext.cancelled) == 1
    assert given == [7]


class Now:
    """A timer whose time is up at once."""

    def __init__(self, call):
        self.start, self.cancel = call, lambda: None


def test_a_task_finds_confluent_kafka_here_and_says_what_is_missing_without(monkeypatch):
    assert refuse_lacking(session()) == (platform.node(),)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(EnvironmentLacks, match=f"{sys.executable} on {platform.node()}: .*confluent_kafka"):
        refuse_lacking(session())


def test_what_tasks_import_needs_confluent_kafka_alone(tmp_path):
    """As on an executor: no package of this environment but that one."""
    installed = Path(confluent_kafka.__file__).parent
    for folder in installed.parent.glob("confluent_kafka*"):
        (tmp_path / folder.name).symlink_to(folder)
    code = "import migrate.kafka.reader_pair, migrate.kafka.record_reader, migrate.match.task"
    environment = {"PYTHONPATH": f"{Path(migrate.__file__).parents[1]}:{tmp_path}"}
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_the_package_that_is_shipped_to_executors_can_be_imported_from_its_archive(tmp_path):
    archive = tmp_path / "package.zip"
    pack(archive)
    modules = "migrate.match.task, migrate.match.calibration, migrate.kafka.reader_pair"
    code = f"import sys; sys.path.insert(0, {str(archive)!r}); import {modules}; print(migrate.__file__)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.stderr == ""
    assert done.stdout.strip() == f"{archive}/migrate/__init__.py"


@pytest.mark.parametrize(("master", "archives"), [("local[2]", 0), ("spark://here:7077", 1), ("yarn", 1)])
def test_executors_elsewhere_get_the_package_once_and_local_ones_need_none(master, archives):
    context = Context(master=master)
    for _ in range(2):
        ship_package(SimpleNamespace(sparkContext=context))
    assert len(context._python_includes) == archives

"""Our package for Spark's executors."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from migrate.spark.executors import pack, ship_package


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


class Context:
    """What Spark's context is asked: its master, and which archives its executors have."""

    def __init__(self, master):
        self.master = master
        self._python_includes = []

    def addPyFile(self, path):  # noqa: N802
        self._python_includes.append(path.rpartition("/")[2])


@pytest.mark.parametrize(("master", "archives"), [("local[2]", 0), ("spark://here:7077", 1), ("yarn", 1)])
def test_executors_elsewhere_get_the_package_once_and_local_ones_need_none(master, archives):
    context = Context(master)
    for _ in range(2):
        ship_package(SimpleNamespace(sparkContext=context))
    assert len(context._python_includes) == archives

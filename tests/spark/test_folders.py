"""Spark and its cache where a folder takes nothing: one paragraph that says which, why, and what to do."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from migrate.spark.jars import cache_folder
from tests.unit.folders import fill, give_away, held, small_disk, without_root_powers

JARS = "from migrate.spark.jars import connector_jars; work = connector_jars"
SESSION = "from migrate.spark.session import spark_session; work = lambda: spark_session('local[1]')"
RUN = "\nfrom migrate.cli.console import one_paragraph\none_paragraph(lambda: 0 if work() else 9)()"
# A user id that no passwd file knows, as containers have it.
NAMELESS = "import os; os.environ.pop('HOME', None); os.setuid(54321)\n"
NOBODY_LISTENS = "http://127.0.0.1:1/"


def said(code: str, environment: Mapping[str, str], under: Sequence[str] = ()) -> str:
    """Run what needs Spark or its jars as a command does; return the one line that it leaves on stderr."""
    settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    done = subprocess.run(
        [*under, sys.executable, "-c", code + RUN], env=settings, capture_output=True, text=True, timeout=400
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("mm2-migrate: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_a_cache_that_another_user_has_closed_is_named(cache: Path) -> None:
    give_away(cache)
    cache.chmod(0o700)
    told = said(JARS, {"MM2_MIGRATE_CACHE": str(cache)}, without_root_powers())
    assert f"The cache folder {cache} cannot be used: Permission denied." in told and "MM2_MIGRATE_CACHE" in told


def test_jars_that_may_not_be_looked_at_are_not_taken_for_none(cache: Path) -> None:
    from migrate.spark.jars import connector_coordinate

    jars = cache / "spark-kafka" / connector_coordinate().replace(":", "_")
    jars.mkdir(parents=True)
    jars.chmod(0o300)
    told = said(JARS, {"MM2_MIGRATE_CACHE": str(cache)}, without_root_powers())
    assert f"The cache folder {cache} cannot be used: Permission denied." in told


def test_a_read_only_cache_without_the_jars_is_named(cache: Path) -> None:
    cache.chmod(0o555)
    told = said(JARS, {"MM2_MIGRATE_CACHE": str(cache)}, without_root_powers())
    assert f"The cache folder {cache} cannot be used: Permission denied." in told and held(cache) == {}


def test_a_cache_on_a_full_disk_is_named_and_keeps_nothing_half_fetched(cache: Path) -> None:
    with small_disk(cache, 8):
        fill(cache)
        told = said(JARS, {"MM2_MIGRATE_CACHE": str(cache), "MM2_MIGRATE_MAVEN_REPOSITORY": NOBODY_LISTENS})
        assert f"The cache folder {cache} cannot be used: No space left on device." in told and "make room" in told
        assert [path.name for path in (cache / "spark-kafka").iterdir()] == ["fetch.lock"]


def test_a_cache_with_the_jars_but_no_place_for_the_log_says_only_that(cache: Path) -> None:
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    cache.chmod(0o555)
    told = said(SESSION, {"MM2_MIGRATE_CACHE": str(cache)}, without_root_powers())
    assert told.startswith(f"mm2-migrate: The log file {cache}/logs/spark-")
    assert "cannot be written: Permission denied." in told and "did not start" not in told


def test_a_user_without_a_home_is_asked_for_a_cache_folder() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become a user that no passwd file knows")
    code = "from migrate.spark.jars import cache_folder; import migrate.cli.console; work = cache_folder\n" + NAMELESS
    settings = {"MM2_MIGRATE_CACHE": "", "XDG_CACHE_HOME": ""}
    assert "This user has no home folder to keep the cache in. Name a cache folder with MM2_MIGRATE_CACHE." in said(
        code, settings
    )


def test_a_scratch_folder_that_takes_nothing_is_what_spark_failed_of_and_not_its_consequences(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    told = said(SESSION, {"SPARK_LOCAL_DIRS": str(tmp_path)}, without_root_powers())
    assert "Spark did not start: java.io.IOException: Failed to create a temp directory" in told
    assert "Make room in Spark's scratch" in told and "SPARK_LOCAL_DIRS" in told and "NullPointer" not in told


def test_a_full_scratch_folder_does_not_keep_spark_from_starting(tmp_path: Path) -> None:
    with small_disk(tmp_path, 8):
        fill(tmp_path)
        code = SESSION.replace("spark_session('local[1]')", "spark_session('local[1]').range(9).count() == 9")
        settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SPARK_LOCAL_DIRS": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code + RUN], env=settings, capture_output=True, text=True, timeout=400
        )
    assert (done.returncode, done.stderr) == (0, ""), done


def test_without_room_for_its_classes_a_run_ends_well_and_keeps_none(cache: Path) -> None:
    code = """
from pyspark import SparkContext
from migrate.spark.session import spark_session, stop_session
session = spark_session("local[1]", {}, small=True, records=True)
print(session.range(5).count())
machine = SparkContext._gateway.proc
stop_session(session, keep_classes=True)
machine.wait(200)
"""
    with small_disk(cache, 5000):
        (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
        settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "MM2_MIGRATE_CACHE": str(cache)}
        done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=400)
        assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
        assert not any(path.read_bytes()[:4].strip(b"\0") for path in (cache / "classes").iterdir())


def test_java_finds_the_jars_in_a_folder_whose_name_is_not_ascii_in_the_c_locale_too(tmp_path: Path) -> None:
    cache = tmp_path / "dépôt-日本"
    cache.mkdir()
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    code = (
        "from migrate.cli.console import take_utf8; take_utf8()\n"
        "from migrate.spark.machine import java_machine, stop_java_machine\n"
        "print(java_machine().java.lang.System.getProperty('sun.jnu.encoding')); stop_java_machine()"
    )
    settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=settings | {"MM2_MIGRATE_CACHE": str(cache)}, capture_output=True, text=True,
        timeout=400,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "UTF-8\n"), done

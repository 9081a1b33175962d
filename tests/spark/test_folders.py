"""Spark and its cache where a folder takes nothing: one paragraph that says which, why, and what to do."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from migrate.spark.jars import cache_folder, connector_coordinate
from tests.spark.processes import ran
from tests.unit.folders import fill, give_away, held, small_disk, without_root_powers

JARS = "from migrate.spark.jars import connector_jars; work = connector_jars"
SESSION = "from migrate.spark.session import spark_session; work = lambda: spark_session('local[1]')"
RUN = "\nfrom migrate.cli.console import one_paragraph\none_paragraph(lambda: 0 if work() else 9)()"
# A user id that no passwd file knows, as containers have it.
NAMELESS = "import os; os.environ.pop('HOME', None); os.setuid(54321)\n"
NOBODY_LISTENS = "http://127.0.0.1:1/"


def said(code: str, under: Sequence[str] = (), **environment: Path | str) -> str:
    """Run what needs Spark or its jars as a command does; return the one line that it leaves on stderr."""
    done = ran(code + RUN, under=under, **environment)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("mm2-migrate: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def closed_by_another_user(cache: Path) -> None:
    give_away(cache)
    cache.chmod(0o700)


def with_jars_that_may_not_be_listed(cache: Path) -> None:
    jars = cache / "spark-kafka" / connector_coordinate().replace(":", "_")
    jars.mkdir(parents=True)
    jars.chmod(0o300)


def read_only(cache: Path) -> None:
    cache.chmod(0o555)


@pytest.mark.parametrize("made", [closed_by_another_user, with_jars_that_may_not_be_listed, read_only])
def test_a_cache_that_may_not_be_used_is_named_and_keeps_nothing(cache: Path, made: Callable[[Path], None]) -> None:
    made(cache)
    told = said(JARS, without_root_powers(), MM2_MIGRATE_CACHE=cache)
    assert f"The cache folder {cache} cannot be used: Permission denied." in told and "MM2_MIGRATE_CACHE" in told
    assert held(cache) == {}


def test_a_cache_on_a_full_disk_is_named_and_keeps_nothing_half_fetched(cache: Path) -> None:
    with small_disk(cache, 8):
        fill(cache)
        told = said(JARS, MM2_MIGRATE_CACHE=cache, MM2_MIGRATE_MAVEN_REPOSITORY=NOBODY_LISTENS)
        assert f"The cache folder {cache} cannot be used: No space left on device." in told and "make room" in told
        assert [path.name for path in (cache / "spark-kafka").iterdir()] == ["fetch.lock"]


def test_a_cache_with_the_jars_but_no_place_for_the_log_says_only_that(cache: Path) -> None:
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    cache.chmod(0o555)
    told = said(SESSION, without_root_powers(), MM2_MIGRATE_CACHE=cache)
    assert told.startswith(f"mm2-migrate: The log file {cache}/logs/spark-")
    assert "cannot be written: Permission denied." in told and "did not start" not in told


def test_a_user_without_a_home_is_asked_for_a_cache_folder() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become a user that no passwd file knows")
    code = "from migrate.spark.jars import cache_folder; import migrate.cli.console; work = cache_folder\n" + NAMELESS
    told = said(code, MM2_MIGRATE_CACHE="", XDG_CACHE_HOME="")
    assert "This user has no home folder to keep the cache in. Name a cache folder with MM2_MIGRATE_CACHE." in told


def test_a_scratch_folder_that_takes_nothing_is_what_spark_failed_of_and_not_its_consequences(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    told = said(SESSION, without_root_powers(), SPARK_LOCAL_DIRS=tmp_path)
    assert "Spark did not start: java.io.IOException: Failed to create a temp directory" in told
    assert "Make room in Spark's scratch" in told and "SPARK_LOCAL_DIRS" in told and "NullPointer" not in told


def test_a_full_scratch_folder_does_not_keep_spark_from_starting(tmp_path: Path) -> None:
    with small_disk(tmp_path, 8):
        fill(tmp_path)
        code = SESSION.replace("spark_session('local[1]')", "spark_session('local[1]').range(9).count() == 9")
        done = ran(code + RUN, SPARK_LOCAL_DIRS=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.long
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
        done = ran(code, MM2_MIGRATE_CACHE=cache)
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
    done = ran(code, LC_ALL="C", MM2_MIGRATE_CACHE=cache)
    assert (done.returncode, done.stdout) == (0, "UTF-8\n"), done

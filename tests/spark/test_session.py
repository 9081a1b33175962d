"""Starting Spark: quiet when it works, one clear line when something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from migrate.spark import session
from migrate.spark.jars import cache_folder
from tests.lab.waiting import wait_until
from tests.spark.processes import with_our_package


def printed(code: str, *words: str | Path, folder: Path, **environment: str | Path) -> list[str]:
    """Run Python code in a folder; return its lines of stdout. It says nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *words], capture_output=True, text=True, timeout=900, cwd=folder,
        env=with_our_package() | {name: str(value) for name, value in environment.items()},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def cache_with_jars(folder: Path) -> Path:
    cache = folder / "my cache"  # its name needs quotes
    cache.mkdir()
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    return cache


LIVES = """
import os, sys
from pyspark import SparkContext
from migrate.spark import machine
from migrate.spark.background import background_spark
from migrate.spark.session import spark_session, stop_session
from migrate.text import many
from tests.lab.waiting import wait_until

def said(number):
    return many(number, "row")

# Ctrl-C, or a wrong password, need not wait until Spark has come up.
with background_spark("local[1]", {}):
    wait_until(lambda: SparkContext._gateway, 120, "a JVM")
    java = SparkContext._gateway.proc
print(java.poll() is not None, SparkContext._gateway, machine.log_file().exists())

# A command that fails, on a machine so busy that three seconds are too few for Spark's end.
machine.UNKEPT_SECONDS = 0
session = spark_session("local[1]", {"spark.pyspark.python": sys.argv[1]}, small=True, records=True)
print(session.sparkContext.pythonExec == sys.argv[1], "PYSPARK_PYTHON" in os.environ)
java = SparkContext._gateway.proc
stop_session(session)
print(java.poll() is not None)

# Once more, as in a notebook. Rows come back through a socket of the JVM's, and through a Python worker's.
session = spark_session("local[1]")
print(session.sparkContext.pythonExec == sys.executable, "PYSPARK_PYTHON" in os.environ)
print(session.sparkContext.parallelize([1, 2]).map(said).collect())
again = spark_session()
print(again.range(5).count(), again.conf.get("spark.sql.session.timeZone"), session.sparkContext.uiWebUrl)
log = machine.log_file()
stop_session(session)
stop_session(again)
print(log.exists())
"""


def test_spark_starts_is_broken_off_works_and_stops_without_a_word_or_a_trace_wherever_one_works(tmp_path, monkeypatch):
    """Also where folders have the names of packages, and Java prefers IPv6."""
    other, folder, scratch, cache = (
        tmp_path / "python",
        tmp_path / "folder",
        tmp_path / "tmp",
        cache_with_jars(tmp_path),
    )
    other.symlink_to(sys.executable)
    for name in ("migrate", "pyspark"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('not this one')")
    scratch.mkdir()
    options = "-XX:TieredStopAtLevel=1 -Djava.net.preferIPv6Addresses=true"
    said = printed(
        LIVES, other, folder=folder, TMPDIR=scratch, SPARK_LOCAL_DIRS=scratch, MM2_MIGRATE_CACHE=cache,
        SPARK_SUBMIT_OPTS=options,
    )  # fmt: skip
    broken_off, of_another_python, ended, of_ours, worked, again, logged = said
    assert (broken_off, ended, logged) == ("True None False", "True", "False")
    assert of_another_python == of_ours == "True False"
    assert (worked, again) == ("['1 row', '2 rows']", "5 UTC None")
    assert sorted(path.name for path in folder.iterdir()) == ["migrate", "pyspark"]
    assert list(scratch.iterdir()) == list((cache / "classes").iterdir()) == []


KEPT = """
import subprocess
import sys
from pyspark import SparkContext
from migrate.spark import machine
from migrate.spark.java import java_executable
from migrate.spark.session import spark_session, stop_session
conf = {"spark.hadoop.fs.s3a.secret.key": "hush-hush-hush"}
session = spark_session("local[2]", conf, small=True, records=True)
process = SparkContext._gateway.proc
jcmd = [str(java_executable().parent / "jcmd"), str(process.pid), "VM.log"]
subprocess.run([*jcmd, "output=loaded.txt", "what=class+load=info"], check=True, stdout=subprocess.DEVNULL)
print(session.range(5).count(), session.sparkContext.parallelize([1, 2]).map(lambda n: n + 1).collect())
words = list(session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
print([word.split("=")[0] for word in words if "Archive" in word])
stop_session(session, keep_classes=True)
print(process.poll() is None)
print(process.pid)
"""


def test_the_classes_of_a_start_are_kept_while_nobody_waits_and_the_next_one_takes_them(tmp_path, pytestconfig):
    cache = cache_with_jars(tmp_path)

    def start() -> tuple[str, str, int, int]:
        """Options of a start, whether its JVM outlived the command, and whence it had classes of Spark's parser."""
        worked, options, goes_on, process = printed(KEPT, folder=tmp_path, MM2_MIGRATE_CACHE=cache)
        assert worked == "5 [2, 3]" and list((cache / "logs").iterdir()) == []
        wait_until(lambda: not Path("/proc", process).exists(), 200, "the end of a JVM that keeps its classes")
        # jcmd keeps what it wrote before, under another name.
        assert {path.name for path in tmp_path.iterdir() if not path.name.startswith("loaded.txt")} == {"my cache"}
        # Most of these a JVM only loads to verify others.
        lines = [line for line in (tmp_path / "loaded.txt").read_text().splitlines() if "SqlBaseParser$" in line]
        counts = (sum(f"source: {where}" in line for line in lines) for where in ("file:", "shared objects file"))
        return options, goes_on, *counts

    options, goes_on, from_jars, from_archive = start()
    assert (options, goes_on, from_archive) == ("['-XX:ArchiveClassesAtExit']", "True", 0) and from_jars > 100
    (kept,) = (cache / "classes").iterdir()
    assert kept.stat().st_size > 10_000_000 and b"hush-hush" not in kept.read_bytes()
    options, goes_on, from_jars, from_archive = start()
    assert (options, goes_on, from_jars) == ("['-XX:SharedArchiveFile']", "False", 0) and from_archive > 10
    if not pytestconfig.getoption("--long"):
        return
    # One other byte, and the JVM does not take it.
    changed = bytearray(kept.read_bytes())
    changed[len(changed) // 2] ^= 1
    kept.chmod(0o600)
    kept.write_bytes(changed)
    options, goes_on, from_jars, from_archive = start()
    assert (options, goes_on, from_archive) == ("['-XX:SharedArchiveFile']", "False", 0) and from_jars > 100


UNWILLING = """
from migrate.spark import archive
from migrate.spark.session import spark_session, stop_session
# As if nobody had thought of it: the JVM itself does not start with an agent, where it is to write its classes.
archive._OWN = ()
session = spark_session("local[1]", {}, small=True, records=True)
print(session.range(5).count())
stop_session(session, keep_classes=True)
"""


def test_a_jvm_that_does_not_start_with_what_is_asked_of_it_starts_without(tmp_path):
    cache, agent = cache_with_jars(tmp_path), "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n"
    assert printed(UNWILLING, folder=tmp_path, MM2_MIGRATE_CACHE=cache, SPARK_SUBMIT_OPTS=agent) == ["5"]
    (refusal,) = (cache / "classes").iterdir()
    assert refusal.stat().st_size == 0


OF_THE_USER = """
from pyspark.sql import SparkSession
from migrate.spark.background import background_spark
from migrate.spark.session import spark_session, stop_session
from migrate.spark.session_settings import settings_of
mine = SparkSession.builder.config(map=settings_of("local[1]", {}, small=True)).getOrCreate()
mine.conf.set("spark.sql.ansi.enabled", "false")
with background_spark("local[1]", {}) as session:
    print(session().range(2).count())
    session.end_session()
ours = spark_session("local[1]")
print(ours.conf.get("spark.sql.ansi.enabled"), mine.conf.get("spark.sql.ansi.enabled"))
stop_session(ours)
print(mine.range(3).count(), mine.sparkContext.applicationId == ours.sparkContext.applicationId)
mine.stop()
"""


def test_a_spark_that_a_notebook_or_a_platform_has_started_goes_on_as_it_is_when_a_command_has_ended():
    done = subprocess.run(
        [sys.executable, "-c", OF_THE_USER], capture_output=True, text=True, timeout=180, env=with_our_package()
    )
    assert (done.returncode, done.stdout) == (0, "2\ntrue false\n3 True\n"), done.stderr


def test_an_interrupted_stop_still_ends_the_jvm(monkeypatch):
    ended = []

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "stop_spark", interrupted)
    monkeypatch.setattr(session, "stop_java_machine", lambda keep_classes: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        session.stop_session(None)
    assert ended == [True]

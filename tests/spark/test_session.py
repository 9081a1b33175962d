"""Starting Spark: quiet when it works, one clear line when something is missing."""

import sys
from pathlib import Path

import pytest

from migrate.spark import session
from migrate.spark.jars import cache_folder
from migrate.spark.session import spark_session
from tests.lab.waiting import wait_until
from tests.spark.processes import ran

WHOLE_LIVES = """
import os, sys
from pathlib import Path
from migrate.spark.machine import log_file
from migrate.spark.session import spark_session, stop_session
other = Path(sys.argv[1])
first = spark_session("local[1]", {"spark.pyspark.python": str(other)})
print(first.sparkContext.pythonExec == str(other), "PYSPARK_PYTHON" in os.environ)
stop_session(first)
session = spark_session("local[1]")
print(session.sparkContext.pythonExec == sys.executable, "PYSPARK_PYTHON" in os.environ)
again = spark_session()
print(again.range(5).count(), again.conf.get("spark.sql.session.timeZone"), session.sparkContext.uiWebUrl)
log = log_file()
stop_session(session)
stop_session(again)
print(log.exists())
"""


def test_spark_starts_works_and_stops_without_a_word_on_the_terminal_or_a_trace_in_the_folder(tmp_path, monkeypatch):
    """Twice, as in a notebook: the Python of one session is not that of the next."""
    other, folder = tmp_path / "python", tmp_path / "folder"
    other.symlink_to(sys.executable)
    folder.mkdir()
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    done = ran(WHOLE_LIVES, other, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "True False\nTrue False\n5 UTC None\nFalse\n"
    assert list(folder.iterdir()) == []


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
if sys.argv[1] == "leave":
    # As on a machine so busy that three seconds are too few for Spark's end.
    machine.UNKEPT_SECONDS = 0
stop_session(session, keep_classes=sys.argv[1] == "keep")
print(process.poll() is None)
print(process.pid)
"""


class Keeping:
    """Starts that may keep their classes, and the cache that these are kept in."""

    def __init__(self, folder: Path) -> None:
        # A folder whose name needs quotes.
        self.folder, self.cache = folder, folder / "my cache"
        self.cache.mkdir()
        (self.cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")

    def said(self, keep: str = "keep") -> str:
        """What a start says of its options, and whether its JVM goes on when the command ends; once that is gone."""
        done = ran(KEPT, keep, cwd=self.folder, MM2_MIGRATE_CACHE=self.cache)
        assert done.stderr == ""
        worked, *said, process = done.stdout.splitlines()
        assert worked == "5 [2, 3]" and list((self.cache / "logs").iterdir()) == []
        wait_until(lambda: not Path("/proc", process).exists(), 200, "the end of a JVM that keeps its classes")
        # jcmd keeps what it wrote before, under another name.
        left = {path.name for path in self.folder.iterdir() if not path.name.startswith("loaded.txt")}
        assert left == {"my cache"}
        return " ".join(said)

    def kept(self) -> list[Path]:
        return list((self.cache / "classes").iterdir())

    def loaded_from(self, where: str) -> int:
        """Classes of Spark's parser, most of which a JVM only loads to verify others."""
        lines = (self.folder / "loaded.txt").read_text().splitlines()
        return sum("SqlBaseParser$" in line and f"source: {where}" in line for line in lines)


def test_the_classes_of_a_start_are_kept_while_nobody_waits_and_the_next_one_takes_them(tmp_path):
    keeping = Keeping(tmp_path)
    assert keeping.said() == "['-XX:ArchiveClassesAtExit'] True"
    assert keeping.loaded_from("file:") > 100 and keeping.loaded_from("shared objects file") == 0
    (kept,) = keeping.kept()
    assert kept.stat().st_size > 10_000_000 and b"hush-hush" not in kept.read_bytes()
    assert keeping.said() == "['-XX:SharedArchiveFile'] False"
    assert keeping.loaded_from("file:") == 0 and keeping.loaded_from("shared objects file") > 10


@pytest.mark.long
def test_kept_classes_with_a_byte_changed_are_not_taken(tmp_path):
    keeping = Keeping(tmp_path)
    keeping.said()
    (kept,) = keeping.kept()
    changed = bytearray(kept.read_bytes())
    changed[len(changed) // 2] ^= 1
    kept.chmod(0o600)
    kept.write_bytes(changed)
    assert keeping.said() == "['-XX:SharedArchiveFile'] False"
    assert keeping.loaded_from("file:") > 100 and keeping.loaded_from("shared objects file") == 0


def test_a_command_that_fails_keeps_no_classes_and_nobody_waits_for_them(tmp_path):
    keeping = Keeping(tmp_path)
    assert keeping.said("leave") == "['-XX:ArchiveClassesAtExit'] False"
    assert keeping.kept() == []


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
    (tmp_path / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n"
    done = ran(UNWILLING, MM2_MIGRATE_CACHE=tmp_path, SPARK_SUBMIT_OPTS=agent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
    (refusal,) = (tmp_path / "classes").iterdir()
    assert refusal.stat().st_size == 0


BROKEN_OFF = """
from pathlib import Path
from pyspark import SparkContext
from migrate.spark.machine import log_file
from migrate.spark.background import background_spark
from tests.lab.waiting import wait_until
with background_spark("local[1]", {}):
    wait_until(lambda: SparkContext._gateway, 120, "a JVM")
    java = SparkContext._gateway.proc
print(java.poll() is not None, SparkContext._gateway, log_file().exists())
with background_spark("local[1]", {}) as session:
    print(session().range(3).count())
"""


def test_a_start_that_nobody_waits_for_is_broken_off_and_spark_can_be_started_again(tmp_path):
    """Ctrl-C, or a wrong password, need not wait until Spark has come up."""
    done = ran(BROKEN_OFF, TMPDIR=tmp_path, SPARK_LOCAL_DIRS=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "True None False\n3\n")
    assert list(tmp_path.iterdir()) == []


OF_THE_USER = """
from pyspark.sql import SparkSession
from migrate.spark.background import background_spark
from migrate.spark.session import spark_session, stop_session
from migrate.spark.session_settings import settings_of
mine = SparkSession.builder.config(map=settings_of("local[1]", {}, small=True)).getOrCreate()
with background_spark("local[1]", {}) as session:
    print(session().range(2).count())
    session.end_session()
ours = spark_session("local[1]")
stop_session(ours)
print(mine.range(3).count(), mine.sparkContext.applicationId == ours.sparkContext.applicationId)
mine.stop()
"""


def test_a_spark_that_a_notebook_or_a_platform_has_started_goes_on_when_a_command_has_ended():
    done = ran(OF_THE_USER)
    assert (done.returncode, done.stdout) == (0, "2\n3 True\n"), done.stderr


ELSEWHERE = """
from migrate.spark.session import spark_session, stop_session
from migrate.text import many
def said(number):
    return many(number, "row")
session = spark_session("local[1]")
# Rows that come back through a socket of the JVM's, and through a Python worker's.
print(session.sparkContext.parallelize([1, 2]).map(said).collect())
stop_session(session)
"""


def test_workers_import_what_this_process_does_wherever_somebody_works_and_are_found_by_a_java_that_prefers_ipv6(
    tmp_path,
):
    for name in ("migrate", "pyspark"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not this one')")
    done = ran(ELSEWHERE, cwd=tmp_path, JAVA_TOOL_OPTIONS="-Djava.net.preferIPv6Addresses=true")
    assert (done.returncode, done.stdout) == (0, "['1 row', '2 rows']\n"), done.stderr


def test_an_interrupted_stop_still_ends_the_jvm(monkeypatch):
    ended = []

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "stop_spark", interrupted)
    monkeypatch.setattr(session, "stop_java_machine", lambda keep_classes: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        session.stop_session(None)
    assert ended == [True]


def test_a_second_session_leaves_the_first_ones_settings_alone(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert spark_session().conf.get("spark.sql.ansi.enabled") == "true"
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")

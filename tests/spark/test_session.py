"""Starting Spark: quiet when it works, one clear line when something is missing."""

import os
import subprocess
import sys

import pytest

from migrate.errors import UsageError
from migrate.spark import session
from migrate.spark.jars import cache_folder
from migrate.spark.session import spark_session
from tests.spark.processes import with_our_package

WHOLE_LIFE = """
from migrate.spark.machine import log_file
from migrate.spark.session import spark_session, stop_session
session = spark_session("local[1]")
again = spark_session()
print(again.range(5).count(), again.conf.get("spark.sql.session.timeZone"), session.sparkContext.uiWebUrl)
log = log_file()
stop_session(session)
stop_session(again)
print(log.exists())
"""


def test_spark_starts_works_and_stops_without_a_word_on_the_terminal_or_a_trace_in_the_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WHOLE_LIFE], capture_output=True, text=True, timeout=180, cwd=tmp_path,
        env=with_our_package(),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "5 UTC None\nFalse\n"
    assert list(tmp_path.iterdir()) == []


KEPT = """
import subprocess
from migrate.spark.java import java_executable
from migrate.spark.machine import keep_classes
from migrate.spark.session import Start, spark_session, stop_session
session = spark_session("local[2]", {}, Start(small=True, records=True))
jcmd = [str(java_executable().parent / "jcmd"), str(session._jvm.java.lang.ProcessHandle.current().pid()), "VM.log"]
subprocess.run([*jcmd, "output=loaded.txt", "what=class+load=info"], check=True, stdout=subprocess.DEVNULL)
print(session.range(5).count(), session.sparkContext.parallelize([1, 2]).map(lambda n: n + 1).collect())
words = list(session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
print([word.split("=")[0] for word in words if "Archive" in word or "Record" in word])
keep_classes({"hush-hush"}, lambda: print("keeping"))
stop_session(session)
"""


def test_the_classes_of_a_start_are_kept_and_the_next_one_takes_them(tmp_path):
    # A folder whose name needs quotes.
    cache = tmp_path / "my cache"
    cache.mkdir()
    (cache / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    environment = with_our_package() | {"MM2_MIGRATE_CACHE": str(cache)}

    def said() -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path
        )
        return done.stdout, done.stderr

    def loaded_from(where: str) -> int:
        """Classes of Spark's parser, most of which a JVM only loads to verify others."""
        lines = (tmp_path / "loaded.txt").read_text().splitlines()
        return sum("SqlBaseParser$" in line and f"source: {where}" in line for line in lines)

    assert said() == ("5 [2, 3]\n['-XX:+RecordDynamicDumpInfo']\nkeeping\n", "")
    assert loaded_from("file:") > 100 and loaded_from("shared objects file") == 0
    (kept,) = (cache / "classes").iterdir()
    assert kept.stat().st_size > 10_000_000
    assert said() == ("5 [2, 3]\n['-XX:SharedArchiveFile']\n", "")
    assert loaded_from("file:") == 0 and loaded_from("shared objects file") > 10
    # A byte more, and it is not taken: what is recorded then takes its place.
    with kept.open("ab") as file:
        file.write(b"!")
    assert said()[0].endswith("keeping\n")
    assert said()[0].endswith("['-XX:SharedArchiveFile']\n")


UNWILLING = """
from migrate.spark import archive
from migrate.spark.machine import keep_classes
from migrate.spark.session import Start, spark_session, stop_session
# As if nobody had thought of it: the JVM itself refuses to record with an agent, and does not start.
archive._are_harmless = lambda options: True
session = spark_session("local[1]", {}, Start(small=True, records=True))
print(session.range(5).count())
keep_classes((), lambda: print("keeping"))
stop_session(session)
"""


def test_a_jvm_that_does_not_start_with_what_is_asked_of_it_starts_without(tmp_path):
    (tmp_path / "spark-kafka").symlink_to(cache_folder() / "spark-kafka")
    agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n"
    environment = with_our_package() | {"MM2_MIGRATE_CACHE": str(tmp_path), "SPARK_SUBMIT_OPTS": agent}
    done = subprocess.run(
        [sys.executable, "-c", UNWILLING], capture_output=True, text=True, timeout=300, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
    assert [path.suffix for path in (tmp_path / "classes").iterdir()] == [".refused"]


PREFER_IPV6 = """
from migrate.spark.session import spark_session, stop_session
session = spark_session("local[1]")
# Rows that come back through a socket of the JVM's, and through a Python worker's.
print(session.range(3).rdd.map(lambda row: row.id + 1).collect())
stop_session(session)
"""


def test_a_java_that_prefers_ipv6_is_found_by_python():
    environment = with_our_package() | {"JAVA_TOOL_OPTIONS": "-Djava.net.preferIPv6Addresses=true"}
    done = subprocess.run(
        [sys.executable, "-c", PREFER_IPV6], capture_output=True, text=True, timeout=180, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "[1, 2, 3]\n"), done.stderr


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
    temporary = {**with_our_package(), "TMPDIR": str(tmp_path), "SPARK_LOCAL_DIRS": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_OFF], capture_output=True, text=True, timeout=180, env=temporary
    )
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
    done = subprocess.run(
        [sys.executable, "-c", OF_THE_USER], capture_output=True, text=True, timeout=180, env=with_our_package()
    )
    assert (done.returncode, done.stdout) == (0, "2\n3 True\n"), done.stderr


ELSEWHERE = """
from migrate.session.clusters import DAEMON
from migrate.spark.session import Start, spark_session, stop_session
from migrate.text import many
def said(number):
    import pyspark
    return many(number, "row"), pyspark.__file__.count(".zip")
session = spark_session("local[1]", {}, Start(daemon=DAEMON))
print(session.sparkContext.parallelize([1, 2]).map(said).collect())
stop_session(session)
"""


def test_workers_import_what_this_process_does_whatever_lies_where_somebody_works(tmp_path):
    for name in ("migrate", "pyspark"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('not this one')")
    words = [sys.executable, "-P", "-c", ELSEWHERE]
    done = subprocess.run(words, capture_output=True, text=True, timeout=180, cwd=tmp_path, env=with_our_package())
    assert (done.returncode, done.stdout) == (0, "[('1 row', 0), ('2 rows', 0)]\n"), done.stderr


ONE_AFTER_ANOTHER = """
import os, sys
from pathlib import Path
from migrate.spark.session import spark_session, stop_session
other = Path(sys.argv[1], "python")
other.symlink_to(sys.executable)
for conf in ({"spark.pyspark.python": str(other)}, {}):
    session = spark_session("local[1]", conf)
    print(session.sparkContext.pythonExec == (str(other) if conf else sys.executable), "PYSPARK_PYTHON" in os.environ)
    stop_session(session)
"""


def test_the_python_of_one_session_is_not_that_of_the_next_as_in_a_notebook(tmp_path):
    environment = with_our_package()
    environment.pop("PYSPARK_PYTHON", None)
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, str(tmp_path)],
        capture_output=True, text=True, timeout=180, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True False\n" * 2), done.stderr


def test_a_plain_session_is_made_without_looking_for_extensions(spark):
    made = session._bare_session(spark.sparkContext)
    assert made.getClass().getName() == spark._jsparkSession.getClass().getName()
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert "Platform" not in loader.getClass().getName()


def test_an_interrupted_stop_still_ends_the_jvm(monkeypatch):
    ended = []

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "stop_spark", interrupted)
    monkeypatch.setattr(session, "stop_java_machine", lambda: ended.append(True))
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


def test_a_master_that_contradicts_the_configured_one_is_refused():
    code = "from migrate.spark.session import spark_session; spark_session('local[1]')"
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": "--master spark://elsewhere:7077 pyspark-shell"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert UsageError.__name__ in done.stderr
    assert "spark://elsewhere:7077" in done.stderr

"""Starting Spark: quiet when it works, one clear line when something is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.errors import UsageError
from migrate.spark.jars import cache_folder
from migrate.spark.session import spark_session
from tests.lab.waiting import wait_until

pytestmark = pytest.mark.spark

WHOLE_LIFE = """
from migrate.spark.session import log_file, spark_session, stop_session
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
from migrate.spark.session import keep_classes, spark_session, stop_session
session = spark_session("local[2]", {}, small=True, recording=True)
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
            [sys.executable, "-c", KEPT], capture_output=True, text=True, timeout=300, env=environment
        )
        return done.stdout, done.stderr

    assert said() == ("5 [2, 3]\n['-XX:+RecordDynamicDumpInfo']\nkeeping\n", "")
    (kept,) = (cache / "classes").iterdir()
    assert kept.stat().st_size > 10_000_000
    assert said() == ("5 [2, 3]\n['-XX:SharedArchiveFile']\n", "")
    # A byte more, and it is not taken: what is recorded then takes its place.
    with kept.open("ab") as file:
        file.write(b"!")
    assert said()[0].endswith("keeping\n")
    assert said()[0].endswith("['-XX:SharedArchiveFile']\n")


UNWILLING = """
from migrate.spark import archive
from migrate.spark.session import keep_classes, spark_session, stop_session
# As if nobody had thought of it: the JVM itself refuses to record with an agent, and does not start.
archive._are_harmless = lambda options: True
session = spark_session("local[1]", {}, small=True, recording=True)
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
from migrate.spark.session import log_file
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


# Runs `then` once the main thread waits for an answer of the JVM that never comes.
HANGING = """
import os, signal, threading
from migrate.spark.session import java_machine
jvm = java_machine()
pid = jvm.java.lang.ProcessHandle.current().pid()
barrier = jvm.java.util.concurrent.Semaphore(0)
def once_waiting(then):
    def watch():
        while barrier.getQueueLength() == 0:
            threading.Event().wait(0.05)
        then()
    threading.Thread(target=watch, daemon=True).start()
"""
KILLED = """
once_waiting(lambda: print(pid, flush=True))
barrier.acquire()
"""
INTERRUPTED = """
from migrate.cli.console import one_paragraph
once_waiting(lambda: os.kill(os.getpid(), signal.SIGINT))
one_paragraph(barrier.acquire)()
"""
JVM_DIES = """
from migrate.cli.console import one_paragraph
from migrate.spark.background import background_spark
from migrate.spark.session import java_machine, stop_java_machine
def command():
    with background_spark("local[1]", {}) as session:
        session()
        once_waiting(lambda: os.kill(pid, signal.SIGKILL))
        barrier.acquire()
try:
    one_paragraph(command)()
except SystemExit as end:
    print(end.code, java_machine().java.lang.Integer.MAX_VALUE)
stop_java_machine()
"""
CRASHED = """
once_waiting(lambda: os.kill(pid, signal.SIGSEGV))
try:
    barrier.acquire()
except Exception:
    pass
from pyspark import SparkContext
print(SparkContext._gateway.proc.wait())
"""


def hanging(code: str, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    # Who has core dumps on gets none of ours.
    words = ["sh", "-c", 'ulimit -c unlimited 2>/dev/null; exec "$0" "$@"', sys.executable, "-c", HANGING + code]
    return subprocess.run(words, capture_output=True, text=True, timeout=180, cwd=folder, env=with_our_package())


def with_our_package() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_the_jvm_ends_with_the_process_that_it_works_for_however_that_ends():
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING + KILLED], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        jvm = int(process.stdout.readline())
        # What a terminal tells its processes does not reach it, and still it is not left behind.
        assert os.getsid(jvm) != os.getsid(process.pid)
        java = Path("/proc", str(jvm))
        assert java.exists()
    finally:
        process.kill()
        process.communicate()
    wait_until(lambda: not java.exists(), 60, f"the end of {java}")


def test_ctrl_c_while_the_jvm_is_awaited_is_one_clear_line():
    done = hanging(INTERRUPTED)
    assert done.returncode == 1
    assert done.stderr.startswith("mm2-migrate: Interrupted. Run the same command again")
    assert done.stderr.count("\n") == 1


def test_a_jvm_that_dies_under_a_command_is_one_paragraph_and_another_can_be_started():
    done = hanging(JVM_DIES)
    assert re.fullmatch(r"mm2-migrate: The JVM .* ended by SIGKILL, before it had answered\. Run .*\n", done.stderr)
    assert done.stdout == "1 2147483647\n"


def test_a_jvm_that_crashes_leaves_no_file_with_its_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = hanging(CRASHED, tmp_path)
    assert int(done.stdout) != 0, done
    assert [path.name for path in tmp_path.rglob("*") if re.match("hs_err|core|java", path.name)] == []


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

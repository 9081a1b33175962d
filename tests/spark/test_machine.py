"""The JVM that we start: it ends with this process, and whatever becomes of it is one paragraph at most."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.lab.waiting import wait_until
from tests.spark.processes import ran

# Runs `then` once the main thread waits for an answer of the JVM that never comes.
HANGING = """
import os, signal, threading
from migrate.spark.machine import java_machine
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
    return ran(HANGING + code, under=["sh", "-c", 'ulimit -c unlimited 2>/dev/null; exec "$0" "$@"'], cwd=folder)


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


def test_a_jvm_that_crashes_leaves_no_file_with_its_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = hanging(CRASHED, tmp_path)
    assert int(done.stdout) != 0, done
    assert [path.name for path in tmp_path.rglob("*") if re.match("hs_err|core|java", path.name)] == []

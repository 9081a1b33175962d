"""A process whose Spark runs already, and that runs one command after another, as a notebook does.

A JVM and Spark take two thirds of what a small plan costs. The Spark is none of the product's own: as in a notebook, it
goes on when a command ends. Its JVM stays in the folder where it began: what Spark itself reads is to be named in full.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

# Of a JVM that is asked to end.
ENDING_SECONDS = 30


class WarmProcess:
    """Runs commands in one process of this worker's, which the first of them starts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._turn = Lock()

    def run(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], deadline_seconds: float
    ) -> tuple[int, str, str]:
        """Run a command in `folder`, with this environment; return its exit code, stdout and stderr.

        Raises AssertionError when the deadline passes, or the process ends: the next command has a new one.
        """
        with self._turn, tempfile.TemporaryDirectory() as kept:
            out, errors = Path(kept, "stdout"), Path(kept, "stderr")
            asked = {"words": [*words], "folder": str(folder), "environment": environment}
            process = self._process = self._process or _started(environment)
            assert process.stdin is not None and process.stdout is not None
            clock = Timer(deadline_seconds, os.killpg, (process.pid, signal.SIGKILL))
            clock.start()
            try:
                process.stdin.write(json.dumps({**asked, "stdout": str(out), "stderr": str(errors)}) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            finally:
                clock.cancel()
            said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, errors)]
            if not answer:
                self._process = None
                process.wait()
                raise AssertionError(f"{' '.join(words)} did not end within {deadline_seconds:g} s\n{said}")
            return int(answer), said[0], said[1]

    def close(self) -> None:
        """End the process, and its Spark with it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()


def _started(environment: Mapping[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


WARM = WarmProcess()
atexit.register(WARM.close)


def serve() -> None:
    """Run the commands that stdin asks for, a line of JSON each; answer each with a line of its exit code."""
    asking, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    spark = _spark()
    for line in asking:
        code = _run(**json.loads(line))
        answers.write(f"{code}\n")
        answers.flush()
    spark.stop()


def _spark() -> Any:
    """Start Spark as the product does for small topics, but as a caller's own, which the product leaves alone."""
    from pyspark.sql import SparkSession

    from migrate.spark.session_settings import pyspark_python, settings_of

    settings = settings_of("local[*]", {}, small=True)
    with pyspark_python(settings):
        return SparkSession.builder.config(map=dict(settings)).getOrCreate()


def _run(words: list[str], folder: str, environment: dict[str, str], stdout: str, stderr: str) -> int:
    from migrate.cli.console import escape_what_output_lacks, exit_code_of, print_lines
    from migrate.cli.main import cli

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["mm2-migrate", *words]
    with Path(stdout).open("w", encoding="utf-8") as out, Path(stderr).open("w", 1, encoding="utf-8") as errors:
        # What C code and children write is the command's as well.
        for number, stream in ((1, out), (2, errors)):
            os.dup2(stream.fileno(), number)
        sys.stdout, sys.stderr = out, errors
        escape_what_output_lacks()
        try:
            return exit_code_of(cli)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        except BaseException:
            traceback.print_exc()
            return 1
        finally:
            print_lines(())  # ends a progress that still runs: the end of a process would
            out.flush()
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


if __name__ == "__main__":
    serve()

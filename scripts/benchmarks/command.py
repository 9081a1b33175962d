"""A whole command, measured from its start to its exit: seconds, CPU seconds, memory, and what it said when."""

import os
import re
import resource
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.memory import resident

SAMPLE_SECONDS = 0.2
STEP = re.compile(r"\[ *([0-9.]+) s\] (.+)")
TREE = Path(__file__).parents[2]
# What kafka-run-class.sh gives Kafka's tools beside 256 MiB: long runs gain by the compiler that warms up slowly.
TOOL_FLAGS = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")


@dataclass(frozen=True)
class Measured:
    """`cpu` counts every process that the command started and waited for; `peak_bytes` is of the largest moment, by
    kind of process; `driver_peak_bytes` is the most of the command's own process; `steps` are what it announced, with
    the seconds until the next one."""

    seconds: float
    cpu: float
    exit_code: int
    peak_bytes: dict[str, int]
    driver_peak_bytes: int
    steps: list[tuple[str, float]]


def ours(*words: str) -> list[str]:
    """The words that run a command of the product."""
    return [sys.executable, "-m", "migrate", *words]


def measured(command: Sequence[str], folder: Path, tree: Path = TREE) -> Measured:
    """Run a command with the product of a tree; raises `RuntimeError` where it fails."""
    errors, out = folder / "command.err", folder / "command.out"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with errors.open("wb") as stderr, out.open("wb") as stdout:
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=stdout, stderr=stderr)
        peak = Peak(process.pid)
        code = process.wait()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    said = errors.read_text(errors="replace")
    # 1 and 3: something was found, and is reported.
    if code not in (0, 1, 3) or "mm2-migrate: " in said:
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{said}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(seconds, cpu, code, *peak.ended(), _steps(said, seconds))


def _steps(said: str, seconds: float) -> list[tuple[str, float]]:
    starts: list[tuple[float, str]] = []
    for line in said.splitlines():
        step = STEP.match(line)
        # A step that goes on is told again, as "text: N s so far".
        if step and not (starts and step[2].startswith(starts[-1][1])):
            starts.append((float(step[1]), step[2]))
    ends = [start for start, _ in starts[1:]] + [seconds] * bool(starts)
    return [(text, end - start) for (start, text), end in zip(starts, ends, strict=True)]


class Peak:
    """Samples the resident memory of a process and all below it, by kind: JVM, Python workers, the command itself."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._most: dict[str, int] = {}
        self._most_of_driver = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def ended(self) -> tuple[dict[str, int], int]:
        """Stop, and return bytes by kind at the moment when they were most together, and the most of the command."""
        self._over.set()
        self._thread.join()
        return self._most, self._most_of_driver

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            now = self._now()
            if sum(now.values()) > sum(self._most.values()):
                self._most = now
            self._most_of_driver = max(self._most_of_driver, now.get("driver", 0))

    def _now(self) -> dict[str, int]:
        children: dict[int, list[int]] = defaultdict(list)
        names: dict[int, str] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                head, _, rest = stat.read_text().rpartition(")")
            except OSError:
                continue
            pid = int(stat.parent.name)
            children[int(rest.split()[1])].append(pid)
            names[pid] = head.partition("(")[2]
        found: dict[str, int] = defaultdict(int)
        below = [(self._root, "driver")]
        for pid, kind in below:
            found[kind] += resident(pid)
            for child in children[pid]:
                in_jvm = kind in ("JVM", "workers")
                below.append((child, "JVM" if names[child] == "java" else "workers" if in_jvm else "clients"))
        return dict(found)

"""A whole command, measured from its start to its exit: seconds, CPU seconds, memory, and what it said when."""

import json
import os
import re
import resource
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from scripts.benchmarks.memory import resident

SAMPLE_SECONDS = 0.2
STEP = re.compile(r"\[ *([0-9.]+) s\] (.+)")
TREE = Path(__file__).resolve().parents[2]
MEBIBYTE = 1 << 20
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
    """The words that run a command of this tree's product."""
    return of_tree(TREE, *words)


def of_tree(tree: Path, *words: str) -> list[str]:
    """The words that run a command of a tree's product, as it is installed in the tree's own `.venv`."""
    return [str(tree / ".venv" / "bin" / "python"), "-m", "migrate", *words]


def trees(against: Path | None) -> dict[str, Path]:
    """Return this tree and the other, ready to run; raises `RuntimeError` if one would run another tree's product."""
    found = {"ours": TREE} | ({"against": against} if against else {})
    for name, tree in found.items():
        # With the tools of tests, as ours: Spark imports pandas where it is, which takes time and memory.
        subprocess.run([str(tree / "scripts" / "setup")], env=_environment(), check=True)
        python = str(tree / ".venv" / "bin" / "python")
        # -P: the folder in which the benchmark was started may itself have a product.
        asked = [python, "-P", "-c", "import migrate; print(migrate.__path__[0])"]
        told = subprocess.run(asked, env=_environment(), check=True, stdout=subprocess.PIPE, text=True)
        package = Path(told.stdout.strip())
        if package.resolve().parent != tree:
            raise RuntimeError(f"the commands of {tree} would run the product in {package}")
        # Or a tree that never ran compiles its modules while it is measured.
        subprocess.run([python, "-m", "compileall", "-q", str(package)], check=True)
        print(f"{name}: {package}", flush=True)
    return found


def in_turns(trees: Mapping[str, Path], rounds: int) -> Iterator[tuple[str, Path]]:
    """Yield each tree in each round, every other round backwards: brokers are quicker with what they did before."""
    for number in range(rounds):
        yield from reversed(list(trees.items())) if number % 2 else trees.items()


def _environment() -> dict[str, str]:
    # scripts/bench puts this tree on it, and another tree's Python would take our product from there.
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def measured(command: Sequence[str], folder: Path, expected: Collection[int] = (0,)) -> Measured:
    """Run a command in a folder; raises `RuntimeError` where it ends with another exit code than expected.

    What it prints is in the folder's `command.out` afterwards.
    """
    errors, out = folder / "command.err", folder / "command.out"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with errors.open("wb") as stderr, out.open("wb") as stdout:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        peak = Peak(process.pid)
        code = process.wait()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    said = errors.read_text(errors="replace")
    if code not in expected or "mm2-migrate: " in said:
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{said}\n{out.read_text(errors='replace')[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(seconds, cpu, code, *peak.ended(), _steps(said, seconds))


def shown(tree: Path, plan: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a plan's header, which has its fingerprint, and then its rows, as the tree that made it shows them."""
    measured(of_tree(tree, "show", plan, "--format", "jsonl"), folder)
    with (folder / "command.out").open() as lines:
        yield from map(json.loads, lines)


def compare(taken: Mapping[str, Mapping[str, Sequence[Measured]]]) -> None:
    """Print each command's quickest run with each tree, and how much of the other's this tree takes.

    `taken` is by command, then by tree. Of a run that ends before its memory is sampled, none is printed.
    """
    names = list(dict.fromkeys(name for runs in taken.values() for name in runs))
    heads = "".join(f"{name + ' s':>11}{'CPU':>7}{'MiB':>7}" for name in names)
    print(f"\n{'':22}{heads}" + (f"{'ratio':>9}{'CPU':>7}{'MiB':>7}" if names[1:] else ""))
    for command, runs in taken.items():
        best = [min(each, key=attrgetter("seconds")) for each in runs.values()]
        cells = [(each.seconds, each.cpu, sum(each.peak_bytes.values()) / MEBIBYTE) for each in best]
        line = "".join(
            f"{seconds:11.2f}{cpu:7.1f}{memory or '-':>7{',.0f' if memory else ''}}" for seconds, cpu, memory in cells
        )
        if cells[1:]:
            seconds, cpu, memory = (mine / theirs if theirs else 0.0 for mine, theirs in zip(*cells, strict=True))
            line += f"{seconds:9.2f}{cpu:7.2f}{memory or '-':>7{'.2f' if memory else ''}}"
        print(f"{command:22}{line}")
    print("The quickest run of each" + ("; ratio: ours / against's." if names[1:] else "."), flush=True)


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

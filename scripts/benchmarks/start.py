"""How soon a command answers on a small scene: ours, those of another tree, and kafka-consumer-groups, in turns."""

import tempfile
from pathlib import Path
from statistics import median

from scripts.benchmarks.command import TREE, Measured, measured, ours
from scripts.benchmarks.eve import SMALL, Eve, Stage, on_stage
from tests.lab.process import java_command

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PLAN = "small.plan"


def measure(rounds: int, against: Path | None) -> None:
    """Run every command so many times, and print medians; the plan before the first is not counted."""
    trees = {"ours": TREE} | ({"against": against} if against else {})
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder, on_stage(Eve(SMALL), Path(folder)) as stage:
        taken: dict[tuple[str, str], list[Measured]] = {}
        for number in range(rounds + 1):
            for tree_name, tree in trees.items():
                for name, command in commands(stage).items():
                    at = stage.folder / tree_name
                    at.mkdir(exist_ok=True)
                    done = measured(command, at, tree)
                    if number:
                        taken.setdefault((name, tree_name), []).append(done)
                    elif name == "plan":
                        print(f"first plan, {tree_name}: {done.seconds:.1f} s, {done.cpu:.1f} s CPU", flush=True)
            tool = measured(java_command(stage.source.jars, GROUPS_TOOL, *tool_words(stage)), stage.folder)
            if number:
                taken.setdefault(("kafka-consumer-groups", "ours"), []).append(tool)
        report(taken, list(trees), rounds)


def commands(stage: Stage) -> dict[str, list[str]]:
    """The commands in the order in which they need each other."""
    settle = ("--settle", "1")
    return {
        "plan": ours("plan", *stage.words, *settle, "--out", PLAN),
        "status": ours("status", *stage.words, *settle),
        "doctor": ours("doctor", *stage.words),
        "show": ours("show", PLAN),
        "verify": ours("verify", PLAN, *stage.words),
        "--help": ours("--help"),
    }


def tool_words(stage: Stage) -> tuple[str, ...]:
    return "--bootstrap-server", stage.source.bootstrap, "--describe", "--all-groups"


def report(taken: dict[tuple[str, str], list[Measured]], trees: list[str], rounds: int) -> None:
    """Print seconds and CPU seconds, and how they compare."""
    print(f"\n{SMALL} rows, medians of {rounds} rounds; seconds, and CPU seconds of all processes")
    print(
        f"{'':24}"
        + "".join(f"{tree + ' s':>12}{'CPU':>8}" for tree in trees)
        + ("   ratio     CPU" if trees[1:] else "")
    )
    for name in dict.fromkeys(name for name, _ in taken):
        cells = [(median(m.seconds for m in each), median(m.cpu for m in each))
                 for tree in trees if (each := taken.get((name, tree)))]  # fmt: skip
        ratio = f"{cells[1][0] / cells[0][0]:8.1f}{cells[1][1] / cells[0][1]:8.1f}" if len(cells) > 1 else ""
        print(f"{name:24}" + "".join(f"{seconds:12.1f}{cpu:8.1f}" for seconds, cpu in cells) + ratio)
    plan, status = (median(m.seconds for m in taken[name, "ours"]) for name in ("plan", "status"))
    print(f"\nplan takes {plan / status:.1f} times as long as status")

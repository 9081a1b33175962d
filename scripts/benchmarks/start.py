"""How soon a command answers on a small scene: ours, those of another tree, and kafka-consumer-groups, in turns."""

import tempfile
from collections import defaultdict
from pathlib import Path

from scripts.benchmarks.command import Measured, compare, in_turns, measured, of_tree, trees
from scripts.benchmarks.eve import SMALL, Eve, Stage, on_stage
from tests.lab.process import java_command

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PLAN = "small.plan"
# What these find they report by their exit code: a plan that is not applied does not verify.
EXPECTED = {"doctor": (0, 1, 3), "verify": (1, 3)}


def measure(rounds: int, against: Path | None) -> None:
    """Run every command so many times, and print the quickest; those before the first round are not counted."""
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder_name:
        folder, checkouts = Path(folder_name), trees(against)
        with on_stage(Eve.of(SMALL), folder) as stage:
            for tree_name, tree in checkouts.items():
                (folder / tree_name).mkdir()
                for command, words in commands(stage).items():
                    done = measured(of_tree(tree, *words), folder / tree_name, EXPECTED.get(command, (0,)))
                    if command == "plan":
                        print(f"first plan, {tree_name}: {done.seconds:.1f} s, {done.cpu:.1f} s CPU", flush=True)
            taken: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: {name: [] for name in checkouts})
            tool: list[Measured] = []
            for tree_name, tree in in_turns(checkouts, rounds):
                for command, words in commands(stage).items():
                    done = measured(of_tree(tree, *words), folder / tree_name, EXPECTED.get(command, (0,)))
                    taken[command][tree_name].append(done)
                tool.append(measured(java_command(stage.source.jars, GROUPS_TOOL, *tool_words(stage)), folder))
            print(f"\n{stage.eve.rows} rows, {rounds} rounds; kafka-consumer-groups beside them", end="")
            compare(taken)
            compare({"kafka-consumer-groups": {"Kafka's": tool}})


def commands(stage: Stage) -> dict[str, tuple[str, ...]]:
    """The words of the commands, in the order in which they need each other."""
    settle = ("--settle", "1")
    return {
        "plan": ("plan", *stage.words, *settle, "--out", PLAN),
        "status": ("status", *stage.words, *settle),
        "doctor": ("doctor", *stage.words),
        "show": ("show", PLAN),
        "verify": ("verify", PLAN, *stage.words),
        "--help": ("--help",),
    }


def tool_words(stage: Stage) -> tuple[str, ...]:
    return "--bootstrap-server", stage.source.bootstrap, "--describe", "--all-groups"

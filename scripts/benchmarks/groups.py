"""How fast all groups of a cluster are listed and described, beside `kafka-consumer-groups --describe --all-groups`.

Whole commands on one broker in one run, in turns. Every group has committed on every partition of one topic. The tool
prints a line for each partition, as `groups describe` does; `groups list` reads the same and adds it up.
"""

import tempfile
import time
from pathlib import Path
from statistics import median

from scripts.benchmarks.bare import bare_client, commit_all, committed_count
from scripts.benchmarks.command import TOOL_FLAGS, Measured, measured, ours
from scripts.benchmarks.start import GROUPS_TOOL
from tests.integration.madeplan import options_for
from tests.lab.cluster import Cluster
from tests.lab.jars import DEFAULT_VERSION
from tests.lab.process import java_command

TOPIC = "orders"
TOOL = "kafka-consumer-groups"
TOOL_TIMEOUT_MS = "600000"


def measure(groups: int, partitions: int, rounds: int) -> None:
    """Start a broker, commit for all groups, run the commands in turns, and print a table."""
    with tempfile.TemporaryDirectory(prefix="mm2-bench-") as name:
        folder = Path(name)
        cluster = Cluster("bench", folder / "broker")
        try:
            print(f"Starting a broker, Kafka {DEFAULT_VERSION}, with {groups:,} groups ...", flush=True)
            cluster.start()
            cluster.create_topic(TOPIC, partitions)
            names = [f"group-{number:05d}" for number in range(groups)]
            commit_all(cluster.bootstrap, {name: {(TOPIC, p): 1 for p in range(partitions)} for name in names})
            commands = commands_of(cluster, folder)
            taken: dict[str, list[Measured]] = {command: [] for command in commands}
            alone: list[float] = []
            for number in range(rounds):
                for command, words in commands.items():
                    done = measured(words, folder)
                    lines = (folder / "command.out").read_bytes().count(b"\n")
                    taken[command].append(done)
                    print(f"round {number + 1}: {command} {done.seconds:.1f} s, {lines:,} lines", flush=True)
                    check(command, lines, groups, partitions)
                alone.append(bare(cluster.bootstrap, names, partitions))
            report(taken, alone, groups, partitions)
        finally:
            cluster.stop()


def commands_of(cluster: Cluster, folder: Path) -> dict[str, list[str]]:
    """The commands, ours first."""
    options = options_for(folder, cluster.bootstrap)
    tool = ("--bootstrap-server", cluster.bootstrap, "--describe", "--all-groups", "--timeout", TOOL_TIMEOUT_MS)
    return {
        "groups list": ours("groups", "list", "--side", "target", *options),
        "groups describe": ours("groups", "describe", "--all-groups", "--side", "target", *options),
        TOOL: java_command(cluster.jars, GROUPS_TOOL, *tool, jvm_flags=TOOL_FLAGS),
    }


def check(command: str, lines: int, groups: int, partitions: int) -> None:
    """Raise `RuntimeError` where a command has left something out: being fast with less is no feat."""
    least = groups if command == "groups list" else groups * partitions
    if lines < least:
        raise RuntimeError(f"{command} listed {lines:,} of {least:,}")


def bare(bootstrap: str, groups: list[str], partitions: int) -> float:
    """Return the seconds that a bare client takes to read what all groups have committed, and nothing else."""
    client = bare_client(bootstrap)
    began = time.perf_counter()
    found = committed_count(client, groups)
    seconds = time.perf_counter() - began
    check("the bare client", found, len(groups), partitions)
    return seconds


def report(taken: dict[str, list[Measured]], bare_seconds: list[float], groups: int, partitions: int) -> None:
    """Print medians, how many times as long the tool takes, and how long the reading of commits alone."""
    theirs, alone = median(each.seconds for each in taken[TOOL]), median(bare_seconds)
    rounds = len(taken[TOOL])
    print(f"\n{groups:,} groups x {partitions} partitions, medians of {rounds} rounds, whole commands")
    print(f"{'':24}{'seconds':>9}{'CPU s':>9}{'MiB':>8}{'ratio':>8}{'bare':>8}")
    for command, each in taken.items():
        seconds, cpu = median(m.seconds for m in each), median(m.cpu for m in each)
        memory = median(sum(m.peak_bytes.values()) for m in each) / 2**20
        print(f"{command:24}{seconds:9.1f}{cpu:9.1f}{memory:8.0f}{theirs / seconds:8.1f}{seconds / alone:8.2f}")
    print(
        f"\nratio: Kafka's time / its own. bare: its own time / {alone:.1f} s, which confluent-kafka takes to read the "
        "commits alone, a request for each group."
    )

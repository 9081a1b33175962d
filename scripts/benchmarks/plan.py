"""Where the seconds of a plan go, by the steps that it announces itself, beside the same work made bare."""

import tempfile
import time
from pathlib import Path

import fastavro
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from scripts.benchmarks.apply import LONGEST, in_window
from scripts.benchmarks.command import TREE, Measured, measured, ours
from scripts.benchmarks.eve import Eve, Stage, on_stage

PLAN = "eve.plan"
# What each part's announcements begin with.
PARTS = {
    "start": ("reaching", "waiting for Spark", "ending Spark", "keeping"),
    "listing": ("listing", "describing", "asking", "looking"),
    "commits": ("reading commits",),
    "settling": ("waiting",),
    "syncs": ("reading MM2's offset syncs", "reading MM2's own positions", "pinning"),
    "matching": ("finding out", "comparing"),
    "checkpoints": ("reading MM2's checkpoints",),
    "deciding": ("deciding",),
    "writing": ("writing",),
}


def measure(sizes: list[int], against: Path | None) -> None:
    """Make one plan of each size with each tree, and print a line for each."""
    trees = {"ours": TREE} | ({"against": against} if against else {})
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder, on_stage(Eve(rows), Path(folder)) as stage:
            for name, tree in trees.items():
                at = stage.folder / name
                at.mkdir()
                done = measured(ours("plan", *stage.words, "--settle", "1", "--out", PLAN), at, tree)
                print(line(name, rows, done), flush=True)
            rivals(stage)


def line(name: str, rows: int, done: Measured) -> str:
    """Return seconds by part, and the most memory that was taken at any moment."""
    parts = dict.fromkeys((*PARTS, "other"), 0.0)
    for text, seconds in done.steps:
        fits = (part for part, begins in PARTS.items() if text.startswith(begins))
        parts[next(fits, "other")] += seconds
    told = ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items() if seconds >= 0.05)
    memory = ", ".join(f"{kind} {size / 2**20:,.0f}" for kind, size in sorted(done.peak_bytes.items()))
    return f"{name:8}{rows:>10,} rows {done.seconds:7.1f} s, CPU {done.cpu:.1f} s: {told}; MiB at most: {memory}"


def rivals(stage: Stage) -> None:
    """Read the same commits with a bare client, and the same plan file with fastavro alone."""
    client = AdminClient({"bootstrap.servers": stage.source.bootstrap, "log_level": 0})
    began = time.perf_counter()
    answers = in_window(
        stage.eve.groups,
        lambda group: client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], require_stable=True, request_timeout=LONGEST
        )[group],
    )
    assert sum(len(answer.topic_partitions) for answer in answers) == stage.eve.rows
    print(f"bare    {stage.eve.rows:>10,} commits read in {time.perf_counter() - began:.1f} s by confluent-kafka alone")
    path = stage.folder / "ours" / PLAN
    began = time.perf_counter()
    with path.open("rb") as file:
        records = sum(1 for _ in fastavro.reader(file))
    seconds = time.perf_counter() - began
    print(f"bare    {records:>10,} records of the plan file read in {seconds:.1f} s by fastavro alone", flush=True)

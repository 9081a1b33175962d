"""Where the seconds of a plan go, and of the commands after it, beside the same work made bare."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

import fastavro
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from migrate.plan.file import ROW_SCHEMA_FIELDS, read_plan, stored_fingerprint, write_plan
from migrate.row_table import row_document
from scripts.benchmarks.apply import LONGEST, in_window
from scripts.benchmarks.command import TREE, Measured, measured, ours
from scripts.benchmarks.eve import Eve, Stage, on_stage

PLAN = "eve.plan"
# What each part's announcements begin with.
PARTS = {
    "start": ("reaching", "starting Spark", "waiting for Spark", "ending Spark", "keeping"),
    "listing": ("listing", "describing", "asking", "looking"),
    "commits": ("reading commits",),
    "settling": ("waiting",),
    "syncs": ("reading MM2's offset syncs", "reading MM2's own positions", "pinning"),
    "matching": ("finding out", "comparing"),
    "checkpoints": ("reading MM2's checkpoints",),
    "deciding": ("deciding",),
    "writing": ("writing",),
}


def measure(sizes: list[int], against: Path | None, rounds: int) -> None:
    """Make one plan of each size with each tree, run the commands that follow it, and print a line for each.

    These are run `rounds` times, and the trees change their order each time, for brokers are quicker with what they
    have done before. The quickest time of a command counts.
    """
    trees = {"ours": TREE} | ({"against": against} if against else {})
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder, on_stage(Eve(rows), Path(folder)) as stage:
            taken: dict[str, dict[str, Measured]] = {}
            for name, tree in trees.items():
                (stage.folder / name).mkdir()
                done = measured(ours("plan", *stage.words, "--settle", "1", "--out", PLAN), stage.folder / name, tree)
                print(line(name, rows, done), flush=True)
                taken[name] = {"plan": done}
            for number in range(rounds):
                for name in reversed(trees) if number % 2 else trees:
                    _take_there_and_back(stage, name, trees[name], taken[name])
            if against:
                pairs = ((command, taken["against"][command], mine) for command, mine in taken["ours"].items())
                said = (f"{command} {theirs.seconds / mine.seconds:.1f}" for command, theirs, mine in pairs)
                print(f"ratio   {rows:>10,} rows, times as fast: {', '.join(said)}", flush=True)
            rivals(stage)


def _take_there_and_back(stage: Stage, name: str, tree: Path, quickest: dict[str, Measured]) -> None:
    """Run one round with a tree, print it, and keep the quicker times."""
    for command, done in there_and_back(stage, stage.folder / name, tree):
        peak = sum(done.peak_bytes.values()) / 2**20
        code = f", exit {done.exit_code}" if done.exit_code else ""
        told = f"{command:9}{done.seconds:7.1f} s, CPU {done.cpu:.1f} s; MiB at most: {peak:,.0f}{code}"
        print(f"{name:8}{stage.eve.rows:>10,} rows {told}", flush=True)
        quickest[command] = min(quickest.get(command, done), done, key=attrgetter("seconds"))


def there_and_back(stage: Stage, folder: Path, tree: Path) -> Iterator[tuple[str, Measured]]:
    """Run the commands that follow a plan, in the order in which they need each other; all is as before in the end."""
    execute = ("--approve", stored_fingerprint(folder / PLAN), "--execute")
    made = set(folder.iterdir())
    for command, words in {
        "show": [PLAN],
        "status": [*stage.words, "--settle", "1"],
        "apply": [PLAN, *stage.words, *execute],
        "verify": [PLAN, *stage.words],
        "rollback": [PLAN, *stage.words, *execute],
    }.items():
        yield command, measured(ours(command, *words), folder, tree)
    # Without its journal the plan is as it was before.
    for path in set(folder.iterdir()) - made:
        path.unlink()


def line(name: str, rows: int, done: Measured, begins_of: Mapping[str, Sequence[str]] = PARTS) -> str:
    """Return seconds by part, and the most memory that was taken at any moment."""
    parts = dict.fromkeys((*begins_of, "other"), 0.0)
    for text, seconds in done.steps:
        fits = (part for part, begins in begins_of.items() if text.startswith(tuple(begins)))
        parts[next(fits, "other")] += seconds
    told = ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items() if seconds >= 0.05)
    driver = f"the driver alone {done.driver_peak_bytes / 2**20:,.0f}, {done.driver_peak_bytes / rows:,.0f} bytes a row"
    memory = ", ".join(f"{kind} {size / 2**20:,.0f}" for kind, size in sorted(done.peak_bytes.items()))
    return (
        f"{name:8}{rows:>10,} rows {done.seconds:7.1f} s, CPU {done.cpu:.1f} s: {told}; MiB at most: {memory}; {driver}"
    )


def rivals(stage: Stage) -> None:
    """Read the same commits with a bare client, and write and read the same rows with fastavro alone."""
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
    began = time.perf_counter()
    plan = read_plan(stage.folder / "ours" / PLAN)
    read, began = time.perf_counter() - began, time.perf_counter()
    write_plan(plan, stage.folder / "again.plan")
    written = time.perf_counter() - began
    plain = stage.folder / "plain.avro"
    schema = fastavro.parse_schema({"type": "record", "name": "Row", "fields": list(ROW_SCHEMA_FIELDS)})
    began = time.perf_counter()
    with plain.open("wb") as file:
        fastavro.writer(file, schema, map(row_document, plan.rows), codec="deflate")
    plainly_written, began = time.perf_counter() - began, time.perf_counter()
    with plain.open("rb") as file:
        records = sum(1 for _ in fastavro.reader(file))
    plainly_read = time.perf_counter() - began
    print(
        f"bare    {records:>10,} rows written in {plainly_written:.1f} s and read in {plainly_read:.1f} s by fastavro "
        f"alone, each a record; the plan file in {written:.1f} s and {read:.1f} s",
        flush=True,
    )

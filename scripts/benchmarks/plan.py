"""Where the seconds of a plan go, and of the commands after it, beside the same work made bare."""

import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import fastavro

from migrate.plan.file import ROW_SCHEMA_FIELDS, read_plan, write_plan
from migrate.row_table import row_document
from scripts.benchmarks.bare import bare_client, committed_count
from scripts.benchmarks.command import Measured, compare, in_turns, measured, of_tree, shown, trees
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
    """Make a plan of each size and run the commands that follow it, in turns with each tree; print what they took."""
    checkouts = trees(against)
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="mm2-bench-") as name, on_stage(Eve.of(rows), Path(name)) as stage:
            compare(there_and_back(stage, checkouts, rounds, ("show", "status")))
            rivals(stage)


def there_and_back(
    stage: Stage, trees: Mapping[str, Path], rounds: int, beside: Collection[str] = ()
) -> Mapping[str, Mapping[str, Sequence[Measured]]]:
    """Plan, apply, verify and roll back, with each tree in turns, and print each run; return them by command and tree.

    Of `show` and `status`, those in `beside` are run before the apply. Raises `RuntimeError` where a command fails, or
    has not changed on the target what it says.
    """
    first_plans(stage.words, trees, stage.folder, stage.eve.rows)
    taken: dict[str, dict[str, list[Measured]]] = defaultdict(lambda: {name: [] for name in trees})
    for name, tree in in_turns(trees, rounds):
        folder = stage.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for command, done in _round(stage, folder, tree, beside):
            taken[command][name].append(done)
            print(line(f"{name} {command}", stage.eve.rows, done), flush=True)
    return taken


def first_plans(words: Sequence[str], trees: Mapping[str, Path], folder: Path, rows: int) -> None:
    """Make an uncounted plan with each tree: an installation's first one keeps the classes that Spark loaded."""
    for name, tree in trees.items():
        with tempfile.TemporaryDirectory(dir=folder) as at:
            done = measured(of_tree(tree, "plan", *words, "--settle", "1", "--out", PLAN), Path(at))
        print(line(f"{name} first plan", rows, done), flush=True)


def _round(stage: Stage, folder: Path, tree: Path, beside: Collection[str]) -> Iterator[tuple[str, Measured]]:
    """Run the commands in the order in which they need each other; all is as before in the end."""

    def run(command: str, *words: str) -> tuple[str, Measured]:
        return command, measured(of_tree(tree, command, *words), folder)

    yield run("plan", *stage.words, "--settle", "1", "--out", PLAN)
    lines = shown(tree, PLAN, folder)
    header, rows = next(lines), sum(1 for _ in lines)
    if rows != stage.eve.rows:
        raise RuntimeError(f"{tree} planned {rows:,} rows of {stage.eve.rows:,}")
    if "show" in beside:
        yield run("show", PLAN)
    if "status" in beside:
        yield run("status", *stage.words, "--settle", "1")
    execute = (PLAN, *stage.words, "--approve", header["fingerprint"], "--execute")
    yield run("apply", *execute)
    _expect(stage, stage.eve.rows)
    yield run("verify", PLAN, *stage.words)
    yield run("rollback", *execute)
    _expect(stage, 0)


def _expect(stage: Stage, commits: int) -> None:
    found = committed_count(bare_client(stage.target.bootstrap), stage.eve.groups)
    if found != commits:
        raise RuntimeError(f"the target has {found:,} commits instead of {commits:,}")


def line(name: str, rows: int, done: Measured, begins_of: Mapping[str, Sequence[str]] = PARTS) -> str:
    """Return seconds by part, and the most memory that was taken at any moment."""
    parts = dict.fromkeys((*begins_of, "other"), 0.0)
    for text, seconds in done.steps:
        fits = (part for part, begins in begins_of.items() if text.startswith(tuple(begins)))
        parts[next(fits, "other")] += seconds
    told = ", ".join(f"{part} {seconds:.1f}" for part, seconds in parts.items() if seconds >= 0.05)
    driver = f"the driver alone {done.driver_peak_bytes / 2**20:,.0f}, {done.driver_peak_bytes / rows:,.0f} bytes a row"
    spent = f"{done.seconds:7.1f} s, CPU {done.cpu:.1f} s" + (f", exit {done.exit_code}" if done.exit_code else "")
    memory = ", ".join(f"{kind} {size / 2**20:,.0f}" for kind, size in sorted(done.peak_bytes.items()))
    return f"{name:19}{rows:>10,} rows {spent}: {told}; MiB at most: {memory}; {driver}"


def rivals(stage: Stage) -> None:
    """Read the same commits with a bare client, and write and read the same rows with fastavro alone."""
    client = bare_client(stage.source.bootstrap)
    began = time.perf_counter()
    commits = committed_count(client, stage.eve.groups)
    if commits != stage.eve.rows:
        raise RuntimeError(f"the bare client read {commits:,} commits of {stage.eve.rows:,}")
    print(f"bare    {commits:>10,} commits read in {time.perf_counter() - began:.2f} s by confluent-kafka alone")
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
        f"bare    {records:>10,} rows written in {plainly_written:.2f} s and read in {plainly_read:.2f} s by fastavro "
        f"alone, each a record; the plan file in {written:.2f} s and {read:.2f} s",
        flush=True,
    )

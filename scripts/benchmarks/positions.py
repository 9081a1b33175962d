"""Where the seconds of plans of positions outside Kafka go, beside a plan of groups in the same run."""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.benchmarks.command import TREE, Measured, measured, ours
from scripts.benchmarks.eve import Eve, committed, on_stage
from scripts.benchmarks.plan import PARTS, PLAN, line

# Before the others: some of these announcements begin as theirs do.
PARTS_OF_POSITIONS = {"reading": ("reading positions-", "looking again at"), **PARTS}
GROUP_ROWS = 100_000
# Spark writes what Spark will read, in a process that ends before anything is measured.
TO_PARQUET = """
import sys
from migrate.spark.session import spark_session
spark = spark_session("local[2]")
fields = "holder string, topic string, partition int, offset long"
spark.read.option("header", True).schema(fields).csv(sys.argv[1]).coalesce(1).write.parquet(sys.argv[2])
"""


def measure(sizes: list[int]) -> None:
    """Plan as many rows of groups once, then positions of each size from a CSV file, and the largest from Parquet."""
    with (
        tempfile.TemporaryDirectory(prefix="mm2-bench-") as folder,
        on_stage(Eve.of(GROUP_ROWS), Path(folder)) as stage,
    ):
        settled = (*stage.words, "--settle", "1", "--out")
        done = measured(ours("plan", *settled, PLAN), stage.folder)
        print(line("groups", GROUP_ROWS, done), flush=True)
        a_position = 0.0
        for size in sorted(sizes):
            file = stage.folder / f"positions-{size}.csv"
            _write(Eve.of(size), file)
            taken = _planned(file, size, settled)
            print(line("csv", size, taken, PARTS_OF_POSITIONS), flush=True)
            each = 1e6 * taken.seconds / size
            of_first = f", {each / a_position:.2f} of the smallest size's" if a_position else ""
            a_position = a_position or each
            print(
                f"csv     {size:>10,} positions: {size / taken.seconds:,.0f} a second, {each:.0f} us each{of_first}",
                flush=True,
            )
        parquet = file.with_suffix(".parquet")
        subprocess.run([sys.executable, "-c", TO_PARQUET, str(file), str(parquet)], cwd=TREE, check=True)
        print(line("parquet", size, _planned(parquet, size, settled), PARTS_OF_POSITIONS), flush=True)


def _planned(file: Path, size: int, settled: tuple[str, ...]) -> Measured:
    from migrate.extras.positions.plan import read

    plan = f"{file.name}.json"
    done = measured(ours("positions", "plan", *settled, plan, "--positions", file.name), file.parent)
    planned = len(read(file.parent / plan).rows)
    if planned != size:
        raise RuntimeError(f"the plan has {planned:,} positions of {size:,}")
    return done


def _write(eve: Eve, file: Path) -> None:
    with file.open("w", newline="") as out:
        lines = csv.writer(out)
        lines.writerow(("holder", "topic", "partition", "offset"))
        lines.writerows(_positions(eve))


def _positions(eve: Eve) -> Iterator[tuple[str, str, int, int]]:
    topic = eve.workload.name
    for holder, offsets in zip(eve.groups, committed(eve), strict=True):
        for partition, offset in enumerate(offsets):
            yield f"job-{holder}", topic, partition, offset

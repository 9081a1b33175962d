"""Put small faults into the product, run for each the tests that reach its line, and print the share killed by wing.

Each wing gives equally many mutants, drawn by the seed and by what the code says, not by where it lies: --only finds
them in a tree whose modules have moved. An interrupted run goes on where it ended: .mutation keeps what is known.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from scripts.mutation.generate import Generated, chosen, generated
from scripts.mutation.reach import Reach, reach
from scripts.mutation.server import (
    KILLED,
    OUTCOMES,
    SURVIVED,
    TASKS,
    TIMEOUT,
    UNREACHED,
    Outcome,
    Task,
    tasks_written,
    written,
)  # fmt: skip
from tests.mutants.runner import NOT_COPIED, ROOT, Fate, fate_of, planted, run_pytest

SEED = 1
# What scripts/test --quick runs, but for the tests of these tools.
QUICK = ("-m", "not spark and not kafka and not browser", "--deselect", "tests/unit/test_mutants.py")
# Of tests for one mutant, by what they took under coverage; else those that survive would take most of a run.
MOST_SECONDS = 30.0
KNOWN = ROOT / ".mutation"


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--seed", default=SEED, show_default=True, help="Draws the mutants.")
@click.option("--count", default=400, show_default=True, help="How many mutants, of all wings together.")
@click.option("--wing", "wings", multiple=True, help="Only this folder of migrate/; repeatable.")
@click.option("--only", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="Not by the seed, but those that a --list or --report of any tree names.")  # fmt: skip
@click.option("--list", "listing", is_flag=True, help="List the mutants, and run none.")
@click.option(
    "--tests", multiple=True, help="Run these tests (a file or folder; repeatable) instead of scripts/test --quick."
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many run at a time.")
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write the survivors to this file.")
def main(  # noqa: PLR0913 - an argument for each option
    seed: int, count: int, wings: tuple[str, ...], only: Path | None, listing: bool, tests: tuple[str, ...], jobs: int,
    report: Path | None,
) -> None:  # fmt: skip
    mutants = _named(only, wings) if only else chosen(ROOT, count, seed, wings)
    if listing:
        for mutant in mutants:
            click.echo(f"{_described(mutant)}\n{_changed(mutant)}")
        return
    selected = tests or QUICK
    with TemporaryDirectory(prefix="mutation-") as folder:
        first = Path(folder, "0").resolve()
        shutil.copytree(ROOT, first, ignore=NOT_COPIED)
        known = KNOWN / _digest(first) / hashlib.sha256(" ".join(selected).encode()).hexdigest()[:8]
        reached = reach(first, known, selected, jobs)
        outcomes = _judged(mutants, first, known / "outcomes.jsonl", reached, selected, jobs)
    _print_table(mutants, outcomes)
    survivors = "\n".join(
        f"{_described(mutant)}: {_fate(outcomes[mutant.identity])}\n{_changed(mutant)}\n"
        for mutant in sorted(mutants, key=lambda mutant: (mutant.file, mutant.line))
        if outcomes[mutant.identity].fate in (SURVIVED, UNREACHED)
    )
    if report:
        report.write_text(survivors)
    else:
        click.echo(f"\n{survivors}")


def _named(file: Path, wings: Sequence[str]) -> list[Generated]:
    """Return the mutants that a file names; say how many of them are not in this tree."""
    by_identity = {mutant.identity: mutant for mutant in generated(ROOT)}
    names = [line.split()[0] for line in file.read_text().splitlines() if line[:1].isalnum()]
    found = [by_identity[name] for name in dict.fromkeys(names) if name in by_identity]
    if missing := len(set(names)) - len(found):
        click.echo(f"{missing} of {len(set(names))} are not in this tree.", err=True)
    return [mutant for mutant in found if not wings or mutant.wing in wings]


def _judged(
    mutants: Sequence[Generated], first: Path, file: Path, reached: Reach, selected: Sequence[str], jobs: int
) -> dict[str, Outcome]:
    """Return what became of each mutant; what `file` has already is not tried again."""
    file.touch()
    outcomes = _read(file)
    tasks = {mutant.identity: Task(mutant, _tests(mutant, reached), _runs_early(mutant, reached)) for mutant in mutants}
    with file.open("a") as added:
        for identity, task in tasks.items():
            if identity not in outcomes and not task.tests:
                added.write(written(Outcome(identity, UNREACHED, "", 0, 0.0)))
    pending = [task for identity, task in tasks.items() if identity not in outcomes and task.tests]
    _serve(pending, first, file, selected, min(jobs, len(pending)))
    for identity, outcome in _read(file).items():
        if identity in tasks and not outcome.is_final:
            with file.open("a") as added:
                added.write(written(_in_new_process(tasks[identity], first, outcome)))
    return _read(file)


def _serve(tasks: Sequence[Task], first: Path, file: Path, selected: Sequence[str], jobs: int) -> None:
    trees = [first, *(first.with_name(str(number)) for number in range(1, jobs))]
    processes = []
    try:
        for number, tree in enumerate(trees[:jobs]):
            if tree != first:
                shutil.copytree(first, tree)
            own = first.with_name(f"tasks-{number}.json")
            own.write_text(tasks_written(tasks[number::jobs]))
            environment = os.environ | {
                "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", TASKS: str(own), OUTCOMES: str(file)
            }  # fmt: skip
            plugins = ("-p", "no:cacheprovider", "-p", "tests.mutants.plugin", "-p", "scripts.mutation.server")
            with file.with_name(f"output-{number}").open("w") as output:
                processes.append(subprocess.Popen(
                    [sys.executable, "-m", "pytest", "-q", "-x", *plugins, *selected],
                    cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                ))  # fmt: skip
        for process in processes:
            process.wait()
    finally:
        for process in processes:
            process.terminate()
    missing = {task.mutant.identity for task in tasks} - _read(file).keys()
    if missing:
        raise click.ClickException(f"{len(missing)} mutants were not tried: see {file.with_name('output-0')}")


def _in_new_process(task: Task, tree: Path, outcome: Outcome) -> Outcome:
    mutant = task.mutant
    seconds = sum(task.tests.values())
    try:
        with planted(tree / mutant.file, mutant.text(tree)):
            code, output = run_pytest(tree, list(task.tests), 60 + 5 * seconds)
    except subprocess.TimeoutExpired:
        return replace(outcome, fate=TIMEOUT, is_final=True)
    fate, by = fate_of(code, output)
    # What cannot even be collected has failed, too.
    killed = fate is not Fate.SURVIVED
    return replace(outcome, fate=KILLED if killed else SURVIVED, by=by if killed else "", is_final=True)


def _tests(mutant: Generated, reached: Reach) -> dict[str, float]:
    """Return the tests that reach a mutant, the fastest first, which mostly are about it, as far as time allows."""
    tests = reached.of_line(mutant.file, mutant.line) | reached.of_line(mutant.file, mutant.statement_line)
    seconds = reached.seconds
    ordered = sorted(tests & seconds.keys(), key=lambda test: (seconds[test], test))
    spent = accumulate(seconds[test] for test in ordered)
    in_time = takewhile(lambda pair: pair[1] - seconds[pair[0]] < MOST_SECONDS, zip(ordered, spent, strict=True))
    return {test: seconds[test] for test, _ in in_time}


def _runs_early(mutant: Generated, reached: Reach) -> bool:
    return "" in reached.of_line(mutant.file, mutant.statement_line)


def _read(file: Path) -> dict[str, Outcome]:
    """Return the last outcome of each mutant."""
    found = (Outcome(**json.loads(line)) for line in file.read_text().splitlines())
    return {outcome.identity: outcome for outcome in found}


def _print_table(mutants: Iterable[Generated], outcomes: dict[str, Outcome]) -> None:
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        for wing in (mutant.wing, "all"):
            counts.setdefault(wing, Counter())[outcomes[mutant.identity].fate] += 1
    click.echo("| wing | mutants | killed | of these by time | survived | no test reaches it | killed, % |")
    click.echo("| --- | --- | --- | --- | --- | --- | --- |")
    for wing, count in sorted(counts.items(), key=lambda entry: (entry[0] == "all", entry[0])):
        killed = count[KILLED] + count[TIMEOUT]
        cells = (
            count.total(),
            killed,
            count[TIMEOUT],
            count[SURVIVED],
            count[UNREACHED],
            f"{100 * killed / count.total():.0f}",
        )
        click.echo(f"| {wing} | {' | '.join(map(str, cells))} |")


def _described(mutant: Generated) -> str:
    return f"{mutant.identity} {mutant.file}:{mutant.line} {mutant.function}: {mutant.kind}"


def _changed(mutant: Generated) -> str:
    return "\n".join(mutant.change(ROOT))


def _fate(outcome: Outcome) -> str:
    return "no test reaches it" if outcome.fate == UNREACHED else f"survived {outcome.tests} tests"


def _digest(tree: Path) -> str:
    digest = hashlib.sha256()
    for folder in ("migrate", "tests"):
        for file in sorted((tree / folder).rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file.relative_to(tree)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    main()

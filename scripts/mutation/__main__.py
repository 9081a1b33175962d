"""Put small faults into the product, run for each the tests that reach its line, and print the share killed by wing.

Each wing gives equally many mutants, drawn by the seed and by what the code says, not by where it lies: --only finds
them in a tree whose modules have moved. An interrupted run goes on where it ended: .mutation keeps what is known.
"""

import hashlib
import json
import os
import re
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

from scripts.mutation.generate import chosen, generated
from scripts.mutation.kept import BadMutant, kept
from scripts.mutation.mutant import ROOT, Mutant
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
    planted,
    tasks_written,
    written,
)  # fmt: skip

SEED = 1
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
# What scripts/test --quick runs, but for the tests of these tools.
QUICK = ("-m", "not spark and not kafka and not browser", "--deselect", "tests/unit/test_mutation.py")
# Of tests for a generated mutant, by what they took under coverage; else those that survive would take most of a run.
MOST_SECONDS = 30.0
KNOWN = ROOT / ".mutation"
PLUGINS = ("-p", "no:cacheprovider", "-p", "scripts.mutation.plugin")


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("names", nargs=-1)
@click.option(
    "--kept", "keeps", is_flag=True, help="All mutants that are kept, or those of these NAMES; each must be killed."
)
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
    names: tuple[str, ...], keeps: bool, seed: int, count: int, wings: tuple[str, ...], only: Path | None,
    listing: bool, tests: tuple[str, ...], jobs: int, report: Path | None,
) -> None:  # fmt: skip
    if only:
        names = tuple(line.split()[0] for line in only.read_text().splitlines() if line[:1].isalnum())
    if keeps or names:
        mutants = [mutant for mutant in _named(names, keeps) if not wings or mutant.wing in wings]
    else:
        mutants = chosen(ROOT, count, seed, wings)
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
    if keeps and survivors:
        raise SystemExit(1)


def _named(names: Sequence[str], keeps: bool) -> list[Mutant]:
    """Return the mutants of these names, or all that are kept; say how many of them are not in this tree."""
    try:
        there = {mutant.identity: mutant for mutant in (kept(ROOT) if keeps else generated(ROOT))}
    except BadMutant as error:
        raise click.ClickException(f"{error}") from None
    wanted = list(dict.fromkeys(names)) or list(there)
    if missing := [name for name in wanted if name not in there]:
        click.echo(f"{len(missing)} of {len(wanted)} are not in this tree, such as {missing[0]}.", err=True)
    return [there[name] for name in wanted if name in there]


def _judged(
    mutants: Sequence[Mutant], first: Path, file: Path, reached: Reach, selected: Sequence[str], jobs: int
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
                added.write(written(_in_new_process(tasks[identity], first, outcome, selected)))
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
            with file.with_name(f"output-{number}").open("w") as output:
                processes.append(subprocess.Popen(
                    [sys.executable, "-m", "pytest", "-q", "-x", *PLUGINS, "-p", "scripts.mutation.server", *selected],
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


def _in_new_process(task: Task, tree: Path, outcome: Outcome, selected: Sequence[str]) -> Outcome:
    # What an outer pytest tells its own processes is not meant for this one; a compiled mutant must not outlive it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_CORE_"))}
    environment |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", *PLUGINS]
    runs: list[tuple[list[str], float | None]] = [([*task.tests], 60 + 5 * sum(task.tests.values()))]
    if task.mutant.is_kept:
        # A test may look at what a module has made, and run no line of it.
        runs.append(([*selected], None))
    try:
        with planted(tree / task.mutant.file, task.mutant.text(tree)):
            for tests, seconds in runs:
                done = subprocess.run(
                    [*command, *tests], cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=seconds,
                )  # fmt: skip
                if done.returncode:
                    break
    except subprocess.TimeoutExpired:
        return replace(outcome, fate=TIMEOUT, is_final=True)
    by = re.search(r"^(?:FAILED|ERROR) (tests/\S+::.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode and not by and task.mutant.is_kept:
        # What cannot even be imported breaks no promise. Of a generated mutant it is a kill: nobody would ship it.
        raise click.ClickException(f"{task.mutant.identity}: its tests cannot be collected.\n{done.stdout}")
    fate = KILLED if done.returncode else SURVIVED
    return replace(outcome, fate=fate, by=by[1] if by else "", is_final=True)


def _tests(mutant: Mutant, reached: Reach) -> dict[str, float]:
    """Return the tests that reach a mutant, the fastest first, which mostly are about it.

    A generated one meets those of `MOST_SECONDS`, one that is kept all of them: it is to be killed.
    """
    seconds = reached.seconds
    tests = reached.of_lines(mutant.file, mutant.lines) & seconds.keys()
    if not tests and _runs_early(mutant, reached):
        # What a module or a class says for all: whoever runs the module's code may see it.
        tests = reached.of_file(mutant.file) & seconds.keys()
    ordered = sorted(tests, key=lambda test: (seconds[test], test))
    if mutant.is_kept:
        return {test: seconds[test] for test in ordered}
    spent = accumulate(seconds[test] for test in ordered)
    in_time = takewhile(lambda pair: pair[1] - seconds[pair[0]] < MOST_SECONDS, zip(ordered, spent, strict=True))
    return {test: seconds[test] for test, _ in in_time}


def _runs_early(mutant: Mutant, reached: Reach) -> bool:
    return "" in reached.of_lines(mutant.file, mutant.lines)


def _read(file: Path) -> dict[str, Outcome]:
    """Return the last outcome of each mutant."""
    found = (Outcome(**json.loads(line)) for line in file.read_text().splitlines())
    return {outcome.identity: outcome for outcome in found}


def _print_table(mutants: Iterable[Mutant], outcomes: dict[str, Outcome]) -> None:
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


def _described(mutant: Mutant) -> str:
    place = f"{mutant.file}:{mutant.line} {mutant.function}".rstrip()
    return f"{mutant.identity} {place}: {mutant.kind}"


def _changed(mutant: Mutant) -> str:
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

"""Every mutant still fits the code, and a few are killed; `python -m tests.mutants` runs all of them."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import BadMutant, Mutant
from tests.mutants.runner import ROOT, Fate, UnbrokenFails, Verdict, judged

# One of each kind that takes a second or two: translation, the matching's guard, apply, the journal, verify.
QUICK = (
    "distance-added",
    "greater-of-sync-and-time",
    "drift-of-the-group-state-ignored",
    "journal-of-another-plan-accepted",
    "ahead-is-fine-for-an-empty-group",
)


def of(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


def test_every_mutant_changes_one_place_of_the_product_into_code_that_compiles() -> None:
    offenders = []
    for mutant in MUTANTS:
        if not (mutant.file.startswith("migrate/") and mutant.tests and mutant.breaks.endswith(".")):
            offenders.append(f"{mutant.name}: no file of the product, no tests, or no promise")
        try:
            mutant.broken(ROOT)
        except (BadMutant, OSError) as error:
            offenders.append(f"{mutant.name}: {error}")
    assert not offenders, "\n".join(offenders)


def test_the_tests_that_kill_a_mutant_are_there() -> None:
    @cache
    def functions(file: str) -> set[str]:
        return {n.name for n in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(n, ast.FunctionDef)}

    offenders = []
    for mutant in MUTANTS:
        for test in mutant.tests:
            file, _, name = test.partition("::")
            if not (ROOT / file).is_file() or name and name.partition("[")[0] not in functions(file):
                offenders.append(f"{mutant.name}: {test}")
    assert not offenders, "\n".join(offenders)


def test_no_two_mutants_share_a_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mutant_that_does_not_fit_is_refused() -> None:
    mutant = of("distance-added")
    for changed in (
        replace(mutant, before="no such code"),
        replace(mutant, before="target"),
        replace(mutant, after=mutant.before),
        replace(mutant, after="    return (\n"),
    ):
        with pytest.raises(BadMutant):
            changed.broken(ROOT)


def test_what_is_broken_is_killed_and_only_by_a_test_that_ran_and_failed() -> None:
    quick = [of(name) for name in QUICK]
    harmless = replace(quick[0], name="harmless", after=f"{quick[0].before}\n")
    start = "from migrate.model import LogRange"
    not_importable = replace(quick[0], name="not-importable", before=start, after=f"{start}, Nothing")
    unbroken = {mutant.file: (ROOT / mutant.file).read_bytes() for mutant in quick}
    told: list[Verdict] = []
    verdicts = judged([*quick, harmless, not_importable], tell=told.append)
    assert verdicts == told
    assert [verdict.fate for verdict in verdicts] == [Fate.KILLED] * len(quick) + [Fate.SURVIVED, Fate.ERROR]
    assert all(verdict.told.startswith(verdict.mutant.tests) for verdict in verdicts[: len(quick)])
    assert "pytest ended with" in verdicts[-1].told
    assert unbroken == {mutant.file: (ROOT / mutant.file).read_bytes() for mutant in quick}


def test_where_the_tests_fail_without_any_mutant_none_is_judged() -> None:
    with pytest.raises(UnbrokenFails, match="test_that_is_not_there"):
        judged([replace(of("distance-added"), tests=("tests/unit/mm2/test_chain.py::test_that_is_not_there",))])


def test_a_run_that_would_test_another_product_is_stopped(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.mutants.plugin", "--collect-only"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4 and "does not lie in" in done.stderr

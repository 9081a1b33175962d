"""Which mutants scripts/mutate draws, and that a process runs the mutant that is put into it."""

import ast
import importlib
from pathlib import Path

import pytest

from scripts.mutation.generate import chosen
from scripts.mutation.server import put_in
from tests.mutants.runner import ROOT

MODULE = """
def lag(committed: int, log_end: int) -> int:
    '''Return the lag.'''
    if committed < 0 or log_end < committed:
        raise ValueError(f"{committed - 1}")
    return log_end - committed
"""


def drawn(root: Path, file: str, text: str, seed: int) -> set[str]:
    path = root / "migrate" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return {mutant.identity for mutant in chosen(root, 5, seed)}


def test_a_seed_draws_the_same_mutants_wherever_their_function_lies(tmp_path: Path) -> None:
    here = drawn(tmp_path / "here", "plan/rows.py", MODULE, seed=1)
    moved = drawn(tmp_path / "moved", "core/decide.py", f"LEAST = 1\n{MODULE}", seed=1)
    other = drawn(tmp_path / "other", "plan/rows.py", MODULE, seed=2)
    assert len(here) == 5 and here == moved != other


def test_a_mutant_compiles_and_is_another_program() -> None:
    mutants = chosen(ROOT, 50, seed=1)
    assert len(mutants) == 50
    for mutant in mutants:
        text = (ROOT / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.text(ROOT))) != ast.dump(ast.parse(text)), mutant


def test_functions_that_others_have_imported_or_wrapped_run_the_mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = f"from functools import wraps\ndef same(f):\n    return wraps(f)(lambda *a: f(*a))\n@same{MODULE}"
    (tmp_path / "lagging.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    lag = importlib.import_module("lagging").lag
    assert lag(2, 10) == 8
    put_in("lagging.py", text, text.replace("log_end - committed", "log_end + committed"))
    assert lag(2, 10) == 12
    # Else its tests would pass on the unbroken code.
    with pytest.raises(AssertionError):
        put_in("lagging.py", text, f"{text}LEAST = 1\n")

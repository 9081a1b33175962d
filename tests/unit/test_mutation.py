"""Which mutants scripts/mutate draws."""

import ast
from pathlib import Path

from scripts.mutation.generate import chosen
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
    mutants = chosen(ROOT, 100, seed=1)
    assert len(mutants) == 100
    for mutant in mutants:
        text = (ROOT / mutant.file).read_text()
        assert ast.dump(ast.parse(mutant.text(ROOT))) != ast.dump(ast.parse(text)), mutant

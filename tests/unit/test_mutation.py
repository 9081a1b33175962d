"""Which mutants scripts/mutate draws and keeps, and that a process runs the mutant that is put into it."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.mutation.kept import BadMutant, kept
from scripts.mutation.mutant import ROOT
from scripts.mutation.server import put_in

MODULE = """
def lag(committed: int, log_end: int) -> int:
    '''Return the lag.'''
    if committed < 0 or log_end < committed:
        raise ValueError(f"{committed - 1}")
    return log_end - committed
"""


def test_every_kept_mutant_fits_the_code_and_breaks_a_promise() -> None:
    assert not [mutant.identity for mutant in kept(ROOT) if not mutant.kind.endswith(".")]


@pytest.mark.parametrize(("change", "error"), [
    ("-     return 0", "stands 0 times"),
    ("-     return 1\n+     return (", "would not compile"),
    ("-     return 1\n+     return  1", "changes nothing"),
    ("-     return 1\n+     pass\n\na migrate/a.py 1.\n-     return 1\n+     return 3", "two mutants have this name"),
])  # fmt: skip
def test_a_kept_mutant_that_does_not_fit_is_refused(tmp_path: Path, change: str, error: str) -> None:
    for file, text in (
        ("migrate/a.py", "def one():\n    return 1\n"),
        ("tests/mutants.txt", f"a migrate/a.py It is 1.\n{change}"),
    ):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(f"{text}\n")
    with pytest.raises(BadMutant, match=error):
        kept(tmp_path)


def test_a_kept_mutant_that_no_test_notices_fails_the_run() -> None:
    names = ("distance-added", "journal-of-another-plan-accepted")
    command = [sys.executable, "-m", "scripts.mutation", "--kept", *names, "--tests", "tests/unit/mm2/test_chain.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "| all | 2 | 1 | 0 | 0 | 1 | 50 |" in done.stdout, done


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

"""`python -m scripts.without_extras`: the tests on copies of the tree that lack extras."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from migrate.cli.main import EXTRAS

TREE = Path(__file__).parents[1]
UNITS = ("-m", "not spark and not kafka and not browser", "tests")
CUTOVER = (
    "tests/integration/test_cutover.py",
    "tests/integration/test_failback.py",
    "tests/integration/test_runbook.py",
)
PYTEST = ("-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider")
# The package is installed from this tree, which would lend a copy what it lacks.
ALONE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "__name__", "") != "_EditableFinder"]
"""


def copy_without(extras: Sequence[str], tree: Path) -> None:
    """Copy what git knows of this tree, or would take in, but for some extras, their tests, and their names."""
    listed = ["git", "-C", str(TREE), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0")
    gone = tuple(f"{folder}/extras/{extra}/" for folder in ("migrate", "tests") for extra in extras)
    for name in filter(None, names):
        if not name.startswith(gone) and (TREE / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TREE / name, tree / name)
    main = tree / "migrate" / "cli" / "main.py"
    left = tuple(extra for extra in EXTRAS if extra not in extras)
    text, lists = re.subn(r"^EXTRAS = .*$", f"EXTRAS = {left!r}", main.read_text(), flags=re.MULTILINE)
    if lists != 1:
        raise SystemExit(f"{main.relative_to(tree)} has no line that begins with EXTRAS.")
    main.write_text(text)
    (tree / ".venv").symlink_to(TREE / ".venv")


def passes(extras: Sequence[str], suites: Sequence[Sequence[str]]) -> bool:
    """Run the suites on a copy without some extras, and print one line; what fails is printed before it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="without-extras-") as folder:
        tree, alone = Path(folder) / "tree", Path(folder) / "alone"
        alone.mkdir()
        (alone / "sitecustomize.py").write_text(ALONE)
        copy_without(extras, tree)
        environment = {**os.environ, "PYTHONPATH": f"{alone}{os.pathsep}{tree}"}
        sums, passed = [], True
        for suite in suites:
            # -P: else a folder that tests run in would come first.
            command = [sys.executable, "-P", *PYTEST, *suite]
            ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
            lines = ran.stdout.splitlines() or ["no output"]
            sums.append(lines[-1].strip("= "))
            if ran.returncode:
                passed = False
                print(*lines[-60:], ran.stderr, sep="\n", file=sys.stderr)
    seconds = time.monotonic() - began
    print(
        f"without {', '.join(extras)}: {'passed' if passed else 'FAILED'} ({'; '.join(sums)}), {seconds:.0f} s",
        flush=True,
    )
    return passed


def main() -> int:
    """Return 0 if the tests pass on every copy, else 1."""
    parser = argparse.ArgumentParser(prog="scripts/without-extras", description=__doc__)
    parser.add_argument("extras", nargs="*", metavar="NAME", help=f"extras to leave out: {', '.join(EXTRAS)} (default)")
    parser.add_argument("--each", action="store_true", help="leave out each alone, one copy after another")
    parser.add_argument("--cutover", action="store_true", help="also run the cutover scenes on real brokers")
    given = parser.parse_args()
    if unknown := sorted({*given.extras} - {*EXTRAS}):
        parser.error(f"there is no extra {unknown[0]}: {', '.join(EXTRAS)}")
    chosen = given.extras or list(EXTRAS)
    suites = [UNITS, *([CUTOVER] if given.cutover else [])]
    results = [passes(extras, suites) for extras in ([[extra] for extra in chosen] if given.each else [chosen])]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

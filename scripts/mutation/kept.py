"""Mutants that are kept: what no generator would think of, each with the promise that it breaks.

A mutants.txt has a block for each: its name, the file, and the promise in one sentence; then the lines that it takes
out of the file, which stand there once, and those that it puts in, as a diff shows them. Those of an extra lie beside
its tests.
"""

import ast
from functools import lru_cache
from pathlib import Path

from scripts.mutation.mutant import Mutant


class BadMutant(Exception):
    """Raised for a mutant that does not fit the code: it would prove nothing."""


def kept(root: Path) -> list[Mutant]:
    """Return the kept mutants of the tree; raises `BadMutant` for one that does not fit, or whose name is taken."""
    found: dict[str, Mutant] = {}
    for file in sorted((root / "tests").rglob("mutants.txt")):
        for block in file.read_text().strip().split("\n\n"):
            mutant = _fitted(block, root)
            if found.setdefault(mutant.identity, mutant) is not mutant:
                raise BadMutant(f"{mutant.identity}: two mutants have this name")
    return list(found.values())


def _fitted(block: str, root: Path) -> Mutant:
    head, *changes = block.splitlines()
    name, file, promise = head.split(" ", 2)
    before, after = ("\n".join(line[2:] for line in changes if line.startswith(sign)) for sign in "-+")
    text = (root / file).read_text()
    if (count := f"\n{text}".count(f"\n{before}\n")) != 1:
        raise BadMutant(f"{name}: what it takes out stands {count} times in {file}")
    at = f"\n{text}".index(f"\n{before}\n")
    first = text.count("\n", 0, at) + 1
    lines = range(first, first + before.count("\n") + 1)
    start = len(text[:at].encode())
    end = start + len(before.encode())
    mutant = Mutant(name, promise, file, "", first, (*lines, _statement(text, first)), start, end, after)
    try:
        broken = ast.parse(mutant.text(root))
    except SyntaxError as error:
        raise BadMutant(f"{name}: {file} would not compile: {error}") from error
    if ast.dump(broken) == ast.dump(_parsed(text)):
        raise BadMutant(f"{name}: it changes nothing")
    return mutant


# A file has many mutants.
_parsed = lru_cache(maxsize=1)(ast.parse)


def _statement(text: str, line: int) -> int:
    """Return the first line of the innermost statement around a line, which coverage counts for all of its lines."""
    statements = (node for node in ast.walk(_parsed(text)) if isinstance(node, ast.stmt))
    return max((s.lineno for s in statements if s.lineno <= line <= (s.end_lineno or 0)), default=line)

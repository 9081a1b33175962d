"""One way to break the product."""

import ast
from dataclasses import dataclass
from pathlib import Path


class BadMutant(Exception):
    """Raised for a mutant that does not fit the code: it would prove nothing."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A piece of product code and what stands there instead.

    `breaks` says in one sentence what the tool promises no longer. `before` occurs exactly once in `file`, which lies
    under migrate/. `tests` are pytest's arguments: the fewest and fastest unit tests that fail on it.
    """

    name: str
    breaks: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def broken(self, root: Path) -> str:
        """Return the file's text with the mutant in it; raises `BadMutant` where it does not fit."""
        text = (root / self.file).read_text()
        found = text.count(self.before)
        if found != 1:
            raise BadMutant(f"`before` occurs {found} times in {self.file}")
        if self.before == self.after:
            raise BadMutant("`after` is `before`")
        changed = text.replace(self.before, self.after)
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise BadMutant(f"{self.file} would not compile: {error}") from error
        return changed

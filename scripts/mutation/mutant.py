"""One way to break the product: a piece of its code, and what stands there instead."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The wing of the modules that lie beside the folders.
TOP = "(top)"


@dataclass(frozen=True, slots=True)
class Mutant:
    """What stands in a file from byte `start` to byte `end` becomes `after`.

    `function` is qualified within its module, and empty for a mutant that is kept. A test that reaches one of the
    `lines` reaches the mutant. `identity` is the name of one that is kept; a generated one's is made of the function,
    its statement, the kind and what changes, so that it is the same in another tree, wherever the module and the line
    are there.
    """

    identity: str
    kind: str
    file: str
    function: str
    line: int
    lines: tuple[int, ...]
    start: int
    end: int
    after: str

    @property
    def is_kept(self) -> bool:
        return not self.function

    @property
    def wing(self) -> str:
        parts = Path(self.file).parts
        return parts[1] if len(parts) > 2 else TOP

    def text(self, root: Path) -> str:
        """Return the file's text with the mutant in it."""
        source = (root / self.file).read_bytes()
        return (source[: self.start] + self.after.encode() + source[self.end :]).decode()

    def change(self, root: Path) -> list[str]:
        """Return the lines that it takes out and puts in, as a diff shows them."""
        source = (root / self.file).read_bytes()
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        before, after = source[first:last], source[first : self.start] + self.after.encode() + source[self.end : last]
        return [f"{sign} {line}" for sign, text in (("-", before), ("+", after)) for line in text.decode().splitlines()]

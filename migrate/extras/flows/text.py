"""What became of each flow, as text. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.errors import EXIT_DONE, EXIT_REFUSED
from migrate.show.lines import wrapped
from migrate.show.table import INDENT, Column, Table
from migrate.text import Colour, many, name, safe, shell_word


@dataclass(frozen=True)
class MadePlan:
    """What became of a flow: the verdict on its plan, or why there is none; the exit code of that alone.

    `path` and `fingerprint` (as it is abbreviated) are empty where no plan was made.
    """

    flow: str
    verdict: str
    exit_code: int
    path: str = ""
    fingerprint: str = ""


MADE: tuple[Column[MadePlan], ...] = (
    Column("FLOW", lambda made: made.flow),
    Column("FINGERPRINT", lambda made: made.fingerprint),
    Column("PLAN", lambda made: made.path, lambda path: name(path) if path else "-"),
)


def made_lines(made: Sequence[MadePlan], width: int, colour: bool) -> Iterator[str]:
    """Yield a line for each flow, and how to go on."""
    yield from Table(MADE, made, width).lines(
        colour, below=lambda m: wrapped(safe(m.verdict), width, INDENT, colour=_colour_of(m) if colour else None)
    )
    yield ""
    written = [each for each in made if each.path]
    failed = len(made) - len(written)
    counts = f"{many(len(written), 'plan')} written" + (f", {many(failed, 'flow')} failed: no plan" if failed else "")
    each_alone = " Each is reviewed, approved and applied by itself." if written else ""
    yield from wrapped(f"{counts}.{each_alone}", width)
    if written:
        paths = " ".join(shell_word(each.path) for each in written)
        yield f"mm2-migrate show {paths}"


def _colour_of(made: MadePlan) -> Colour:
    return (
        Colour.GREEN if made.exit_code == EXIT_DONE else Colour.RED if made.exit_code != EXIT_REFUSED else Colour.YELLOW
    )

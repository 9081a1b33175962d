"""What became of the flows of a model: a line for each plan. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrate.errors import EXIT_DONE, EXIT_REFUSED
from migrate.show.lines import wrapped
from migrate.show.table import columns, layout
from migrate.text import Colour, many, name, paint, safe, shell_word

_COLUMNS = columns("FLOW", "FINGERPRINT", "PLAN", "VERDICT", right=False)
_NO_PLAN = "-"
# A verdict is never cut: where it does not fit beside its plan, it stands below.
_INDENT = "  "


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


def made_lines(made: Sequence[MadePlan], width: int, colour: bool) -> Iterator[str]:
    """Yield a line for each flow, and how to go on."""
    rows = [
        (safe(m.flow), m.fingerprint or _NO_PLAN, name(m.path) if m.path else _NO_PLAN, safe(m.verdict)) for m in made
    ]
    page = layout(_COLUMNS, rows, width)
    beside = page.width <= width
    if not beside:
        page = layout(_COLUMNS[:3], [row[:3] for row in rows], width)
    yield from page.headings
    for each, row in zip(made, rows, strict=True):
        shade = _colour_of(each)
        if beside:
            yield paint(page.line(row), shade, colour)
        else:
            yield page.line(row[:3])
            yield from wrapped(row[3], width, _INDENT, colour=shade if colour else None)
    yield ""
    written = [each for each in made if each.path]
    failed = len(made) - len(written)
    told = f"{many(len(written), 'plan')} written" + (f", {many(failed, 'flow')} failed: no plan" if failed else "")
    each_alone = " Each is reviewed, approved and applied by itself." if written else ""
    yield from wrapped(f"{told}.{each_alone}", width)
    if written:
        paths = " ".join(shell_word(each.path) for each in written)
        yield f"mm2-migrate show {paths}"


def _colour_of(made: MadePlan) -> Colour:
    return (
        Colour.GREEN if made.exit_code == EXIT_DONE else Colour.RED if made.exit_code != EXIT_REFUSED else Colour.YELLOW
    )

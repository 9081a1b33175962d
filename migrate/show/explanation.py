"""`explain` as text: the group, its rows, and MM2's own commands. Pure: text in lines, no printing."""

from collections.abc import Iterable, Iterator

from migrate.mm2.commands import COMMAND, resetting, stopping
from migrate.model import Decision, Row, may_skip
from migrate.plan.plan import Header, Plan
from migrate.show.explain import Told, chosen_rows, group_told, row_title, row_told, site_of, source_partition
from migrate.show.table import aligned, wrapped
from migrate.text import Colour, name, paint

INDENT = "  "
_PROBLEM = {"Block": Colour.RED, "Blocked": Colour.RED, "Warning": Colour.YELLOW, "Accepted": Colour.YELLOW}


def explanation(
    plan: Plan, group: str, place: str | None = None, *, width: int = 80, colour: bool = False
) -> Iterator[str]:
    """Return the lines that explain a group, or its one row at `place` ("topic:partition").

    Raises `UsageError` at once, before the first line, where the plan has no such group or row.
    """
    rows = chosen_rows(plan, group, place)
    return _lines(plan, group, rows, place is not None, width, colour)


def _lines(plan: Plan, group: str, rows: tuple[Row, ...], single: bool, width: int, colour: bool) -> Iterator[str]:
    yield paint(f"{name(group)}, in plan {plan.short_fingerprint}", Colour.BOLD, colour)
    yield from _paragraph(group_told(plan, rows), width, colour)
    for row in rows:
        yield ""
        red = row.decision is Decision.BLOCK or may_skip(row)
        for line in wrapped(row_title(row, plan.header), width):
            yield paint(line, Colour.RED if red else Colour.GREEN, colour)
        yield from _paragraph(row_told(row, plan), width, colour)
    yield ""
    yield paint("MM2 ITSELF, which this tool never touches", Colour.BOLD, colour)
    yield from _commands("To stop it", stopping(site_of(plan.header)), width)
    if single:
        yield from _resetting(rows[0], plan.header, width)
    else:
        yield from wrapped("How to make it copy a partition again: name TOPIC:PARTITION.", width, INDENT)


def _resetting(row: Row, header: Header, width: int) -> Iterator[str]:
    partition = source_partition(row, header)
    what = (
        f"To make it copy {name(partition.topic)}:{partition.partition} again from its start (its copies then stand "
        "twice on the target, and a new plan is needed)"
    )
    yield from _commands(what, resetting(site_of(header), partition), width)


def _commands(what: str, lines: Iterable[str], width: int) -> Iterator[str]:
    """Yield sentences wrapped, and commands whole: they are copied."""
    yield from wrapped(f"{what}:", width, INDENT)
    for line in lines:
        if line.startswith(COMMAND):
            yield INDENT + line
        else:
            yield from wrapped(line, width, INDENT * 2)


def _paragraph(told: Iterable[Told], width: int, colour: bool) -> Iterator[str]:
    for label, text in told:
        for i, line in enumerate(aligned([(f"{INDENT}{label:<10}", text)], width)):
            problem = _PROBLEM.get(label)
            yield line.replace(label, paint(label, problem, colour), 1) if problem and i == 0 else line

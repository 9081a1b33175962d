"""The positions of a cutover as text for a person: verdict, what needs attention, every position. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime

from migrate.extras.positions.plan import PositionPlan, is_clean
from migrate.model import Decision, Grade, Row, may_skip
from migrate.plan.attention import findings_of
from migrate.show.lines import aligned, tally, wrapped
from migrate.show.plan_table import LABELS, Page, attention_lines, passed_lines
from migrate.show.table import Column, Table, field
from migrate.text import Colour, many, name, paint, safe, shell_word


def _rereads(row: Row) -> int | str | None:
    """Return how many records are read twice at most; a word where nothing bounds them."""
    return "unknown" if row.rereads_at_most is None and row.target_offset is not None else row.rereads_at_most


_COLUMNS: tuple[Column[Row], ...] = (
    field("group", "HOLDER"),
    field("target_topic", "TOPIC"),
    field("partition", "PARTITION", right=True),
    field("source_committed", "WANTED-NEXT", right=True),
    field("target_offset", "NEW-OFFSET", right=True),
    Column("RE-READS", _rereads, right=True),
    field("decision", "DECISION"),
    field("grade", "GRADE"),
)


def verdict(plan: PositionPlan) -> tuple[str, Colour]:
    """Return the verdict in a line, and its colour."""
    holders = many(len(plan.holders()), "holder")
    if blocked := plan.blocked():
        return f"BLOCKED: {len(blocked)} of {holders}", Colour.RED
    if not is_clean(plan):
        return "BLOCKED: see below", Colour.RED
    to_set = sum(row.target_offset is not None for row in plan.rows)
    text = f"READY: {many(to_set, 'position')} of {holders} to set"
    if skipping := sum(map(may_skip, plan.rows)):
        return f"{text}; {many(skipping, 'position')} MAY SKIP records, see below", Colour.YELLOW
    return text, Colour.GREEN


def lines(plan: PositionPlan, page: Page, with_rows: bool) -> Iterator[str]:
    """Yield the whole of it; without rows what `positions plan` prints when it is done."""
    text, colour = verdict(plan)
    yield from wrapped(text, page.width, colour=colour if page.colour else None)
    yield ""
    yield f"Fingerprint  {paint(plan.fingerprint, Colour.BOLD, page.colour)}"
    yield from aligned(_identity(plan, page), page.width, LABELS)
    yield ""
    attention = findings_of(plan.header.checks, filter(may_skip, plan.rows))
    command = f"mm2-migrate positions print {shell_word(page.path)}"
    yield paint("NEEDS ATTENTION" if attention else "NOTHING NEEDS ATTENTION", Colour.BOLD, page.colour)
    yield from attention_lines(attention, plan.header.checks, page, f"{command} --format table")
    yield from passed_lines(plan.header.checks, page)
    yield ""
    if with_rows:
        yield from Table(_COLUMNS, tuple(plan.rows), page.width).lines(
            page.colour,
            lambda row: Colour.RED if row.decision is Decision.BLOCK else None,
            below=lambda row: wrapped(f"{row.reason}: {safe(row.sentence)}", page.width, "    "),
        )
    else:
        yield from wrapped(f"Every position, and why: {command} --format table", page.width)
        yield from wrapped(f"What each holder is to be set to: {command} --format FORMAT", page.width)


def _identity(plan: PositionPlan, page: Page) -> Iterator[tuple[str, str]]:
    h = plan.header
    made = datetime.fromtimestamp(h.created_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield "File", f"{name(page.path)}, made {made} by mm2-migrate {safe(h.tool_version)}"
    yield "Source", f"{name(h.source_alias)}, cluster id {safe(h.source_cluster_id) or 'not read'}"
    yield "Target", f"{name(h.target_alias)}, cluster id {safe(h.target_cluster_id) or 'not read'}"
    yield "Read from", "; ".join(name(origin.origin) for origin in h.origins)
    yield "Settings", "; ".join(f"{safe(k)}={safe(v)}" for k, v in sorted(h.settings.items()))
    yield "Waivers", ", ".join(map(safe, h.waivers)) or "none"
    yield "Positions", tally(plan.rows.tally("decision"), Decision)
    grades = plan.rows.tally("grade")
    yield (
        "Grades",
        ", ".join(filter(None, [tally(grades, Grade), f"{grades[None]} without one" if grades[None] else ""])),
    )

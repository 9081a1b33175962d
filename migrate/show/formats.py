"""`show`: a plan in five formats, all from the same selection of rows. Pure: text in lines, no printing."""

import re
from collections.abc import Iterator, Sequence

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Row
from migrate.plan.plan import Plan
from migrate.show.plan_export import csv_lines, json_document, json_lines, kcg_lines
from migrate.show.plan_export import kcg_companion as _kcg_companion
from migrate.show.plan_table import Page, overview, table
from migrate.text import name

FORMATS = ("table", "json", "jsonl", "csv", "kcg")


def render(
    plan: Plan,
    form: str,
    path: str,
    *,
    groups: Sequence[str] = (),
    only: Sequence[str] = (),
    width: int = 80,
    colour: bool = False,
) -> Iterator[str]:
    """Return the lines of a plan in one of `FORMATS`, without their ends; made as they are taken.

    `path` is the plan file as it was typed, `width` the columns of the table. Raises `UsageError` at once,
    before the first line, as `select` does.
    """
    rows = select(plan, groups, only)
    if form == "table":
        return table(plan, rows, Page(path, width, colour))
    if form == "json":
        return json_document(plan, rows)
    if form == "jsonl":
        return json_lines(plan, rows)
    if form == "csv":
        return csv_lines(plan, rows)
    if form == "kcg":
        return kcg_lines(rows)
    raise UsageError(f"There is no format {form!r}.", f"Choose {', '.join(FORMATS)}.")


def summary(
    plan: Plan, path: str, *, width: int = 80, colour: bool = False, cluster_options: tuple[str, ...] = ()
) -> Iterator[str]:
    """Return the table's lines without the groups' rows: what `plan` prints when it is done."""
    return overview(plan, Page(path, width, colour, cluster_options))


def kcg_companion(plan: Plan, path: str, groups: Sequence[str] = (), only: Sequence[str] = ()) -> str:
    """Return the text that goes to stderr beside the kcg form: what it drops, and the commands to type."""
    return _kcg_companion(plan, path, select(plan, groups, only))


def select(plan: Plan, groups: Sequence[str] = (), only: Sequence[str] = ()) -> tuple[Row, ...]:
    """Return the rows whose group matches one of `groups` in full and that fit `only`, in the plan's order.

    `groups` are regular expressions. `only` are decisions, grades or reasons of this plan: words of one kind
    widen each other, words of different kinds narrow (`set`, `keep`, `exact` is "set or keep, and exact").
    Raises `UsageError` for a bad expression, one that no group matches, and a word that is none of these.
    """
    return _chosen(plan.rows, groups, only)


def selected(now: Plan, before: Plan, groups: Sequence[str] = (), only: Sequence[str] = ()) -> tuple[Row, ...]:
    """Return the rows of either plan that `select` would take; a name or a word need stand in one of them only."""
    return _chosen((*now.rows, *before.rows), groups, only)


def _chosen(rows: Sequence[Row], groups: Sequence[str], only: Sequence[str]) -> tuple[Row, ...]:
    patterns = [_pattern(text) for text in groups]
    names = list(dict.fromkeys(row.group for row in rows))
    for pattern in patterns:
        if not any(pattern.fullmatch(group) for group in names):
            some = ", ".join(name(group) for group in names[:5]) + (" ..." if len(names) > 5 else "")
            raise UsageError(
                f"--group {name(pattern.pattern)} matches none of this plan's {len(names)} groups.",
                f"It must match a whole name. Groups: {some or 'none'}.",
            )
    wanted = {group for group in names if not patterns or any(p.fullmatch(group) for p in patterns)}
    reasons = {row.reason for row in rows}
    unknown = [word for word in only if word not in reasons and word not in list(Decision) + list(Grade)]
    if unknown:
        raise UsageError(
            f"--only {name(unknown[0])} is no decision, grade or reason of this plan.",
            f"Decisions: {', '.join(Decision)}. Grades: {', '.join(Grade)}. "
            f"Reasons here: {', '.join(sorted(reasons)) or 'none'}.",
        )
    decisions = {word for word in only if word in list(Decision)}
    grades = {word for word in only if word in list(Grade)}
    codes = {word for word in only if word in reasons} - decisions - grades
    return tuple(
        row
        for row in rows
        if row.group in wanted
        and (not decisions or row.decision in decisions)
        and (not grades or row.grade in grades)
        and (not codes or row.reason in codes)
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--group {name(text)} is no regular expression: {error}.", "Quote it.") from error

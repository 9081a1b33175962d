"""`show`: a plan in any of its formats, all from the same selection of rows. Pure: text in lines, no printing."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from migrate.errors import UsageError
from migrate.model import Decision, Grade, Row
from migrate.plan.plan import Plan
from migrate.show.plan_export import csv_lines, json_document, json_lines, kcg_lines
from migrate.show.plan_table import Page, table
from migrate.text import many, name

# What `--format` may be; the command line has the same words. Lines are made as they are taken, and have no ends.
FORMATS: Mapping[str, Callable[[Plan, Sequence[Row], Page], Iterator[str]]] = {
    "table": table,
    "json": lambda plan, rows, _: json_document(plan, rows),
    "jsonl": lambda plan, rows, _: json_lines(plan, rows),
    "csv": lambda plan, rows, _: csv_lines(plan, rows),
    "kcg": lambda plan, rows, _: kcg_lines(rows),
}


def select(rows: Sequence[Row], groups: Sequence[str] = (), only: Sequence[str] = ()) -> Sequence[Row]:
    """Return the rows whose group matches one of `groups` in full and that fit `only`, in their order.

    Where neither is given these are the rows themselves.

    `groups` are regular expressions, for the name of a group on either side. `only` are decisions, grades or reasons of
    these rows: words of one kind widen each other, words of different kinds narrow (`set`, `keep`, `exact` is "set or
    keep, and exact"). Raises `UsageError` for a bad expression, one that no group matches, and a word that is none of
    these.
    """
    if not groups and not only:
        return rows
    try:
        patterns = [re.compile(text) for text in groups]
    except re.error as error:
        raise UsageError(
            f"--group {name(str(error.pattern))} is not a regular expression: {error}.", "Quote it."
        ) from error
    names = list(dict.fromkeys((row.group, row.group_on_target) for row in rows))
    for pattern in patterns:
        if not any(pattern.fullmatch(group) for both in names for group in both):
            some = ", ".join(name(group) for group, _ in names[:5]) + (" ..." if len(names) > 5 else "")
            raise UsageError(
                f"--group {name(pattern.pattern)} matches none of this plan's {many(len(names), 'group')}.",
                f"It must match a whole name. Groups: {some or 'none'}.",
            )
    chosen = {both[0] for both in names if not patterns or any(p.fullmatch(group) for p in patterns for group in both)}
    reasons = {row.reason for row in rows}
    kinds = (set(Decision), set(Grade), reasons - {*Decision, *Grade})
    unknown = [word for word in only if not any(word in kind for kind in kinds)]
    if unknown:
        raise UsageError(
            f"--only {name(unknown[0])} is not a decision, grade or reason of this plan.",
            f"Decisions: {', '.join(Decision)}. Grades: {', '.join(Grade)}. "
            f"Reasons here: {', '.join(sorted(reasons)) or 'none'}.",
        )
    decisions, grades, codes = (kind.intersection(only) for kind in kinds)
    return tuple(
        row
        for row in rows
        if row.group in chosen
        and (not decisions or row.decision in decisions)
        and (not grades or row.grade in grades)
        and (not codes or row.reason in codes)
    )

"""A plan as JSON: one document, or one line per record. ASCII, so that no name can do anything to a terminal."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from migrate.model import Decision, Grade, Row
from migrate.plan.plan import Plan, row_document
from migrate.plan.totals import Totals, totals
from migrate.show.plan_table import verdict


def json_document(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Yield one JSON document: fingerprint, verdict, totals, header, checks, rows; a row to a line.

    Its schema is published as schema/plan.schema.json. Verdict and totals are the whole plan's.

    `rows_in_plan` is more than the length of `rows` where a selection left some out.
    """
    header = asdict(plan.header)
    checks = header.pop("checks")
    counted = totals(plan)
    yield "{"
    yield f'"fingerprint": {_json(plan.fingerprint)},'
    yield f'"rows_in_plan": {len(plan.rows)},'
    yield f'"verdict": {_json(verdict(plan, counted)[0])},'
    yield f'"totals": {_json(totals_document(counted))},'
    yield f'"header": {_json(header)},'
    yield from _list("checks", checks, len(checks), ",")
    yield from _list("rows", (row_document(row) for row in rows), len(rows), "")
    yield "}"


def totals_document(counted: Totals) -> dict[str, Any]:
    """Return the totals as plain values; rows without a grade stand under "none"."""
    document = asdict(counted)
    document["decisions"] = {str(d): counted.decisions.get(d, 0) for d in Decision}
    document["grades"] = {str(g): counted.grades.get(g, 0) for g in Grade} | {"none": counted.grades.get(None, 0)}
    return document


def json_lines(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for the header (with checks and fingerprint), then one per row; `type` tells which it is."""
    yield _json(
        {
            "type": "header",
            "fingerprint": plan.fingerprint,
            "rows_in_plan": len(plan.rows),
            **asdict(plan.header),
        }
    )
    for row in rows:
        yield _json({"type": "row", **row_document(row)})


def _list(key: str, entries: Iterator[Mapping[str, Any]], count: int, end: str) -> Iterator[str]:
    yield f'"{key}": ['
    for i, entry in enumerate(entries, start=1):
        yield _json(entry) + ("," if i < count else "")
    yield f"]{end}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)

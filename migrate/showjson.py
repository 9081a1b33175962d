"""A plan as JSON: one document, or one line per record. ASCII, so that no name can do anything to a terminal."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate.model import Row
from migrate.plan import Plan, header_document, row_document


def json_document(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Yield one JSON document: fingerprint, header, checks, rows; a row to a line.

    `rows_in_plan` is more than the length of `rows` where a selection left some out.
    """
    header = header_document(plan.header)
    checks = header.pop("checks")
    yield "{"
    yield f'"fingerprint": {_json(plan.fingerprint)},'
    yield f'"rows_in_plan": {len(plan.rows)},'
    yield f'"header": {_json(header)},'
    yield from _list("checks", checks, len(checks), ",")
    yield from _list("rows", (row_document(row) for row in rows), len(rows), "")
    yield "}"


def json_lines(plan: Plan, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for the header (with checks and fingerprint), then one per row; `type` tells which it is."""
    yield _json(
        {
            "type": "header",
            "fingerprint": plan.fingerprint,
            "rows_in_plan": len(plan.rows),
            **header_document(plan.header),
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

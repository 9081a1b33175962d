"""The JSON schema of `show --format json` and `jsonl`, made from the dataclasses and the Avro schema: it cannot lag.

Published as schema/plan.schema.json, beside schema/plan.avsc; tests compare both files with this and validate real
output against them. JSON Schema draft 2020-12. Pure.
"""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

from migrate.model import CheckResult, Decision, Grade
from migrate.plan.file import ROW_SCHEMA_FIELDS
from migrate.plan.plan import FORMAT_VERSION, Header
from migrate.plan.totals import Totals

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"}}
_FINGERPRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 over header and rows, in hex."}
_ROWS_IN_PLAN = {"type": "integer", "minimum": 0, "description": "Rows of the whole plan; `rows` may be a selection."}


def plan_document_schema() -> dict[str, Any]:
    """Return the schema of one document of `show --format json`; `$defs/line` is that of a line of `jsonl`."""
    header = _object(Header)
    bare = {
        **header,
        "properties": {k: v for k, v in header["properties"].items() if k != "checks"},
        "required": [name for name in header["required"] if name != "checks"],
    }
    line = {
        **header,
        "properties": {
            "type": {"const": "header"}, "fingerprint": _FINGERPRINT, "rows_in_plan": _ROWS_IN_PLAN,
            **header["properties"],
        },
        "required": ["type", "fingerprint", "rows_in_plan", *header["required"]],
    }  # fmt: skip
    # From the fields of the Avro schema, which have a sentence each.
    row = _closed({f["name"]: _avro(f["type"]) | {"description": f["doc"]} for f in ROW_SCHEMA_FIELDS}) | {
        "description": "One committed offset of a consumer group, and what becomes of it on the target cluster."
    }
    row_line = {**row, "properties": {"type": {"const": "row"}, **row["properties"]}}
    row_line["required"] = ["type", *row["required"]]
    return {
        "$schema": DIALECT,
        "title": "A plan of mm2-migrate, as `show --format json` prints it",
        **_closed(
            {
                "fingerprint": _FINGERPRINT,
                "rows_in_plan": _ROWS_IN_PLAN,
                "verdict": {"type": "string", "description": "The first line of the table."},
                "beside": {
                    "description": "What the files beside the plan say; null where nobody looked.",
                    "anyOf": [{"$ref": "#/$defs/beside"}, {"type": "null"}],
                },
                "totals": {"$ref": "#/$defs/totals"},
                "header": {"$ref": "#/$defs/header"},
                "checks": {"type": "array", "items": {"$ref": "#/$defs/check"}},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            }
        ),
        "$defs": {
            "totals": _totals(),
            "header": bare | {"description": f"All of the plan (format {FORMAT_VERSION}) but checks and rows."},
            "check": _object(CheckResult),
            "beside": _beside(),
            "row": row,
            "line": {"oneOf": [line, row_line], "description": "A line of `show --format jsonl`."},
        },
    }


def _avro(avro: Any) -> dict[str, Any]:
    if isinstance(avro, list):
        inner = _avro(next(t for t in avro if t != "null"))
        if "enum" in inner:
            return {"enum": [*inner["enum"], None]}
        return {"type": [inner["type"], "null"]}
    if isinstance(avro, Mapping):
        return {"enum": [symbol for symbol in avro["symbols"] if symbol != "unknown"]}
    return {"type": {"string": "string", "int": "integer", "long": "integer"}[avro]}


def _beside() -> dict[str, Any]:
    run = {"command": _PLAIN[str], "began": _PLAIN[str], "ended": _PLAIN[str]}
    return _closed(
        {
            "runs": {
                "type": "array",
                "items": _closed({**run, "exit_code": {"type": ["integer", "null"]}}),
                "description": "Of apply and rollback, by the journal; times in ISO 8601, `ended` empty where unknown.",
            },
            "spent": {"type": "boolean", "description": "The plan was rolled back: it is not applied any more."},
            "complete": {"type": "boolean", "description": "All was read back as planned."},
            "rows": {"type": "object", "additionalProperties": _PLAIN[int], "description": "Rows by their state."},
            "signatures_required": _PLAIN[int],
            "signed_by": {"type": "array", "items": _PLAIN[str]},
        }
    )


def _totals() -> dict[str, Any]:
    schema = _object(Totals)
    count = {"type": "integer", "minimum": 0}
    told = schema["properties"]
    told["decisions"] = _closed({str(d): count for d in Decision})
    told["grades"] = _closed({**{str(g): count for g in Grade}, "none": count})
    return schema | {"description": "What every format adds up, over the whole plan (migrate.plan.totals)."}


def _object(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return _closed({f.name: _of(hints[f.name]) for f in fields(kind)})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Return an object that has all of these and nothing else: an unknown field is a mistake of ours."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _of(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if a is types.NoneType else _of(a) for a in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0])}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1])}
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [str(member) for member in hint]}
    return dict(_PLAIN[hint])

"""What is stored of a plan and its journal keeps its form, or gets another number: other versions go by that."""

import hashlib
import json
from pathlib import Path
from typing import Any

import fastavro

from migrate.apply.history import APPLY
from migrate.apply.undo import digest_of
from migrate.plan.file import PLAN_SCHEMA
from migrate.plan.plan import FORMAT_VERSION
from tests.documentschema import plan_document_schema
from tests.unit.journals import DENIED, FINGERPRINT, P0, P1, journal, one_group

# The start of the SHA-256 of each part.
STORED = {
    "format": 1,
    "header": "427da28a8d442350",
    "rows": "65199f968fe11d16",
    "journal": "c054f160d3064d6c",
    "state that an undo names": "0a41cd8e590e6ec4",
}


def test_what_is_stored_changes_only_with_the_number_of_the_format(tmp_path: Path) -> None:
    defined = plan_document_schema()["$defs"]
    events = events_of_apply(tmp_path / "apply")
    stored = {
        "format": FORMAT_VERSION,
        "header": digest([defined["header"]["properties"], defined["check"]["properties"]]),
        "rows": digest(fastavro.schema.to_parsing_canonical_form(PLAN_SCHEMA)),
        "journal": digest(events),
        "state that an undo names": digest_of(journal(tmp_path / "apply").read())[:16],
    }
    assert stored == STORED, "once a version was released: raise FORMAT_VERSION; then write these values above"


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def events_of_apply(folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    with journal(folder).open(APPLY, {}, name_on_target=str.upper) as writer:
        one_group(writer, DENIED)
        writer.read_back("g", False, {P0: 10, P1: 61})
        writer.spent(FINGERPRINT)
        writer.end(4, {"set": 1})
    return events(journal(folder).path)


def events(path: Path) -> list[dict[str, Any]]:
    """Every event, but for who wrote it."""
    lines = map(json.loads, path.read_text().splitlines())
    return [{name: value for name, value in line.items() if name not in ("pid", "host", "crc")} for line in lines]

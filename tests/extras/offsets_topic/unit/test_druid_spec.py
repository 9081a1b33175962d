"""The Druid supervisor spec in docs/ reads the fields that an export writes, and keeps what is no commit out."""

import json
from pathlib import Path
from typing import Any

from migrate.extras.offsets_topic.export_columns import names
from migrate.extras.offsets_topic.request import ExportKinds

DOCS = Path(__file__).parents[4] / "docs"
SPEC: dict[str, Any] = json.loads((DOCS / "druid-offsets.json").read_text())["spec"]
SCHEMA = SPEC["dataSchema"]


def test_it_reads_fields_that_an_export_of_commits_writes() -> None:
    dimensions = {each if isinstance(each, str) else each["name"] for each in SCHEMA["dimensionsSpec"]["dimensions"]}
    metrics = [each for each in SCHEMA["metricsSpec"] if each["type"] != "count"]
    assert {"group", "topic", "partition"} <= dimensions
    assert dimensions | {each["fieldName"] for each in metrics} <= set(names(ExportKinds.COMMITS))
    assert SCHEMA["timestampSpec"] == {
        "column": "commitTimestamp", "format": "millis", "missingValue": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    assert SPEC["ioConfig"]["inputFormat"] == {"type": "json"}


def test_offsets_are_never_added_up_and_tombstones_stay_out() -> None:
    offsets = [each for each in SCHEMA["metricsSpec"] if each.get("fieldName") == "offset"]
    assert offsets == [{"type": "longMax", "name": "offset", "fieldName": "offset"}]
    assert SCHEMA["transformSpec"]["filter"] == {"type": "selector", "dimension": "tombstone", "value": "false"}


def test_the_page_of_the_export_leads_to_it() -> None:
    page = (DOCS / "consumer-offsets.md").read_text()
    assert "(druid-offsets.json)" in page and SPEC["ioConfig"]["topic"] in page

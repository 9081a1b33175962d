"""The Druid supervisor spec in docs/ reads the fields that an export writes, and keeps what is no commit out."""

import json
from pathlib import Path

from migrate.extras.offsets_topic.export_columns import names
from migrate.extras.offsets_topic.request import ExportKinds

DOCS = Path(__file__).parents[4] / "docs"


def test_it_reads_commits_as_an_export_writes_them_adds_up_no_offsets_and_is_led_to():
    spec = json.loads((DOCS / "druid-offsets.json").read_text())["spec"]
    schema = spec["dataSchema"]
    dimensions = {each if isinstance(each, str) else each["name"] for each in schema["dimensionsSpec"]["dimensions"]}
    metrics = [each for each in schema["metricsSpec"] if each["type"] != "count"]
    assert {"group", "topic", "partition"} <= dimensions
    assert dimensions | {each["fieldName"] for each in metrics} <= set(names(ExportKinds.COMMITS))
    assert schema["timestampSpec"] == {
        "column": "commitTimestamp", "format": "millis", "missingValue": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    assert spec["ioConfig"]["inputFormat"] == {"type": "json"}
    offsets = [each for each in metrics if each["fieldName"] == "offset"]
    assert offsets == [{"type": "longMax", "name": "offset", "fieldName": "offset"}]
    # Tombstones stay out.
    assert schema["transformSpec"]["filter"] == {"type": "selector", "dimension": "tombstone", "value": "false"}
    page = (DOCS / "consumer-offsets.md").read_text()
    assert "(druid-offsets.json)" in page and spec["ioConfig"]["topic"] in page

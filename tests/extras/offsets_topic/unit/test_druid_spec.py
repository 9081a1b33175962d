"""The Druid supervisor spec in docs/ has the form that Druid documents, and names the fields that an export writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from migrate.extras.offsets_topic.export_columns import names
from migrate.extras.offsets_topic.request import ExportKinds

DOCS = Path(__file__).parents[4] / "docs"
NAME = {"type": "string", "minLength": 1}


def an_object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these fields and no others: a field that Druid does not know is one that it overlooks."""
    fields = required | (optional or {})
    return {"type": "object", "required": sorted(required), "properties": fields, "additionalProperties": False}


# Druid's reference: "Supervisor", "Apache Kafka ingestion" and "Ingestion spec reference", as far as the spec goes.
DIMENSION = {"anyOf": [NAME, an_object({"type": {"enum": ["string", "long", "float", "double"]}, "name": NAME})]}
AGGREGATOR = {
    "anyOf": [
        an_object({"type": {"const": "count"}, "name": NAME}),
        an_object({"type": {"enum": ["longMin", "longMax"]}, "name": NAME, "fieldName": NAME}),
    ]
}
GRANULARITY = {"enum": ["none", "second", "minute", "five_minute", "hour", "day", "week", "month"]}
PERIOD = {"type": "string", "pattern": "^P[0-9T]"}
DATA_SCHEMA = an_object(
    {
        "dataSource": NAME,
        "timestampSpec": an_object(
            {"column": NAME, "format": {"enum": ["iso", "posix", "millis", "micro", "nano", "auto"]}},
            {"missingValue": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"}},
        ),
        "dimensionsSpec": an_object({"dimensions": {"type": "array", "items": DIMENSION}}),
        "metricsSpec": {"type": "array", "items": AGGREGATOR},
        "granularitySpec": an_object(
            {"segmentGranularity": GRANULARITY, "queryGranularity": GRANULARITY, "rollup": {"type": "boolean"}},
            {"type": {"const": "uniform"}},
        ),
    },
    {
        "transformSpec": an_object(
            {},
            {
                "transforms": {
                    "type": "array",
                    "items": an_object({"type": {"const": "expression"}, "name": NAME, "expression": NAME}),
                },
                "filter": an_object({"type": {"const": "selector"}, "dimension": NAME, "value": NAME}),
            },
        )
    },
)
IO_CONFIG = an_object(
    {
        "topic": NAME,
        "inputFormat": an_object({"type": {"const": "json"}}),
        "consumerProperties": {"type": "object", "required": ["bootstrap.servers"]},
    },
    {
        "useEarliestOffset": {"type": "boolean"},
        "taskCount": {"type": "integer", "minimum": 1},
        "replicas": {"type": "integer", "minimum": 1},
        "taskDuration": PERIOD,
    },
)
SUPERVISOR = an_object(
    {
        "type": {"const": "kafka"},
        "spec": an_object(
            {"dataSchema": DATA_SCHEMA, "ioConfig": IO_CONFIG},
            {"tuningConfig": an_object({"type": {"const": "kafka"}}, {"maxRowsPerSegment": {"type": "integer"}})},
        ),
    },
    {"suspended": {"type": "boolean"}},
)


def spec() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DOCS / "druid-offsets.json").read_text())
    return loaded


def fields_of(schema: dict[str, Any]) -> Iterator[str]:
    """The fields of the JSON lines that a data schema reads."""
    yield schema["timestampSpec"]["column"]
    yield from (each if isinstance(each, str) else each["name"] for each in schema["dimensionsSpec"]["dimensions"])
    yield from (each["fieldName"] for each in schema["metricsSpec"] if each["type"] != "count")
    yield schema["transformSpec"]["filter"]["dimension"]


def test_the_spec_has_the_form_that_druid_documents() -> None:
    jsonschema.Draft202012Validator(SUPERVISOR).validate(spec())


@pytest.mark.parametrize("place", ["type", "spec.ioConfig.inputFormat", "spec.dataSchema.timestampSpec.column"])
def test_the_form_notices_what_is_missing(place: str) -> None:
    broken = spec()
    *folders, name = place.split(".")
    inside = broken
    for folder in folders:
        inside = inside[folder]
    del inside[name]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SUPERVISOR).validate(broken)


def test_it_reads_fields_that_an_export_of_commits_writes() -> None:
    schema = spec()["spec"]["dataSchema"]
    assert set(fields_of(schema)) <= set(names(ExportKinds.COMMITS))
    assert schema["timestampSpec"] == {
        "column": "commitTimestamp", "format": "millis", "missingValue": "1970-01-01T00:00:00Z",
    }  # fmt: skip


def test_a_row_is_a_partition_of_a_group_its_offsets_are_never_added_up_and_tombstones_stay_out() -> None:
    schema = spec()["spec"]["dataSchema"]
    assert {"group", "topic", "partition"} <= set(fields_of(schema))
    offsets = [each for each in schema["metricsSpec"] if each.get("fieldName") == "offset"]
    assert offsets == [{"type": "longMax", "name": "offset", "fieldName": "offset"}]
    assert schema["transformSpec"]["filter"] == {"type": "selector", "dimension": "tombstone", "value": "false"}


def test_the_page_of_the_export_leads_to_it() -> None:
    page = (DOCS / "consumer-offsets.md").read_text()
    assert "(druid-offsets.json)" in page and spec()["spec"]["ioConfig"]["topic"] in page

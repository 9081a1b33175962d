"""The published schemas: what is on disk is what the code makes, and what the product prints fits it."""

import json
import os
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from migrate.model import Grade
from migrate.plan.file import PLAN_SCHEMA, write_plan
from migrate.row_table import GroupRows, row_document
from tests.builders import make_check, make_plan, make_row
from tests.documentschema import plan_document_schema
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render

PUBLISHED = Path(__file__).parents[3] / "schema"


def published(name: str) -> Any:
    return json.loads((PUBLISHED / name).read_text())


def document(plan, **options) -> Any:
    return json.loads("\n".join(render(plan, "json", "cutover.plan", **options)))


@pytest.mark.parametrize(
    ("name", "made"), [("plan.schema.json", plan_document_schema()), ("plan.avsc", PLAN_SCHEMA)]
)  # fmt: skip
def test_the_published_file_is_what_the_code_makes(name, made):
    """MM2_MIGRATE_REWRITE_GOLDEN=1 rewrites it, to be read as a diff."""
    if os.environ.get("MM2_MIGRATE_REWRITE_GOLDEN"):
        (PUBLISHED / name).write_text(json.dumps(made, indent=2) + "\n")
    assert published(name) == made


def test_the_schema_itself_is_valid():
    Draft202012Validator.check_schema(published("plan.schema.json"))


def test_json_of_an_undo_fits_the_schema():
    undo = make_plan([make_row()], kind="undo", undoes="a" * 64, undoes_events=7, undoes_digest="b" * 64)
    Draft202012Validator(published("plan.schema.json")).validate(document(undo))


@pytest.mark.parametrize("options", [{}, {"groups": ["billing"]}, {"only": ["set", "exact"]}])
def test_json_of_a_plan_with_everything_fits_the_schema(options):
    Draft202012Validator(published("plan.schema.json")).validate(document(golden_plan(), **options))


def test_every_line_of_jsonl_fits_the_schema_of_a_line():
    schema = published("plan.schema.json")
    line = Draft202012Validator({"$ref": "#/$defs/line", "$defs": schema["$defs"]})
    for text in render(golden_plan(), "jsonl", "cutover.plan"):
        line.validate(json.loads(text))


@given(st.lists(st.builds(make_row, st.text(max_size=5), partition=st.integers(0, 99), grade=st.sampled_from(Grade)),
                max_size=4, unique_by=lambda row: row.key))  # fmt: skip
def test_json_of_any_plan_fits_the_schema(rows):
    plan = make_plan(rows, checks=(make_check(),))
    Draft202012Validator(plan_document_schema()).validate(document(plan))


@pytest.mark.parametrize("path", [["header"], ["rows", 0], ["checks", 0], ["totals"], ["totals", "mm2"], []])
def test_a_field_too_many_or_too_few_does_not_fit(path):
    validator = Draft202012Validator(published("plan.schema.json"))
    for change in ("add", "remove"):
        made = document(golden_plan())
        place = made
        for step in path:
            place = place[step]
        if change == "add":
            place["surprise"] = 1
        else:
            del place[next(iter(place))]
        assert not validator.is_valid(made), (path, change)


def test_a_plan_file_is_read_with_the_published_avro_schema(tmp_path):
    plan, path = golden_plan(), tmp_path / "cutover.plan"
    write_plan(plan, path)
    with path.open("rb") as file:
        tables = list(fastavro.reader(file, reader_schema=fastavro.parse_schema(published("plan.avsc"))))
    for table in tables:
        table.update({name: column["items"] for name, column in table.items() if isinstance(column, dict)})
    assert [row_document(row) for table in tables for row in GroupRows.of_table(table, {})] == (document(plan)["rows"])

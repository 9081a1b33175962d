"""The plan file: what is written is read back, no damage goes unnoticed, and the published schemas fit what is made."""

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import fastavro
import pytest
from jsonschema import Draft202012Validator

from migrate.errors import EXIT_FAILED, EXIT_REFUSED, MigrateError, Refused, UnreadablePlan, UsageError
from migrate.plan import file
from migrate.plan.companions import journal_path
from migrate.plan.file import FINGERPRINT_KEY, FORMAT_KEY, HEADER_KEY, PLAN_SCHEMA, read_plan, write_plan
from migrate.plan.plan import FORMAT_VERSION, Header, Plan
from migrate.row_table import GroupRows, PlanRows, row_document
from tests.builders import make_check, make_plan, make_row
from tests.documentschema import plan_document_schema
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render

OFFSETS = [field["name"] for field in file.ROW_SCHEMA_FIELDS if field["type"] == ["null", "long"]]
UNDO = {"kind": "undo", "undoes": "ab" * 32, "undoes_events": 7, "undoes_digest": "b" * 64}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_plan(golden_plan(), tmp_path / "cutover.plan")
    return tmp_path / "cutover.plan"


def test_a_plan_is_read_back_as_it_was_also_without_rows_and_the_same_plan_gives_the_same_bytes(written, tmp_path):
    assert read_plan(written) == golden_plan()
    assert written.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["cutover.plan"]
    write_plan(golden_plan(), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == written.read_bytes()
    write_plan(make_plan(), tmp_path / "p")
    assert read_plan(tmp_path / "p") == make_plan()


def test_a_name_that_is_no_unicode_text_is_refused_by_name_and_leaves_nothing(tmp_path):
    with pytest.raises(MigrateError, match=r"x\\udc80"):
        write_plan(make_plan([make_row("x\udc80")]), tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_was_cut_short_is_never_read_and_a_flipped_bit_is_told_or_changes_nothing(tmp_path):
    """Cut between two blocks it is a whole file of fewer groups, which its fingerprint refuses."""
    path, told = tmp_path / "cutover.plan", 0
    plan = make_plan([make_row(), make_row("payments")], checks=(make_check(),))
    write_plan(plan, path)
    content = path.read_bytes()
    for length in (*range(64), *range(64, len(content), 37)):
        path.write_bytes(content[:length])
        with pytest.raises((UnreadablePlan, Refused), match=r"cutover\.plan"):
            read_plan(path)
    for i in range(0, len(content), 5):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1 << (i % 8)]) + content[i + 1 :])
        try:
            assert read_plan(path) == plan  # a document's text, or padding: nothing that counts
        except (UnreadablePlan, Refused) as error:
            told += 1
            assert str(path) in str(error) and error.todo
    assert told > len(content) // 5 // 3


def rewrite(path: Path, plan: Plan, **metadata: str):
    """Write a plan's file with other metadata, as somebody would who edits it with an Avro tool."""
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        entries = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")} | metadata
        schema = reader.writer_schema
    left = {k: v for k, v in entries.items() if v}
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, map(stored, plan.groups().values()), metadata=left, codec="deflate")


def stored(rows: GroupRows) -> dict:
    """A group's table as the published schema has it."""
    columns = rows.document()
    return {n: {"items": c} if n in OFFSETS and None in c else c for n, c in columns.items()}


def test_what_another_tool_rewrites_is_no_edit_and_an_edit_is_refused_with_both_fingerprints(written):
    plan = golden_plan()
    rewrite(written, plan)
    assert read_plan(written) == plan
    edited, *others = plan.rows
    changed = Plan(plan.header, PlanRows.of((edited._replace(target_offset=651), *others)))
    fewer = Plan(plan.header, PlanRows.of(others))
    header = json.dumps(asdict(plan.header) | {"target_cluster_id": "another"})
    for made, metadata in ((changed, {}), (fewer, {}), (plan, {HEADER_KEY: header})):
        rewrite(written, made, **metadata)
        with pytest.raises(Refused, match="was edited or damaged after it was made") as refused:
            read_plan(written)
        assert refused.value.exit_code == EXIT_REFUSED and plan.fingerprint[:12] in str(refused.value)
        assert metadata or made.fingerprint[:12] in str(refused.value)


def test_a_plan_of_another_format_is_refused_by_its_number_and_one_that_lacks_our_metadata_is_none(written):
    for entry, said in (
        ({FORMAT_KEY: "2"}, "format '2'.*reads format 1.*version of mm2-migrate that made it"),
        ({HEADER_KEY: json.dumps(asdict(golden_plan().header) | {"format_version": 2})}, "format 2 in the header"),
        *(({key: ""}, "but not a plan") for key in (FORMAT_KEY, HEADER_KEY, FINGERPRINT_KEY)),
    ):
        write_plan(golden_plan(), written)
        rewrite(written, golden_plan(), **entry)
        with pytest.raises(UnreadablePlan, match=said):
            read_plan(written)
        written.unlink()


def test_a_file_that_is_no_plan_is_unreadable_and_named_and_not_overwritten_and_what_is_not_there_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    for content in (b"", b"Obj\x01 damaged", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(UnreadablePlan, match=r"notes\.txt") as unreadable:
            read_plan(path)
        assert unreadable.value.todo and unreadable.value.exit_code == EXIT_FAILED
        with pytest.raises(Refused, match="not overwritten"):
            write_plan(make_plan(), path)
        assert path.read_bytes() == content
    with pytest.raises(UsageError, match="no folder"):
        write_plan(make_plan(), tmp_path / "nowhere" / "p")
    for nothing, said in ((tmp_path / "nowhere.plan", r"nowhere\.plan.*No such file"), (tmp_path, "directory")):
        with pytest.raises(UnreadablePlan, match=said):
            read_plan(nothing)


def test_a_plan_with_a_journal_is_not_overwritten(written):
    before = written.read_bytes()
    journal_path(written, "0" * 64).write_text("{}\n")  # of another plan of that name
    file.refuse_overwrite(written)
    write_plan(golden_plan(), written)
    journal_path(written, golden_plan().fingerprint).write_text("{}\n")
    for overwrite in (file.refuse_overwrite, lambda path: write_plan(make_plan(), path)):
        with pytest.raises(Refused, match="journal"):
            overwrite(written)
    assert written.read_bytes() == before


def test_a_plan_that_came_to_be_applied_while_another_was_written_over_it_stays(written, monkeypatch):
    before, write = written.read_bytes(), file._write

    def applied_meanwhile(plan, into):
        write(plan, into)
        journal_path(written, golden_plan().fingerprint).write_text("{}\n")

    monkeypatch.setattr(file, "_write", applied_meanwhile)
    with pytest.raises(Refused, match="being the way back"):
        write_plan(make_plan(), written)
    assert written.read_bytes() == before and len(list(written.parent.iterdir())) == 2


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


def test_json_fits_the_published_schema_and_every_line_of_jsonl_that_of_a_line():
    schema = published("plan.schema.json")
    Draft202012Validator.check_schema(schema)
    whole, line = (Draft202012Validator(each) for each in (schema, {"$ref": "#/$defs/line", "$defs": schema["$defs"]}))
    for options in ({}, {"groups": ["billing"]}, {"only": ["set", "exact"]}):
        whole.validate(document(golden_plan(), **options))
    whole.validate(document(make_plan([make_row()], **UNDO)))
    for text in render(golden_plan(), "jsonl", "cutover.plan"):
        line.validate(json.loads(text))


def test_a_plan_file_is_read_with_the_published_avro_schema_and_holds_no_more_than_the_plan(written):
    """What is not in header or rows is in no plan: `Cluster.properties` with passwords cannot slip in."""
    plan = golden_plan()
    with written.open("rb") as stream:
        reader = fastavro.reader(stream, reader_schema=fastavro.parse_schema(published("plan.avsc")))
        tables = list(reader)
    ours = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    header = json.loads(ours.pop(HEADER_KEY))
    assert ours == {FORMAT_KEY: str(FORMAT_VERSION), FINGERPRINT_KEY: plan.fingerprint}
    assert set(header) == {f.name for f in fields(Header)} and header["source_alias"] == "A"
    for table in tables:
        table.update({name: column["items"] for name, column in table.items() if isinstance(column, dict)})
    assert [row_document(row) for table in tables for row in GroupRows.of_table(table, {})] == document(plan)["rows"]

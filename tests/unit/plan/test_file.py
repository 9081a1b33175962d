"""The plan file: what is written is read back, no damage goes unnoticed, and the published schemas fit what is made."""

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from migrate.errors import EXIT_FAILED, EXIT_REFUSED, MigrateError, Refused, UnreadablePlan, UsageError
from migrate.model import Grade, Row
from migrate.plan import file
from migrate.plan.companions import journal_path
from migrate.plan.file import (
    FINGERPRINT_KEY,
    FORMAT_KEY,
    HEADER_KEY,
    PLAN_SCHEMA,
    ROW_SCHEMA_FIELDS,
    read_plan,
    refuse_overwrite,
    write_plan,
)
from migrate.plan.plan import FORMAT_VERSION, Header, PinnedRange, Plan, PlannedActivity, PlannedGroupState
from migrate.row_table import GroupRows, PlanRows, row_document
from tests.builders import make_check, make_plan, make_row
from tests.documentschema import plan_document_schema
from tests.unit.goldenplan import golden_plan
from tests.unit.pages import render

OFFSETS = [field["name"] for field in ROW_SCHEMA_FIELDS if field["type"] == ["null", "long"]]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "cutover.plan"
    write_plan(golden_plan(), path)
    return path


def test_every_field_of_the_header_is_read_back(tmp_path):
    plan = make_plan(
        [make_row()],
        waivers=("a:b", "c"),
        target_topic_ids={"A.orders": "id"},
        pinned=(PinnedRange("source", "orders", 0, 0, 1000),),
        group_states=(PlannedGroupState("target", "billing", "Absent", 0, "classic"),),
        checks=(make_check(),),
        mm2_counts={"checkpoints topic: checkpoint": 3},
        timings={"commits": 0.1 + 0.2},
        kind="undo",
        undoes="ab" * 32,
        comparison={"partitions": 3, "left_out": 1},
        source_topic_ids={"orders": "id"},
        activity=(PlannedActivity("billing", 7, None, None), PlannedActivity("g", 8, 5_000, 0)),
    )
    write_plan(plan, tmp_path / "p")
    assert asdict(read_plan(tmp_path / "p").header) == asdict(plan.header)


def test_a_plan_is_read_back_as_it_was_also_without_rows_and_the_same_plan_gives_the_same_bytes(written, tmp_path):
    assert read_plan(written) == golden_plan()
    write_plan(golden_plan(), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == written.read_bytes()
    write_plan(make_plan(), tmp_path / "p")
    assert read_plan(tmp_path / "p") == make_plan()


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
offsets = st.none() | st.integers(0, 2**63 - 1)


@given(group=names, topic=names, metadata=names, offset=offsets, setting=st.text(max_size=8))
def test_any_name_and_offset_survives_the_file(tmp_path_factory, group, topic, metadata, offset, setting):
    row = make_row(group, topic, source_metadata=metadata, source_committed=offset, target_prior=offset)
    plan = make_plan([row], settings={"group": setting})
    path = tmp_path_factory.mktemp("any") / "p"
    write_plan(plan, path)
    assert read_plan(path) == plan


def test_a_name_that_is_no_unicode_text_is_refused_by_name_and_leaves_nothing(tmp_path):
    with pytest.raises(MigrateError, match=r"x\\udc80"):
        write_plan(make_plan([make_row("x\udc80")]), tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_a_plan_and_no_other_file_is_left(written):
    assert written.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in written.parent.iterdir()] == ["cutover.plan"]


def test_the_schema_has_the_rows_fields_in_their_order_each_with_a_document():
    assert [f["name"] for f in ROW_SCHEMA_FIELDS] == list(Row._fields)
    assert [f["name"] for f in PLAN_SCHEMA["fields"]] == list(Row._fields)
    assert all(f["doc"] for f in PLAN_SCHEMA["fields"])


@pytest.mark.parametrize("position", ["start", "every"])
def test_a_plan_that_was_cut_short_is_never_read(written, position):
    """Between two blocks of the file it is a whole file of fewer groups, which its fingerprint refuses."""
    content = written.read_bytes()
    lengths = range(64) if position == "start" else range(64, len(content), 37)
    for length in lengths:
        written.write_bytes(content[:length])
        with pytest.raises((UnreadablePlan, Refused), match=r"cutover\.plan"):
            read_plan(written)


def test_a_flipped_bit_is_told_or_changes_nothing(tmp_path):
    path = tmp_path / "p"
    plan = make_plan([make_row(), make_row("payments")], checks=(make_check(),))
    write_plan(plan, path)
    content = path.read_bytes()
    told = 0
    for i in range(0, len(content), 5):
        damaged = bytearray(content)
        damaged[i] ^= 1 << (i % 8)
        path.write_bytes(damaged)
        try:
            assert read_plan(path) == plan  # a document's text, or padding: nothing that counts
        except (UnreadablePlan, Refused) as error:
            told += 1
            assert str(path) in str(error)
            assert error.todo
    assert told > len(content) // 5 // 3


def rewrite(path: Path, plan: Plan, **metadata: str):
    """Write a plan's file with other metadata, as somebody would who edits it with an Avro tool."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        entries = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")} | metadata
        schema = reader.writer_schema
    left = {k: v for k, v in entries.items() if v}
    with path.open("wb") as file:
        fastavro.writer(file, schema, map(stored, plan.groups().values()), metadata=left, codec="deflate")


def stored(rows: GroupRows) -> dict:
    """A group's table as the published schema has it."""
    columns = rows.document()
    return {n: {"items": c} if n in OFFSETS and None in c else c for n, c in columns.items()}


def test_an_edited_row_is_refused_and_both_fingerprints_are_named(written):
    plan = golden_plan()
    edited = Plan(plan.header, PlanRows.of((plan.rows[0]._replace(target_offset=651), *plan.rows[1:])))
    rewrite(written, edited)
    with pytest.raises(Refused, match="edited or damaged") as refused:
        read_plan(written)
    assert refused.value.exit_code == EXIT_REFUSED
    assert plan.fingerprint[:12] in str(refused.value) and edited.fingerprint[:12] in str(refused.value)


def test_a_row_taken_out_or_an_edited_header_is_refused_and_what_another_tool_rewrites_is_no_edit(written):
    plan = golden_plan()
    rewrite(written, plan)
    assert read_plan(written) == plan
    other = json.dumps(asdict(plan.header) | {"target_cluster_id": "another"})
    for rows, metadata in ((plan.rows[:-1], {}), (plan.rows, {HEADER_KEY: other})):
        rewrite(written, Plan(plan.header, PlanRows.of(rows)), **metadata)
        with pytest.raises(Refused, match="was edited or damaged after it was made"):
            read_plan(written)


def test_a_plan_of_another_format_is_refused_by_its_number_and_told_what_to_do(written, tmp_path):
    rewrite(written, golden_plan(), **{FORMAT_KEY: "2"})
    with pytest.raises(UnreadablePlan, match="format '2'.*reads format 1.*version of mm2-migrate that made it"):
        read_plan(written)
    plan = make_plan([make_row()], format_version=2)
    write_plan(plan, tmp_path / "p")
    rewrite(tmp_path / "p", plan, **{FORMAT_KEY: "1"})
    with pytest.raises(UnreadablePlan, match="format 2 in the header"):
        read_plan(tmp_path / "p")


@pytest.mark.parametrize("key", [FORMAT_KEY, HEADER_KEY, FINGERPRINT_KEY])
def test_an_avro_file_that_lacks_our_metadata_is_no_plan(written, key):
    rewrite(written, golden_plan(), **{key: ""})
    with pytest.raises(UnreadablePlan, match="but not a plan"):
        read_plan(written)


@pytest.mark.parametrize("content", [b"", b"Obj", b"Obj\x01 damaged", b"PK\x03\x04", b"a letter", b"\x00" * 999])
def test_a_file_that_is_no_plan_is_unreadable_and_named_and_not_overwritten(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UnreadablePlan, match=r"notes\.txt") as unreadable:
        read_plan(path)
    assert unreadable.value.todo and unreadable.value.exit_code == EXIT_FAILED
    with pytest.raises(Refused, match="not overwritten"):
        write_plan(make_plan(), path)
    assert path.read_bytes() == content


def test_a_plan_with_a_journal_is_not_overwritten(written):
    before = written.read_bytes()
    journal_path(written, "0" * 64).write_text("{}\n")  # of another plan of that name
    refuse_overwrite(written)
    write_plan(golden_plan(), written)
    journal_path(written, golden_plan().fingerprint).write_text("{}\n")
    for overwrite in (refuse_overwrite, lambda path: write_plan(make_plan(), path)):
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


def test_what_is_not_there_and_a_folder_are_named(tmp_path):
    with pytest.raises(UsageError, match="no folder"):
        write_plan(make_plan(), tmp_path / "nowhere" / "p")
    with pytest.raises(UnreadablePlan, match=r"nowhere\.plan.*No such file"):
        read_plan(tmp_path / "nowhere.plan")
    with pytest.raises(UnreadablePlan, match="directory"):
        read_plan(tmp_path)


def test_the_file_holds_no_more_than_the_plan(tmp_path):
    """What is not in header or rows is in no plan: `Cluster.properties` with passwords cannot slip in."""
    write_plan(make_plan([make_row()]), tmp_path / "p")
    with (tmp_path / "p").open("rb") as file:
        reader = fastavro.reader(file)
    ours = {k for k in reader.metadata if not k.startswith("avro.")}
    assert ours == {FORMAT_KEY, HEADER_KEY, FINGERPRINT_KEY}
    assert set(json.loads(reader.metadata[HEADER_KEY])) == {f.name for f in fields(Header)}


def test_what_an_undo_was_made_from_is_in_its_file_and_in_its_fingerprint(tmp_path):
    state = {"undoes": "a" * 64, "undoes_events": 7, "undoes_digest": "b" * 64}
    undo = make_plan([make_row()], kind="undo", **state)
    write_plan(undo, tmp_path / "p")
    assert read_plan(tmp_path / "p") == undo
    for other in ({"undoes_events": 8}, {"undoes_digest": "c" * 64}):
        assert make_plan([make_row()], kind="undo", **(state | other)).fingerprint != undo.fingerprint


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
        reader = fastavro.reader(file, reader_schema=fastavro.parse_schema(published("plan.avsc")))
        tables = list(reader)
    assert reader.metadata[FORMAT_KEY] == str(FORMAT_VERSION)
    assert reader.metadata[FINGERPRINT_KEY] == plan.fingerprint
    assert json.loads(reader.metadata[HEADER_KEY])["source_alias"] == "A"
    for table in tables:
        table.update({name: column["items"] for name, column in table.items() if isinstance(column, dict)})
    assert [row_document(row) for table in tables for row in GroupRows.of_table(table, {})] == (document(plan)["rows"])

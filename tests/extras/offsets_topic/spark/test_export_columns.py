"""The forms of an export say the same, whatever stands in names and metadata; CSV is as Python would write it."""

import csv
import io
import json
import unicodedata

import pytest

from migrate.extras.offsets_topic import export_columns
from migrate.extras.offsets_topic.chosen import chosen_and_written
from migrate.extras.offsets_topic.csv_columns import csv_rows
from migrate.extras.offsets_topic.request import ExportKinds, ExportRequest
from migrate.model import LogRange
from migrate.show.table import csv_cell, harmless
from migrate.spark.consumer_offsets import offsets_session
from migrate.survey.offsets_wire import CommitValue
from migrate.text import FORMULA_STARTS
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue, GroupValueMember
from tests.spark.offsetstopic import COLUMNS
from tests.spark.records import in_jvm

TEXTS = ["", "plain", " blanks ", 'quo"ted', "com,ma", "line\nend", "line\r\nend", "back\\slash", "\x00\x1f", "名前 😀",
         "#x", "''", '""', "null", "\\N", "=1+1", "a\x1bb", " @x", "\u202egro", "-1"]  # fmt: skip
MEMBER = GroupValueMember("m,1", None, 'c"\x7f\u202e\x1b', "/h\n", 1, 2)


@pytest.fixture(scope="module")
def forms(spark):
    """What each kind of an export is in every form; compiled queries for all kinds, as for a long topic."""
    quick = offsets_session(lambda: spark, is_small=True)
    return {kinds: forms_of(spark if kinds == ExportKinds.ALL else quick, kinds) for kinds in ExportKinds}


def forms_of(spark, kinds):
    rows = []
    for number, text in enumerate(TEXTS):
        commit = commit_value(CommitValue(3, number, None, text, 7))
        rows.append((commit_key(f"g{text}", f"t{text}", 0), commit, 0, number, 9))
    group = group_value(GroupValue("classic", 3, "consumer", 1, None, None, 5, (MEMBER,)))
    rows.append((group_key(2, "g"), group, 0, len(TEXTS), 9))
    whole, found = in_jvm(spark, rows, COLUMNS), []

    def write(chosen):
        text = io.StringIO("".join(line + "\n" for line in chosen.csv_lines()), newline="")
        table = [row.asDict(recursive=True) for row in chosen.table().collect()]
        found[:] = [json.loads(line) for line in chosen.json_lines()], list(csv.DictReader(text)), table
        return len(table)

    chosen_and_written(lambda logs: whole, {0: LogRange(0, len(rows))}, 1, ExportRequest(kinds=kinds), None, write)
    return found


@pytest.mark.parametrize("kinds", list(ExportKinds))
def test_each_field_is_the_same_in_every_form_and_harmless_in_csv_and_stands_in_the_same_order(forms, kinds):
    in_json, in_csv, in_table = forms[kinds]
    fields = export_columns.names(kinds)
    assert len(in_json) == {"commits": len(TEXTS), "groups": 1, "all": len(TEXTS) + 1}[kinds]
    for line, row, columns in zip(in_json, in_csv, in_table, strict=True):
        assert tuple(row) == tuple(columns) == fields
        assert set(line) <= set(fields) and (kinds == "all" or tuple(line) == fields)
        for name in fields:
            value = line.get(name)
            assert columns[name] == value, name
            if name == "members":
                assert json.loads(row[name] or "null") == value
            else:  # as other CSV of ours has it
                assert row[name] == ("" if value is None else str(csv_cell(value)))
            assert row[name].isprintable()


def test_members_are_told_without_what_they_subscribe_to(forms):
    ((line,), _, _) = forms[ExportKinds.GROUPS]
    assert line["members"] == [
        {"memberId": "m,1", "groupInstanceId": None, "clientId": 'c"\x7f\u202e\x1b', "clientHost": "/h\n",
         "rebalanceTimeout": 1, "sessionTimeout": 2},
    ]  # fmt: skip
    assert (line["kind"], line["protocolType"], line["leader"]) == ("classic", "consumer", None)


def cells(spark, texts):
    """Each text as a cell, in order."""
    frame = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "number int, text string")
    rows = csv.reader(row.line for row in csv_rows(frame.coalesce(1)).collect())
    return [text for _, text in rows]


def test_each_character_is_escaped_where_python_escapes_it(spark):
    # Java and Python may know different years of Unicode: only what both have known for long can be compared.
    known = [chr(n) for n in range(0x3100) if unicodedata.ucd_3_2_0.category(chr(n)) != "Cn"]
    # A row for each would take a while: a blank of two kinds tells where one ends.
    texts = [" x ".join(known[at : at + 50]) for at in range(0, len(known), 50)]
    texts += ["\ue000\ufeff\U000e0001\U000f0000\U0010fffd😀", "\\x1b", "\x1b[2J"]
    assert cells(spark, texts) == list(map(harmless, texts))


def test_what_a_spreadsheet_would_run_has_an_apostrophe_before_it(spark):
    formulas = [f"{before}{start}1" for before in ("", "  ") for start in FORMULA_STARTS]
    found = cells(spark, [*formulas, "'1", "x=1"])
    assert found == list(map(harmless, [*formulas, "'1", "x=1"]))
    assert all(text.startswith("'") for text in found[: len(formulas)])


def test_numbers_stay_numbers_none_is_an_empty_cell_and_lists_are_json_without_control_characters(spark):
    text = "\x7f\u202e\x1b=é"
    shape = "number int, none string, empty string, is_so boolean, members array<struct<id: string>>"
    (row,) = csv_rows(spark.createDataFrame([(-5, None, "", True, [(text,)])], shape)).collect()
    ((*others, cell),) = csv.reader([row.line])
    assert others == ["-5", "", "", "true"] and row.line.startswith('-5,,"",true,')
    assert cell.isprintable() and json.loads(cell) == [{"id": text}]

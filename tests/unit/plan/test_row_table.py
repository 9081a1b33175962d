"""Rows as columns: nothing is lost on the way there and back, and a table that does not fit gives no rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import Decision, Grade, Method, Row
from migrate.plan.plan import fingerprint
from migrate.plan.row_table import ROW_FIELDS, row_document, rows_of, tables_of
from tests.builders import make_header, make_row
from tests.unit.goldenplan import golden_rows


def back(tables: list[dict]) -> list[Row]:
    known: dict[str, str] = {}
    return [row for table in tables for row in rows_of(table, known)]


def some_rows() -> st.SearchStrategy[list[Row]]:
    few = st.sampled_from(["", "a", "b"])
    row = st.builds(
        make_row, st.sampled_from(["billing", "payments"]), few, st.integers(0, 3), source_metadata=few, sentence=few,
        source_committed=st.sampled_from([None, 0, 7]), target_offset=st.sampled_from([None, 0, 7]),
        decision=st.sampled_from(Decision), method=st.none() | st.sampled_from(Method),
        grade=st.none() | st.sampled_from(Grade),
    )  # fmt: skip
    return st.lists(row, max_size=8).map(lambda rows: sorted(rows, key=lambda row: row.key))


@given(some_rows())
def test_rows_come_back_from_their_tables_as_they_were(rows):
    tables = list(tables_of(rows))
    assert back(tables) == rows
    assert [table["group"] for table in tables] == sorted({row.group for row in rows})


@given(some_rows(), some_rows())
def test_two_plans_have_one_fingerprint_only_if_their_rows_are_the_same(one, other):
    header = make_header()
    assert (fingerprint(header, one) == fingerprint(header, other)) == (one == other)


def test_a_column_whose_rows_agree_is_stored_once_but_partition_says_how_many_rows_there_are():
    rows = [make_row(topic=topic, partition=0, source_committed=n) for n, topic in enumerate(("bills", "orders"))]
    (table,) = tables_of(rows)
    assert table["group"] == "billing" and table["partition"] == [0, 0]
    assert table["source_topic"] == ["bills", "orders"] and table["source_committed"] == [0, 1]
    assert table["decision"] == ["set"] and table["target_metadata"] == [""]


@pytest.mark.parametrize("name", [name for name in ROW_FIELDS if name not in ("group", "partition")])
def test_a_table_with_a_column_of_another_length_gives_no_rows(name):
    (table,) = tables_of([make_row(partition=p) for p in range(3)])
    for count in (0, 2, 4):
        with pytest.raises(ValueError, match="than argument"):
            back([table | {name: table[name] * count}])


def test_a_table_with_a_column_too_few_or_too_many_gives_no_rows():
    (table,) = tables_of([make_row()])
    with pytest.raises(ValueError, match="surprise"):
        back([table | {"surprise": [1]}])
    del table["sentence"]
    with pytest.raises(ValueError, match="sentence"):
        back([table])


@pytest.mark.parametrize("name", ["decision", "method", "grade"])
def test_a_code_that_is_not_known_here_gives_no_rows(name):
    (table,) = tables_of([make_row()])
    with pytest.raises(ValueError, match="unknown"):
        back([table | {name: ["unknown"]}])


def test_equal_texts_of_a_plan_become_one_object_each():
    tables = [replace_texts(table) for table in tables_of([make_row(group) for group in ("billing", "payments")])]
    first, second = back(tables)
    assert first.sentence is second.sentence and first.source_topic is second.source_topic


def replace_texts(table: dict) -> dict:
    """The same table with texts of its own, as a file's reader makes them."""
    return {k: ["".join(list(i)) if type(i) is str else i for i in v] if k != "group" else v for k, v in table.items()}


def test_a_document_holds_every_field_of_a_row_as_a_plain_value():
    for row in golden_rows():
        document = row_document(row)
        assert list(document) == list(ROW_FIELDS)
        assert {type(value) for value in document.values()} <= {str, int, type(None)}
        assert row._replace(**{k: v for k, v in document.items() if k not in ("decision", "method", "grade")}) == row

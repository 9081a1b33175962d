"""Rows as columns: nothing is lost on the way there and back, and a table that does not fit gives no rows."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import Decision, Grade, Method, Row
from migrate.plan.plan import fingerprint
from migrate.row_table import ROW_FIELDS, GroupRows, PlanRows, groups_with_metadata, row_document
from tests.builders import make_header, make_row
from tests.unit.goldenplan import golden_rows


def tables_of(rows: list[Row]) -> list[dict]:
    return [of_group.document() for of_group in PlanRows.of(rows).groups().values()]


def back(tables: list[dict]) -> PlanRows:
    known: dict = {}
    return PlanRows(GroupRows.of_table(table, known) for table in tables)


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
    tables = tables_of(rows)
    assert list(back(tables)) == rows
    assert [table["group"] for table in tables] == sorted({row.group for row in rows})


@given(some_rows(), some_rows())
def test_two_plans_have_one_fingerprint_only_if_their_rows_are_the_same(one, other):
    header = make_header()
    assert (fingerprint(header, PlanRows.of(one)) == fingerprint(header, PlanRows.of(other))) is (one == other)


def test_a_column_whose_rows_agree_is_stored_once_but_partition_says_how_many_rows_there_are():
    rows = [make_row(topic=topic, partition=0, source_committed=n) for n, topic in enumerate(("bills", "orders"))]
    (table,) = tables_of(rows)
    assert table["group"] == "billing" and table["partition"] == [0, 0]
    assert table["source_topic"] == ["bills", "orders"] and table["source_committed"] == [0, 1]
    assert table["decision"] == ["set"] and table["target_metadata"] == [""]


TABLE = tables_of([make_row(partition=p) for p in range(3)])[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(
            ({name: TABLE[name][:1] * count}, f"{count} items of {name} for 3 rows")
            for name in ROW_FIELDS if name not in ("group", "partition") for count in (0, 2, 4)
        ),
        ({"partition": []}, "for 0 rows"),
        ({"surprise": [1]}, "surprise"),
        *(({"group": group}, "must be text") for group in (7, None, ["billing"])),
        *(({name: ["unknown"]}, "unknown") for name in ("decision", "method", "grade")),
    ],
)  # fmt: skip
def test_a_table_that_is_not_as_it_was_written_gives_no_rows(changes, said):
    with pytest.raises((ValueError, TypeError), match=said):
        back([TABLE | changes])
    with pytest.raises(ValueError, match="sentence"):
        back([{name: column for name, column in TABLE.items() if name != "sentence"}])


def test_rows_of_a_group_that_do_not_follow_each_other_are_refused():
    with pytest.raises(ValueError, match="'billing' do not follow each other"):
        back([TABLE, TABLE])
    with pytest.raises(ValueError, match="'billing' do not follow each other"):
        PlanRows.of([make_row("billing"), make_row("payments"), make_row("billing", partition=1)])


def test_equal_texts_of_a_plan_become_one_object_each():
    tables = tables_of([make_row(group) for group in ("billing", "payments")])
    first, second = back([json.loads(json.dumps(table)) for table in tables])
    assert first.sentence is second.sentence and first.source_topic is second.source_topic


def test_a_document_holds_every_field_of_a_row_as_a_plain_value():
    for row in golden_rows():
        document = row_document(row)
        assert list(document) == list(ROW_FIELDS)
        assert {type(value) for value in document.values()} <= {str, int, type(None)}
        assert row._replace(**{k: v for k, v in document.items() if k not in ("decision", "method", "grade")}) == row


@given(some_rows(), st.integers(-9, 9), st.integers(-9, 9))
def test_rows_held_as_columns_are_the_sequence_that_they_were_made_of(rows, at, to):
    held = PlanRows.of(rows)
    assert len(held) == len(rows) and held == tuple(rows) and list(reversed(held)) == rows[::-1]
    assert held[at:to] == tuple(rows[at:to])
    if -len(rows) <= at < len(rows):
        assert held[at] == rows[at]
    else:
        with pytest.raises(IndexError):
            held[at]
    assert held != (*rows, make_row("x"))
    for group, of_group in held.groups().items():
        assert list(of_group) == [row for row in rows if row.group == group]
        assert [of_group[i] for i in range(len(of_group))] == list(of_group)
        assert list(of_group.source_partitions()) == [row.source_partition for row in of_group]
        assert list(of_group.target_partitions()) == [row.target_partition for row in of_group]
    for name in ROW_FIELDS:
        assert held.tally(name) == Counter(getattr(row, name) for row in rows)


def test_a_reason_that_is_spelt_as_a_decision_does_not_take_its_place():
    rows = [make_row(partition=0, reason="set", sentence="set", decision=Decision.SET)]
    rows += [
        make_row("other", partition=p, reason=word, decision=Decision(word)) for p, word in enumerate(("set", "keep"))
    ]
    for row, held in zip(rows, PlanRows.of(rows), strict=True):
        assert (type(held.decision), type(held.reason)) == (Decision, str) == (type(row.decision), type(row.reason))


def test_equal_columns_of_different_groups_are_held_once_and_numbers_take_eight_bytes():
    rows = [
        make_row(group, partition=p, source_log_end=1000 + p) for group in ("billing", "payments") for p in range(9)
    ]
    one, other = PlanRows.of(rows).groups().values()
    assert one.column("source_log_end") is other.column("source_log_end")
    assert one.column("source_log_end").itemsize == 8 and one.column("source_topic") == ("orders",)


@given(some_rows(), st.sampled_from(["decision", "target_offset", "source_topic"]))
def test_the_rows_of_which_a_field_is_as_asked_are_found_in_their_order(rows, name):
    rows = sorted(rows, key=lambda row: row.group)
    wanted = getattr(rows[-1], name) if rows else None
    found = PlanRows.of(rows).where(name, lambda item: item == wanted)
    assert list(found) == [row for row in rows if getattr(row, name) == wanted]


def test_the_groups_to_read_exactly_are_those_to_write_or_keep_that_carry_metadata_anywhere() -> None:
    keep, block, remove = Decision.KEEP, Decision.BLOCK, Decision.REMOVE
    rows = [
        make_row("carries", target_metadata="m"),
        make_row("restores", target_prior_metadata="m"),
        make_row("plain"),
        make_row("mixed", source_metadata="m", decision=keep),
        make_row("mixed", partition=1),
        make_row("kept", source_metadata="m", decision=keep),
        make_row("blocked", source_metadata="m", decision=block),
        make_row("removed", target_offset=None, decision=remove, target_prior_metadata="m"),
    ]
    assert groups_with_metadata(PlanRows.of(rows)) == {"carries", "restores", "mixed", "kept", "removed"}

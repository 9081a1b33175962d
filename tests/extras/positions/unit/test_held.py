"""Files of positions: what they may say, and one clear line with file and place for whatever is wrong in them."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import EXIT_USAGE, UsageError
from migrate.extras.positions.held import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    HeldPosition,
    Meaning,
    parse_csv,
    parse_json_lines,
)

HEADING = "holder,topic,partition,offset"
FINE = "job,orders,0,42"
CONTROL = [chr(c) for c in (0, 1, 7, 8, 9, 11, 12, 27, 31, 127, 0x85, 0x202E)]


def csv_of(*lines: str, heading: str = f"{HEADING},meaning") -> list[HeldPosition]:
    return list(parse_csv([f"{line}\n" for line in (heading, *lines)], "jobs.csv"))


def json_of(*documents: object) -> list[HeldPosition]:
    return list(parse_json_lines([json.dumps(d) for d in documents], "jobs.jsonl"))


def test_a_file_has_one_position_on_each_line():
    assert csv_of("job,orders,0,42,", "job,orders,1,7,last") == [
        HeldPosition("job", "orders", 0, 42),
        HeldPosition("job", "orders", 1, 8, Meaning.LAST),
    ]


def test_columns_may_come_in_any_order_and_meaning_may_be_left_out():
    assert csv_of("42,0,orders,job", heading="OFFSET,Partition,topic,holder") == [HeldPosition("job", "orders", 0, 42)]


def test_the_mark_that_spreadsheets_begin_a_file_with_is_no_part_of_a_name():
    assert csv_of("job,orders,0,42", heading="\ufeff" + HEADING) == [HeldPosition("job", "orders", 0, 42)]


def test_a_name_may_hold_commas_quotes_and_line_separators_of_unicode_that_are_printable():
    assert csv_of('"a,""b""",orders,0,42,next')[0].holder == 'a,"b"'


def test_json_lines_say_the_same():
    assert json_of(
        {"holder": "job", "topic": "orders", "partition": 0, "offset": 42},
        {"holder": "job", "topic": "orders", "partition": "1", "offset": "7", "meaning": "last"},
    ) == [HeldPosition("job", "orders", 0, 42), HeldPosition("job", "orders", 1, 8, Meaning.LAST)]


def test_the_largest_numbers_that_kafka_has_are_taken():
    (position,) = csv_of(f"job,orders,{LARGEST_PARTITION},{LARGEST_OFFSET},next")
    assert (position.partition, position.source_next) == (2**31 - 1, 2**63 - 1)


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=9),
                          st.integers(0, LARGEST_PARTITION), st.integers(0, LARGEST_OFFSET - 1),
                          st.sampled_from(Meaning)),
                unique_by=lambda t: t[:2], max_size=6))  # fmt: skip
def test_csv_and_json_lines_agree_on_whatever_can_be_written(drawn):
    documents = [{"holder": h, "topic": "t", "partition": p, "offset": o, "meaning": str(m)} for h, p, o, m in drawn]
    quoted = ('"' + h.replace('"', '""') + '"' for h, *_ in drawn)
    lines = [f"{h},t,{p},{o},{m}" for h, (_, p, o, m) in zip(quoted, drawn, strict=True)]
    assert csv_of(*lines) == json_of(*documents)


WRONG_NUMBERS = [
    "x", "1.0", "1e3", "0x10", "--1", "+-1", "1 2", "1_000", "٣", "²", "∞", "NaN", "None", "true", "1,", "'1'", " ",
    "-", "9" * 20, "1\u00a0", "１",
]  # fmt: skip
WRONG_TOPICS = [
    ".", "..", "a b", "a/b", "a:b", "ä", "a,b", "a" * 250, "a\tb", "a*", "a@b", "topic!", "(a)", "a\\b", "a|b", "a?b",
    "$a", "a=b", "a;b", "'a'", "a%b", "{a}", "a&b", "a#b", "~a", "日本",
]  # fmt: skip


def malformed_csv() -> Iterator[tuple[str, list[str], int, str]]:
    """Heading, lines, the line that is wrong, and a word that its message must have."""
    meant = f"{HEADING},meaning"
    yield "", [FINE], 1, "no column holder"
    for column in HEADING.split(","):
        without = ",".join(c for c in HEADING.split(",") if c != column)
        yield without, ["a,b,1"], 1, f"no column {column}"
        yield f"{HEADING},{column}", [f"{FINE},1"], 1, f"two columns {column}"
        yield HEADING.replace(column, f"{column}s"), [FINE], 1, f"no column {column}"
    for extra in ("group", "lag", "offset ", "Meanings", "1", "*", "leader_epoch", "metadata"):
        yield f"{HEADING},{extra}", [f"{FINE},1"], 1, "column"
    for number in WRONG_NUMBERS:
        cell = '"' + number + '"'
        yield HEADING, [FINE, f"job,orders,{cell},1"], 3, "partition" if number != " " else "partition ' '"
        yield HEADING, [FINE, f"job,orders,1,{cell}"], 3, "offset"
    for partition in (-1, -2, 2**31, 2**32, 2**63, 10**18):
        yield HEADING, [FINE, f"job,orders,{partition},1"], 3, f"partition {partition}; expected 0 to 2147483647"
    for offset, word in ((-1, "latest to Spark"), (-2, "earliest to Spark"), (-3, "offset -3"), (2**63, "0 to 92233")):
        yield HEADING, [FINE, f"job,orders,1,{offset}"], 3, word
    yield meant, [f"job,orders,0,{2**63 - 1},last"], 2, "expected 0 to"
    for topic in WRONG_TOPICS:
        yield HEADING, [FINE, f'job,"{topic}",1,1'], 3, "a topic's name"
    for control in CONTROL:
        if control != "\0":
            yield HEADING, [f'"a{control}b",orders,1,1'], 2, "control character"
    for empty, column in ((",orders,1,1", "holder"), ("job,,1,1", "topic"), ("job,orders,,1", "partition"),
                          ("job,orders,1,", "offset")):  # fmt: skip
        yield HEADING, [FINE, empty], 3, f"no {column}"
    for cells in ("job", "job,orders", "job,orders,1", f"{FINE},next", f"{FINE},,", ",,,,"):
        yield HEADING, [FINE, cells], 3, "cells; expected 4"
    for meaning in ("Next", "LAST", "previous", "0", "end", "last ", "none", "null"):
        yield meant, [f"{FINE},{meaning}"], 2, "expected next (the record wanted next) or last"
    for count in (1, 2, 5, 9):
        other = [f"job,orders,{n},1" for n in range(1, count)]
        yield HEADING, [FINE, *other, FINE], count + 2, "a position on orders-0 in line 2 too"
    yield HEADING, ['job,"orders,1,1'], 2, "no CSV"
    yield HEADING, ['job,"ord"ers,1,1'], 2, "no CSV"
    yield HEADING, [FINE, "a" * 140_000 + ",orders,1,1"], 3, "no CSV"


def malformed_json() -> Iterator[tuple[str, int, str]]:
    fine = {"holder": "job", "topic": "orders", "partition": 0, "offset": 42}
    other = fine | {"partition": 9}
    for text in ("{", "}", "[1", "job,orders,0,42", "{'holder': 1}", '{"holder":}', "nul", '{"a":1}{"b":2}',
                 "[" * 99_999, '{"holder": "a\tb"}', '{"offset": 01}', '{"offset": ' + "9" * 5_000 + "}"):  # fmt: skip
        yield text, 2, "no JSON"
    for text in ("[]", "1", '"job"', "null", "true", "1.5", "[{}]"):
        yield text, 2, "no object"
    for column in fine:
        yield json.dumps({k: v for k, v in other.items() if k != column}), 2, f"no {column}"
        yield json.dumps(other | {column: None}), 2, f"no {column}"
        yield json.dumps(other | {column: ""}), 2, f"no {column}"
        yield json.dumps(other | {column: {}}), 2, column
        yield json.dumps(other | {column: [1]}), 2, column
        yield json.dumps(other | {column: 1.5}), 2, column
        yield json.dumps(other | {column: True}), 2, column
    for field in ("group", "Holder", "lag", "offsets", " offset"):
        yield json.dumps(other | {field: 1}), 2, "a field"
    for meaning in (0, 1, True, "prev", ["next"], {}):
        yield json.dumps(other | {"meaning": meaning}), 2, "expected next"
    for offset in (-1, -2, -9, 2**63, float("inf")):
        yield json.dumps(other | {"offset": offset}), 2, "offset"
    for partition in (-1, 2**31):
        yield json.dumps(other | {"partition": partition}), 2, "partition"
    yield json.dumps(fine), 2, "in line 1 too"


MALFORMED_CSV, MALFORMED_JSON = list(malformed_csv()), list(malformed_json())


def test_there_are_two_hundred_of_them():
    assert len(MALFORMED_CSV) + len(MALFORMED_JSON) >= 200


def refused(error: pytest.ExceptionInfo[UsageError], origin: str, line: int, word: str) -> None:
    said = error.value.problem
    assert error.value.exit_code == EXIT_USAGE
    assert said.startswith(f"{origin}, line {line}: ") and "; expected " in said and "\n" not in said
    assert word in said and len(said) < 400 and said.isprintable()


@pytest.mark.parametrize(("heading", "lines", "line", "word"), MALFORMED_CSV, ids=range(len(MALFORMED_CSV)))
def test_a_malformed_csv_is_refused_with_file_line_what_was_wrong_and_what_was_expected(heading, lines, line, word):
    with pytest.raises(UsageError) as error:
        csv_of(*lines, heading=heading)
    refused(error, "jobs.csv", line, word)


@pytest.mark.parametrize(("text", "line", "word"), MALFORMED_JSON, ids=range(len(MALFORMED_JSON)))
def test_malformed_json_lines_are_refused_with_file_line_what_was_wrong_and_what_was_expected(text, line, word):
    fine = json.dumps({"holder": "job", "topic": "orders", "partition": 0, "offset": 42})
    with pytest.raises(UsageError) as error:
        list(parse_json_lines([fine, text], "jobs.jsonl"))
    refused(error, "jobs.jsonl", line, word)


def test_an_empty_file_is_refused():
    with pytest.raises(UsageError, match=r"jobs\.csv, line 1: the file is empty; expected a heading"):
        list(parse_csv([], "jobs.csv"))

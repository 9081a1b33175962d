"""What files and checkpoints may say of positions, and one clear line with file and place for what is wrong in them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import EXIT_USAGE, UsageError
from migrate.extras.positions.checkpoint import Batches, batches, kafka_line, kafka_offsets, lines_of
from migrate.extras.positions.held import (
    LARGEST_OFFSET,
    LARGEST_PARTITION,
    HeldPosition,
    Meaning,
    parse_csv,
    parse_json_lines,
)

HEADING = "holder,topic,partition,offset"
MEANT = f"{HEADING},meaning"
FINE = "job,orders,0,42"
IN_JSON = {"holder": "job", "topic": "orders", "partition": 0, "offset": 42}
POSITION = HeldPosition("job", "orders", 0, 42)


def csv_of(*lines: str, heading: str = MEANT) -> list[HeldPosition]:
    return list(parse_csv([f"{line}\n" for line in (heading, *lines)], "jobs.csv"))


def json_of(*documents: object) -> list[HeldPosition]:
    return list(parse_json_lines([json.dumps(d) for d in documents], "jobs.jsonl"))


def test_a_file_has_one_position_on_each_line():
    assert csv_of(f"{FINE},", "job,orders,1,7,last") == [POSITION, HeldPosition("job", "orders", 1, 8, Meaning.LAST)]


def test_columns_may_come_in_any_order_after_the_mark_of_spreadsheets_and_meaning_may_be_left_out():
    for heading, line in ("OFFSET,Partition,topic,holder", "42,0,orders,job"), ("\ufeff" + HEADING, FINE):
        assert csv_of(line, heading=heading) == [POSITION] == json_of(IN_JSON)


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=9),
                          st.integers(0, LARGEST_PARTITION), st.integers(0, LARGEST_OFFSET - 1),
                          st.sampled_from(Meaning)),
                unique_by=lambda t: t[:2], max_size=6))  # fmt: skip
def test_csv_and_json_lines_agree_on_whatever_can_be_written(drawn):
    documents = [
        {"holder": h, "topic": "t", "partition": str(p), "offset": o, "meaning": str(m)} for h, p, o, m in drawn
    ]
    quoted = ('"' + h.replace('"', '""') + '"' for h, *_ in drawn)
    lines = [f"{h},t,{p},{o},{m}" for h, (_, p, o, m) in zip(quoted, drawn, strict=True)]
    assert csv_of(*lines) == json_of(*documents)


# Heading, lines, the line that is wrong, and a word that its message must have.
MALFORMED_CSV = [
    ("", [FINE], 1, "no column holder"),
    ("holder,topic,partition", ["job,orders,0"], 1, "no column offset"),
    (f"{HEADING},topic", [f"{FINE},1"], 1, "two columns topic"),
    (f"{HEADING},group", [f"{FINE},1"], 1, "a column group"),
    *((HEADING, [FINE, f'job,orders,"{number}",1'], 3, "partition")
      for number in ("x", "1.0", "+-1", "1_000", "٣", " ", "-", "9" * 20)),
    (HEADING, [FINE, "job,orders,1,4.2"], 3, "offset"),
    *((HEADING, [FINE, f"job,orders,{partition},1"], 3, f"partition {partition}; expected 0 to 2147483647")
      for partition in (-1, 2**31)),
    (HEADING, [FINE, "job,orders,1,-1"], 3, "latest to Spark"),
    (HEADING, [FINE, "job,orders,1,-2"], 3, "earliest to Spark"),
    (HEADING, [FINE, "job,orders,1,-3"], 3, "offset -3"),
    (HEADING, [FINE, f"job,orders,1,{2**63}"], 3, "0 to 92233"),
    (MEANT, [f"job,orders,0,{2**63 - 1},last"], 2, "expected 0 to"),
    *((HEADING, [FINE, f'job,"{topic}",1,1'], 3, "a topic's name") for topic in (".", "..", "a/b", "ä", "a" * 250)),
    *((HEADING, [f'"a{control}b",orders,1,1'], 2, "control character") for control in "\t\u202e"),
    (HEADING, [FINE, ",orders,1,1"], 3, "no holder"),
    (HEADING, [FINE, "job,orders,1"], 3, "cells; expected 4"),
    (HEADING, [FINE, f"{FINE},next"], 3, "cells; expected 4"),
    *((MEANT, [f"{FINE},{meaning}"], 2, "expected next (the record wanted next) or last") for meaning in ("LAST", " ")),
    (HEADING, [FINE, "job,orders,1,1", FINE], 4, "a position on orders-0 in line 2 too"),
    (HEADING, ['job,"orders,1,1'], 2, "no CSV"),
    (HEADING, [FINE, "a" * 140_000 + ",orders,1,1"], 3, "no CSV"),
]  # fmt: skip
MALFORMED_JSON = [
    *((text, "no JSON") for text in ("{", '{"a":1}{"b":2}', "[" * 99_999, '{"offset": ' + "9" * 5_000 + "}")),
    ("[]", "no object"),
    *((json.dumps({k: v for k, v in IN_JSON.items() if k != column}), f"no {column}") for column in IN_JSON),
    *((json.dumps(IN_JSON | {column: value}), column) for column in IN_JSON for value in (None, {}, 1.5, True)),
    (json.dumps(IN_JSON | {"Holder": 1}), "a field"),
    *((json.dumps(IN_JSON | {"meaning": meaning}), "expected next") for meaning in (0, "prev", ["next"])),
    *((json.dumps(IN_JSON | {"offset": offset}), "offset") for offset in (-1, 2**63, float("inf"))),
    (json.dumps(IN_JSON), "in line 1 too"),
]  # fmt: skip


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


@pytest.mark.parametrize(("text", "word"), MALFORMED_JSON, ids=range(len(MALFORMED_JSON)))
def test_malformed_json_lines_are_refused_with_file_line_what_was_wrong_and_what_was_expected(text, word):
    with pytest.raises(UsageError) as error:
        list(parse_json_lines([json.dumps(IN_JSON), text], "jobs.jsonl"))
    refused(error, "jobs.jsonl", 2, word)


def test_an_empty_file_is_refused():
    with pytest.raises(UsageError, match=r"jobs\.csv, line 1: the file is empty; expected a heading"):
        list(parse_csv([], "jobs.csv"))


SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1785553100000,"conf":{"spark.sql.shuffle.partitions":"200"}}'


def batch(*lines: str, version: str = "v1", settings: str = SETTINGS) -> str:
    return "\n".join((version, settings, *lines))


def test_the_last_finished_batch_counts_and_one_that_was_begun_and_not_finished_is_named():
    assert batches(["0", "1", "2", ".2.crc"], ["0", "1", "2"], "job") == Batches(2, None)
    assert batches(["8", "9", "10"], ["8", "9"], "job") == Batches(9, 10)


@pytest.mark.parametrize(("offsets", "commits", "said"), [
    (["x", ".0.crc"], ["0"], "holds no batch"),
    (["0"], [], "no batch was ever finished"),
    (["1"], ["2"], "newest finished batch is 2"),
    (["5"], ["4"], "newest finished batch is 4"),
])  # fmt: skip
def test_a_folder_without_offsets_of_a_finished_batch_is_refused(offsets, commits, said):
    with pytest.raises(UsageError, match=said):
        batches(offsets, commits, "job")


def test_the_kafka_sources_of_a_query_are_read_and_the_others_left_aside():
    content = batch('{"orders":{"1":7,"0":42}}', "-", "1234", '{"logOffset":3}', '{"clicks":{"0":1},"views":{"0":2}}')
    assert kafka_offsets(content, "f") == {"orders": {1: 7, 0: 42}, "clicks": {0: 1}, "views": {0: 2}}
    assert kafka_offsets(batch('{"t":{"0":5}}', '{"t":{"0":5,"1":6}}'), "f") == {"t": {0: 5, 1: 6}}
    lines = ['{"t":{"0":5}}', "-", '{"x": 1}']
    assert lines_of(batch(*lines) + "\n", "f") == ["v1", SETTINGS, *lines], "as they are"


@pytest.mark.parametrize("line", [
    "-", "5", "{}", "[]", '{"logOffset":3}', '{"a":{}}', '{"a":{"x":1}}', '{"a":{"٣":1}}', '{"a":{"0":"1"}}',
    '{"a":{"0":true}}', '{"a":{"0":1},"b":2}', "[" * 99_999,
])  # fmt: skip
def test_a_line_of_another_source_is_not_kafkas(line):
    assert kafka_line(line) is None


@pytest.mark.parametrize(("content", "said"), [
    *((batch(f'{{"t":{{"0":{offset}}}}}'), f"f, line 3: t-0 is at {offset}; expected 0 or more")
      for offset in (-1, 2**63)),
    (batch('{"t":{"0":5}}', '{"t":{"0":6}}'), "f, line 4: two sources read t-0, one wants 5 next and the other 6"),
    (batch("5", "-"), "no source of this query reads Kafka"),
    *((batch("5", version=version), "line 1: format .*this version reads v1 alone") for version in ("v10", "")),
    (batch("5", version="v2"), r"line 1: format v2 \(of Spark 4.2 and later.*this version reads v1 alone"),
    *((batch("5", settings=settings), "f, line 2: no JSON object") for settings in ("", "[]", "{")),
    ("v1", "line 2"),
])  # fmt: skip
def test_what_is_damaged_of_another_format_or_holds_no_position_is_refused_by_its_line(content, said):
    with pytest.raises(UsageError, match=said):
        kafka_offsets(content, "f")

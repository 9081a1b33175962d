"""What a Structured Streaming checkpoint says of a batch: v1 as Spark 4.0 writes it, and what is refused by name."""

import pytest

from migrate.errors import UsageError
from migrate.extras.positions.checkpoint import Batches, batches, kafka_line, kafka_offsets, lines_of

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

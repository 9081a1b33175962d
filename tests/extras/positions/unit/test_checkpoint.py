"""What a Structured Streaming checkpoint says of a batch: v1 as Spark 4.0 writes it, and what is refused by name."""

import json

import pytest

from migrate.errors import UsageError
from migrate.extras.positions.checkpoint import Batches, batches, kafka_line, kafka_offsets, lines_of

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1785553100000,"conf":{"spark.sql.shuffle.partitions":"200"}}'


def batch(*lines: str, version: str = "v1", settings: str = SETTINGS) -> str:
    return "\n".join((version, settings, *lines))


def test_the_last_finished_batch_counts_and_one_that_was_begun_and_not_finished_is_named():
    assert batches(["0", "1", "2", ".2.crc"], ["0", "1", "2"], "job") == Batches(2, None)
    assert batches(["8", "9", "10"], ["8", "9"], "job") == Batches(9, 10)


@pytest.mark.parametrize(
    ("offsets", "commits", "said"),
    [
        ([], [], "holds no batch"),
        (["x", ".0.crc"], ["0"], "holds no batch"),
        (["0"], [], "no batch was ever finished"),
        (["1"], ["2"], "newest finished batch is 2"),
        (["5"], ["4"], "newest finished batch is 4"),
    ],
)
def test_a_folder_without_offsets_of_a_finished_batch_is_refused(offsets, commits, said):
    with pytest.raises(UsageError, match=said):
        batches(offsets, commits, "job")


def test_the_kafka_sources_of_a_query_are_read_and_the_others_left_aside():
    content = batch('{"orders":{"1":7,"0":42}}', "-", "1234", '{"logOffset":3}', '{"clicks":{"0":1},"views":{"0":2}}')
    assert kafka_offsets(content, "f") == {"orders": {1: 7, 0: 42}, "clicks": {0: 1}, "views": {0: 2}}


def test_two_sources_on_one_partition_are_one_position_where_they_agree():
    assert kafka_offsets(batch('{"t":{"0":5}}', '{"t":{"0":5,"1":6}}'), "f") == {"t": {0: 5, 1: 6}}
    with pytest.raises(UsageError, match=r"f, line 4: two sources read t-0, one wants 5 next and the other 6"):
        kafka_offsets(batch('{"t":{"0":5}}', '{"t":{"0":6}}'), "f")


@pytest.mark.parametrize("offset", [-1, -2, 2**63])
def test_an_offset_that_no_log_has_is_refused(offset):
    with pytest.raises(UsageError, match=rf"f, line 3: t-0 is at {offset}; expected 0 or more"):
        kafka_offsets(batch(f'{{"t":{{"0":{offset}}}}}'), "f")


@pytest.mark.parametrize(
    "line",
    [
        "-", "5", "{}", "[]", '{"logOffset":3}', '{"a":{}}', '{"a":{"x":1}}', '{"a":{"0":"1"}}', "{",
        '{"a":{"0":1.5}}', '{"a":{"0":true}}', '{"a":{"0":1},"b":2}',
        '{"shardId-0":{"iteratorType":"LATEST"}}', "[" * 99_999,
    ],
)  # fmt: skip
def test_a_line_of_another_source_is_not_kafkas(line):
    assert kafka_line(line) is None


def test_a_query_that_reads_no_kafka_is_refused():
    with pytest.raises(UsageError, match="no source of this query reads Kafka"):
        kafka_offsets(batch("5", "-"), "f")


@pytest.mark.parametrize("version", ["v2", "v10", "", "v1 x"])
def test_another_format_is_refused_by_its_name(version):
    with pytest.raises(UsageError, match="line 1: format .*this version reads v1 alone") as error:
        lines_of(batch('{"t":{"0":5}}', version=version), "f")
    assert version in error.value.problem and ("Spark 4.2" in error.value.problem) == (version == "v2")


@pytest.mark.parametrize("settings", ["", "[]", "{"])
def test_a_damaged_file_is_refused(settings):
    with pytest.raises(UsageError, match=r"f, line 2: no JSON object"):
        lines_of(batch('{"t":{"0":5}}', settings=settings), "f")
    with pytest.raises(UsageError, match="line 2"):
        lines_of("v1", "f")


def test_lines_are_given_back_as_they_are():
    lines = ['{"t":{"0":5}}', "-", '{"x": 1}']
    assert lines_of(batch(*lines) + "\n", "f") == ["v1", SETTINGS, *lines]
    assert json.loads(lines_of(batch(*lines), "f")[1])["batchWatermarkMs"] == 0

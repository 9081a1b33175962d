"""Values into Spark and out of it, a range of a topic that holds nothing, and how the offsets topic is read."""

import pytest

from migrate.model import LogRange
from migrate.spark.consumer_offsets import offsets_session
from migrate.spark.dataframes import DOCUMENT_SIZE, SCHEMA, into_spark, out_of_spark, read_topic


@pytest.mark.parametrize("count", [1, 7, DOCUMENT_SIZE + 1])
def test_values_come_out_of_spark_as_they_went_in(spark, count):
    names = ("t", "", "nul \0", 'quote " and back\\slash', "line\nend", "名 😀")
    rows = [(number, names[number % len(names)]) for number in range(count)]
    frame = into_spark(spark, iter(rows), "id bigint, name string")
    assert sorted(out_of_spark(frame, "id")) == rows


def test_none_is_null_in_spark_and_no_rows_make_a_frame_with_the_columns_of_the_schema(spark):
    frame = into_spark(spark, [(1, None), (2, 5)], "id bigint, source_end bigint")
    assert [row.id for row in frame.where("source_end is null").collect()] == [1]
    frame = into_spark(spark, [], "id bigint, name string")
    assert (frame.columns, frame.count(), list(out_of_spark(frame, "id"))) == (["id", "name"], 0, [])


def test_a_range_that_holds_nothing_has_the_sources_columns_and_asks_no_broker(spark):
    frame = read_topic(spark, {}, "no-such-topic", LogRange(5, 5))
    assert (frame.columns, frame.count()) == (list(SCHEMA), 0)


def test_internal_topics_are_shown_to_a_session_of_their_own(spark):
    own = offsets_session(lambda: spark)
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    assert own.conf.get(setting) == "true" and spark.conf.get(setting) == "false"
    assert own.conf.get("spark.sql.session.timeZone") == "UTC"


def test_queries_over_little_are_not_compiled_nor_adapted(spark):
    settings = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", "spark.sql.adaptive.enabled")
    small, large = (offsets_session(lambda: spark, is_small) for is_small in (True, False))
    assert [small.conf.get(name) for name in settings] == ["false", "NO_CODEGEN", "false"]
    assert [large.conf.get(name) for name in settings] == ["true", "FALLBACK", "true"]

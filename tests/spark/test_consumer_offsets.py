"""The session through which the offsets topic is read."""

from migrate.spark.consumer_offsets import offsets_session


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

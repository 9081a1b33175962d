"""What the commands are plugged into: settings resolved once and only where needed, and who closes what."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from migrate.errors import ConfigError, UsageError
from migrate.kafka.cluster import KafkaCluster
from migrate.kafka.record_reader import RecordReader
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import Cluster
from migrate.mm2.jaas import LOGIN_HANDLER
from migrate.model import Side
from migrate.session import clusters as sessions
from migrate.session import plan, status
from migrate.session.options import SessionOptions, SparkOptions
from migrate.survey.commits_source import FROM_CHECKPOINTS, CommitsSource
from migrate.token_command import TokenCommand
from tests.fakes import FakeClock, NoProgress

PASSWORD = "hidden-from-everybody"
PLAIN = {"bootstrap.servers": "a:1"}
# Kerberos: Java's clients take it, librdkafka's do not.
JAVA_ALONE = PLAIN | {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
SECRET = PLAIN | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'x.PlainLoginModule required username="u" password="{PASSWORD}";',
}
OPTIONS = SessionOptions(5.0)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    def fail():
        pytest.fail("nobody needs Spark yet")

    spark = SimpleNamespace(**dict.fromkeys(("machine", "end_session", "end"), fail))
    monkeypatch.setattr(plan, "starting_spark", lambda *_, **__: nullcontext(spark))


def flow(source=PLAIN, target=PLAIN):
    return client_flow(source, target, "A", "B")


def test_a_spark_that_is_kept_is_there_after_records_are_read():
    """Whoever reads by it itself may do so after the survey, which says that it reads no more records."""
    with plan.plan_session(flow(), replace(OPTIONS, keeps_spark=True)) as clusters:
        clusters.end_records()  # a Spark that was told to end would fail here


def test_a_source_that_is_down_needs_no_settings_that_librdkafka_can_use():
    with plan.plan_session(flow(JAVA_ALONE), OPTIONS, FROM_CHECKPOINTS) as clusters:
        assert (clusters.source, clusters.comparer) == (None, None) and clusters.looks_for_hidden
    with pytest.raises(ConfigError, match="sasl.mechanism"), plan.plan_session(flow(JAVA_ALONE), OPTIONS):
        pass
    end, _ = sessions.endpoints(flow(JAVA_ALONE), 5.0)
    assert end.java.admin["sasl.mechanism"] == "GSSAPI"


def test_what_is_plugged_in_shows_no_secret():
    end, _ = sessions.endpoints(flow(SECRET), 5.0)
    assert PASSWORD in end.kafka.config.values() and PASSWORD in end.java.secrets
    assert PASSWORD not in repr((end, end.kafka, end.java))
    with plan.plan_session(flow(SECRET, SECRET), OPTIONS) as clusters:
        assert PASSWORD not in repr(clusters)


@pytest.mark.parametrize("looking", [False, True])
def test_status_closes_its_clients_but_not_under_a_look(looking, monkeypatch):
    closed = []
    for client in (KafkaCluster, RecordReader):
        monkeypatch.setattr(client, "close", lambda self: closed.append(type(self)))
    with status.status_session(flow(), FakeClock(), OPTIONS) as edges:
        if looking:
            edges.in_use.acquire()
    assert closed == ([] if looking else [KafkaCluster] * 2 + [RecordReader] * 4)


def test_a_source_that_does_not_answer_is_left_out_of_a_look():
    with status.status_session(flow(), FakeClock(), OPTIONS) as edges:
        down, up = edges.clusters(FROM_CHECKPOINTS), edges.clusters()
    assert (down.source, down.comparer) == (None, None)
    assert up.source is edges.source and up.comparer is edges.comparer and down.target is up.target is edges.target


def test_the_java_machine_ends_with_the_command_also_where_it_fails(monkeypatch):
    ended = []
    monkeypatch.setattr("migrate.spark.java_admin.JavaMachine.close", lambda self: ended.append(self))
    with pytest.raises(ZeroDivisionError), sessions.apply_session(flow(), NoProgress(), False, OPTIONS) as edges:
        assert edges.exact_admin(edges.target, ()).side is Side.TARGET
        _ = 1 / 0
    assert len(ended) == 1


def spark_there(ended):
    return SimpleNamespace(machine=None, end_session=lambda: ended.append("session"), end=lambda: ended.append("all"))


def test_spark_ends_once_the_last_record_is_read_and_its_jvm_once_everything_is(monkeypatch):
    ended = []
    monkeypatch.setattr(plan, "starting_spark", lambda *_, **__: nullcontext(spark_there(ended)))
    with plan.plan_session(flow(), OPTIONS) as clusters:
        clusters.end_records()
        assert ended == ["session"]
        clusters.end()
    assert ended == ["session", "all"]


@pytest.mark.parametrize("no_match", [False, True])
@pytest.mark.parametrize("reads_topic", [False, True])
def test_a_jvm_is_large_for_the_offsets_topic_and_classes_are_kept_where_records_are_compared(
    no_match, reads_topic, monkeypatch
):
    asked = []
    monkeypatch.setattr(plan, "starting_spark", lambda *_, **how: asked.append(how) or nullcontext(spark_there([])))
    with plan.plan_session(flow(), replace(OPTIONS, no_match=no_match), CommitsSource(reads_topic=reads_topic)):
        pass
    assert asked == [{"small": not reads_topic, "compares": not no_match}]


def test_tokens_that_a_command_prints_here_are_refused_for_executors_elsewhere(monkeypatch):
    monkeypatch.setattr(sessions, "background_spark", lambda *_: nullcontext("up"))
    printed = Cluster(Side.TARGET, "B", PLAIN, token_command=TokenCommand("--target-token-command", ("false",)))
    cluster, elsewhere = Cluster(Side.SOURCE, "A", PLAIN), SparkOptions(master="spark://there:7077")
    with pytest.raises(UsageError) as refused, sessions.starting_spark(elsewhere, cluster, printed):
        pass
    assert "Spark's executors cannot log in with tokens that a command prints" in refused.value.problem
    assert "--spark-conf spark.jars=JAR" in refused.value.todo
    by_handler = replace(printed, properties=PLAIN | {LOGIN_HANDLER: "com.example.Handler"})
    for options, target in ((elsewhere, by_handler), (SparkOptions(), printed)):
        with sessions.starting_spark(options, cluster, target) as spark:
            assert spark == "up"

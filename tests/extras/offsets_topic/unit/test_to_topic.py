"""An export to a topic: never where groups are read or leave, nor to one that is not there; what "written" means."""

from types import SimpleNamespace

import pytest

from migrate.cli.options import ReachedClusters
from migrate.errors import ClusterError, Refused
from migrate.extras.offsets_topic.export import ExportOptions, topic_of
from migrate.extras.offsets_topic.json_topic import growth, log_ends, refuse_destination, refuse_internal
from migrate.extras.offsets_topic.request import is_url
from migrate.extras.offsets_topic.topic_writer import producer_options, refuse_showing_secrets
from migrate.mm2.config_file import client_flow
from migrate.mm2.flow import Cluster
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.spark.java_settings import java_settings
from tests.fakes import FakeCluster

ZERO, ONE = TopicPartition("json", 0), TopicPartition("json", 1)


def destination(**more):
    return FakeCluster(cluster_id="c-id", ranges={ZERO: LogRange(0, 4), ONE: LogRange(2, 9)}, **more)


def test_a_topic_of_another_cluster_is_taken_unless_its_name_is_one_of_internal_topics():
    refuse_destination("json", destination(), [FakeCluster(cluster_id="a-id"), FakeCluster(cluster_id="b-id")])
    refuse_internal("_json")
    with pytest.raises(Refused, match="is a name of internal topics"):
        refuse_internal("__json")


@pytest.mark.parametrize("ids", [("c-id", "b-id"), ("a-id", "c-id")])
def test_a_cluster_that_is_read_or_that_groups_leave_is_refused_by_its_id(ids):
    others = [FakeCluster(Side.SOURCE, "A", cluster_id=cluster_id) for cluster_id in ids]
    with pytest.raises(Refused, match="names source A: both are cluster c-id"):
        refuse_destination("json", destination(), others)
    # One that does not tell its id may be the same.
    with pytest.raises(ClusterError, match="is not visible"):
        refuse_destination("json", destination(), [FakeCluster(down=True)])


def test_a_topic_that_is_not_there_is_refused_and_not_asked_for_by_name():
    calls = []
    with pytest.raises(Refused, match="shows no topic jsn"):
        refuse_destination("jsn", destination(on_call=calls.append), [FakeCluster(cluster_id="a-id")])
    assert calls == ["facts", "topics"]


def test_log_ends_are_those_for_every_reader_or_not_known_and_growth_is_known_where_both_are():
    assert log_ends("json", destination(watermarks={ONE: 11})) == {ZERO: 4, ONE: 11}
    silent = Failure("LEADER_NOT_AVAILABLE", "no leader")
    leaderless = destination()
    leaderless.ranges[ONE] = silent
    assert all(isinstance(log_ends("json", each), Failure) for each in (leaderless, destination(down=True)))
    assert growth({ZERO: 4, ONE: 9}, {ZERO: 6, ONE: 10}) == 3
    assert growth({ZERO: 4}, {ZERO: 6, ONE: 10}) == 12
    assert growth(silent, {ZERO: 6}) == growth({ZERO: 6}, silent) == silent


def to_topic(tmp_path, text, side=Side.SOURCE):
    config = tmp_path / "c.properties"
    config.write_text(text)
    clusters = ReachedClusters(request_timeout=1.0)
    options = ExportOptions(form="jsonl", clusters=clusters, side=side, to_topic="json", to_config=config)
    return topic_of(options, client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B"))


SECURED = """bootstrap.servers=c:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="pssst!";
"""


def test_no_secret_of_the_topics_cluster_is_in_what_is_said_of_it_and_references_are_resolved(tmp_path, monkeypatch):
    sink = to_topic(tmp_path, SECURED)
    assert sink.name == "topic json on c:9093"
    assert "pssst!" in sink.of.java.secrets and "pssst!" not in repr(sink)
    monkeypatch.setenv("WHERE", "c:9092")
    text = "bootstrap.servers=${env:WHERE}\nconfig.providers=env\n"
    text += "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    assert to_topic(tmp_path, text).name == "topic json on c:9092"


def test_the_cluster_that_groups_leave_is_asked_too_where_another_is_read(tmp_path):
    sinks = [to_topic(tmp_path, "bootstrap.servers=c:1\n", side) for side in (Side.SOURCE, Side.TARGET)]
    assert [[other.cluster.alias for other in sink.others] for sink in sinks] == [[], ["A"]]


def test_a_place_with_a_scheme_is_a_url_with_one_slash_too_and_a_path_of_this_machine_is_none():
    assert all(map(is_url, ["hdfs:/data", "hdfs://nn:8020/x", "file:/tmp/x", "s3a://b/x", "v1.a+b-c:/x"]))
    assert not any(map(is_url, ["/tmp/x", "x", "a:b", "./a:/b", "", "/hdfs:/x", "1a:/x"]))


def settings(**properties):
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return java_settings(Cluster(Side.TARGET, "C", {"bootstrap.servers": "127.0.0.1:1", **given}))


def test_no_property_weakens_what_written_means_or_parts_the_records_of_a_key():
    weak = {"acks": "0", "retries": "0", "enable_idempotence": "false", "transactional_id": "x"}
    weak |= {"partitioner_class": "example.RoundRobin", "max_in_flight_requests_per_connection": "9"}
    options = producer_options(settings(**weak, key_serializer="k", value_serializer="v", linger_ms="7"))
    assert options["kafka.enable.idempotence"] == "true" and options["kafka.acks"] == "all"
    assert (options["kafka.retries"], options["kafka.max.in.flight.requests.per.connection"]) == (str(2**31 - 1), "5")
    assert options["kafka.linger.ms"] == "7" and options["kafka.bootstrap.servers"] == "127.0.0.1:1"
    named = ("transactional.id", "partitioner.class", "key.serializer", "value.serializer")
    assert not [name for name in named if f"kafka.{name}" in options]


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="pssst!";'
QUIET = {"spark.ui.enabled": "false"}


def test_a_spark_that_would_show_a_producers_secrets_is_refused_by_what_shows_them():
    # Its UI is on where nothing else is said.
    for conf, named in ({}, "spark.ui.enabled"), (QUIET | {"spark.eventLog.enabled": "true"}, "spark.eventLog.enabled"):
        with pytest.raises(Refused) as raised:
            refuse_showing_secrets(SimpleNamespace(conf=conf), settings(sasl_jaas_config=JAAS))
        assert f"--spark-conf {named}=false" in raised.value.todo and "pssst!" not in str(raised.value)
    refuse_showing_secrets(SimpleNamespace(conf={}), settings())
    refuse_showing_secrets(SimpleNamespace(conf=QUIET), settings(sasl_jaas_config=JAAS))

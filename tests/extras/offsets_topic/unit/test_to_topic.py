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


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__json"])
def test_a_name_of_internal_topics_is_refused(topic):
    with pytest.raises(Refused, match="is a name of internal topics"):
        refuse_internal(topic)
    refuse_internal("_json")


def test_a_topic_of_another_cluster_is_taken():
    refuse_destination("json", destination(), [FakeCluster(cluster_id="a-id"), FakeCluster(cluster_id="b-id")])


@pytest.mark.parametrize("ids", [("c-id", "b-id"), ("a-id", "c-id")])
def test_a_cluster_that_is_read_or_that_groups_leave_is_refused_by_its_id(ids):
    others = [FakeCluster(Side.SOURCE, "A", cluster_id=cluster_id) for cluster_id in ids]
    with pytest.raises(Refused, match="names source A: both are cluster c-id"):
        refuse_destination("json", destination(), others)


def test_a_cluster_that_does_not_tell_its_id_may_be_the_same():
    with pytest.raises(ClusterError, match="is not visible"):
        refuse_destination("json", destination(), [FakeCluster(down=True)])


def test_a_topic_that_is_not_there_is_refused_and_not_asked_for_by_name():
    calls = []
    with pytest.raises(Refused, match="shows no topic jsn"):
        refuse_destination("jsn", destination(on_call=calls.append), [FakeCluster(cluster_id="a-id")])
    assert calls == ["facts", "topics"]


def test_log_ends_are_those_for_every_reader_or_not_known():
    open_one = destination(watermarks={ONE: 11})
    assert log_ends("json", open_one) == {ZERO: 4, ONE: 11}
    open_one.ranges[ONE] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    assert isinstance(log_ends("json", destination(down=True)), Failure)


def test_growth_is_known_where_both_ends_are():
    silent = Failure("NOT_VISIBLE", "no")
    assert growth({ZERO: 4, ONE: 9}, {ZERO: 6, ONE: 10}) == 3
    assert growth({ZERO: 4}, {ZERO: 6, ONE: 10}) == 12
    assert growth(silent, {ZERO: 6}) == growth({ZERO: 6}, silent) == silent


def chosen(tmp_path, side=Side.SOURCE, **more):
    options = {"form": "jsonl", "clusters": ReachedClusters(request_timeout=1.0), "side": side}
    flow = client_flow({"bootstrap.servers": "a:1"}, {"bootstrap.servers": "b:1"}, "A", "B")
    return topic_of(ExportOptions(**options | more), flow)


def to_topic(tmp_path, text, **more):
    (tmp_path / "c.properties").write_text(text)
    return chosen(tmp_path, to_topic="json", to_config=tmp_path / "c.properties", **more)


SECURED = """bootstrap.servers=c:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="pssst!";
"""


def test_no_secret_of_the_topics_cluster_is_in_what_is_said_of_it(tmp_path):
    sink = to_topic(tmp_path, SECURED)
    assert sink.name == "topic json on c:9093"
    assert "pssst!" in sink.of.java.secrets and "pssst!" not in repr(sink)


def test_the_cluster_that_groups_leave_is_asked_too_where_another_is_read(tmp_path):
    aliases = {
        side: [other.cluster.alias for other in to_topic(tmp_path, "bootstrap.servers=c:1\n", side=side).others]
        for side in Side
    }
    assert aliases == {Side.SOURCE: [], Side.TARGET: ["A"]}


def test_references_in_its_properties_are_resolved(tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE", "c:9092")
    text = "bootstrap.servers=${env:WHERE}\nconfig.providers=env\n"
    text += "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    assert to_topic(tmp_path, text).name == "topic json on c:9092"


@pytest.mark.parametrize(
    "place", ["hdfs:/data", "hdfs://nn:8020/x", "file:/tmp/x", "file:///tmp/x", "s3a://b/x", "abfss://c@a/x"]
)
def test_a_place_with_a_scheme_is_a_url_with_one_slash_too(place):
    assert is_url(place)


@pytest.mark.parametrize("place", ["/tmp/x", "x", "a:b", "./a:/b", "C", "", "/hdfs:/x", "1a:/x"])
def test_a_path_of_this_machine_is_none(place):
    assert not is_url(place)


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


def session_with(**conf):
    """Spark as far as its settings go: its UI is on where nothing else is said."""
    given = {name.replace("_", "."): value for name, value in conf.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: given.get(key, default)))


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="pssst!";'
QUIET = {"spark_ui_enabled": "false"}


@pytest.mark.parametrize(("conf", "named"), [
    ({}, "spark.ui.enabled"), (QUIET | {"spark_eventLog_enabled": "true"}, "spark.eventLog.enabled"),
])  # fmt: skip
def test_a_spark_that_would_show_a_producers_secrets_is_refused_by_what_shows_them(conf, named):
    with pytest.raises(Refused) as raised:
        refuse_showing_secrets(session_with(**conf), settings(sasl_jaas_config=JAAS))
    assert f"--spark-conf {named}=false" in raised.value.todo and "pssst!" not in str(raised.value)


def test_without_secrets_or_without_anything_that_shows_them_nothing_is_refused():
    refuse_showing_secrets(session_with(), settings())
    refuse_showing_secrets(session_with(**QUIET), settings(sasl_jaas_config=JAAS))

"""Where an export goes, by its options, and what of it no message shows."""

import pytest

from migrate.cli.options import ReachedClusters
from migrate.extras.offsets_topic.export import ExportOptions, topic_of
from migrate.extras.offsets_topic.request import is_url
from migrate.mm2.config_file import client_flow
from migrate.model import Side


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

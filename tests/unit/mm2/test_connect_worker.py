"""A Connect worker's REST: where it is, who may ask it, what its answers mean, and never a secret."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli.options import resolve_flow
from migrate.errors import ClusterError, UsageError
from migrate.mm2.connect_worker import LOGIN, connect_worker
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks, first_line, parts_of
from migrate.mm2.connectors import Role
from migrate.model import Failure, TopicPartition
from migrate.session.clusters import mm2_worker_of
from tests.facts import options
from tests.fakeworker import worker
from tests.lab.ipv6 import has_ipv6
from tests.unit.connectscene import connectors, rest


def test_a_worker_tells_the_positions_of_its_connectors():
    def entry(cluster, topic, partition, offset):
        return {"partition": {"cluster": cluster, "topic": topic, "partition": partition}, "offset": {"offset": offset}}

    answers = {
        "/connectors/A-%3EB.x%2Fy/offsets": {"offsets": [entry("A", "t", 0, 41), entry("C", "t", 1, 9)]},
        "/connectors/z/offsets": {"offsets": [entry("A", "t", 0, 40), {"partition": {}, "offset": None}, 5]},
    }
    with worker(answers) as url:
        reader = replace(
            connect_worker(url), connectors=dict.fromkeys(("A->B.x/y", "z"), Role.SOURCE), source_alias="A"
        )
        assert reader.positions() == {TopicPartition("t", 0): 40}
        with pytest.raises(ClusterError, match="older than Kafka 3.5.*--connect-offsets-topic"):
            replace(connect_worker(url), connectors={"gone": Role.SOURCE}, source_alias="A").positions()


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6: nobody can listen on ::1")
def test_a_worker_with_an_ipv6_address_is_asked_there():
    with worker(rest(connectors({})), host="::1") as url:
        assert url.startswith("http://[::1]:")
        assert connect_worker(url).described().connectors


def test_a_login_comes_from_the_environment_and_is_asked_for_warned_of_over_an_unencrypted_line_and_not_shown(
    monkeypatch, capsys
):
    monkeypatch.delenv(LOGIN, raising=False)
    with worker(rest(connectors({})), login="Basic dTpodW50ZXIy") as url:
        with pytest.raises(ClusterError, match=LOGIN):
            resolve_flow(options(connect_url=url))
        assert capsys.readouterr().err == ""
        monkeypatch.setenv(LOGIN, "u:hunter2")
        resolve_flow(options(connect_url=url))
        assert "hunter2" not in repr(connect_worker(url))
    told = capsys.readouterr().err
    assert "warning" in told and LOGIN in told and url in told and "https://" in told and "hunter2" not in told


@pytest.mark.parametrize(
    "url", ["connect:8083", "ftp://x", "http://", "http://x:port", "http://u:p@x", "http://x/?a=b"]
)
def test_what_is_no_address_of_a_worker_is_refused(url):
    with pytest.raises(UsageError, match="--connect-url"):
        connect_worker(url)


@pytest.mark.parametrize(("answers", "words"), [
    ({}, "HTTP 404"),
    ({"/": 409}, "rebalancing"),
    ({"/": {}, "/connectors?expand=info": {}}, "not a Kafka Connect worker"),
    ({"/": b"<html>"}, "not a Kafka Connect worker"),
    (rest([]), "not a Kafka Connect worker"),
])  # fmt: skip
def test_an_answer_that_is_no_workers_is_one_paragraph(answers, words):
    with worker(answers) as url, pytest.raises(ClusterError, match=words):
        connect_worker(url).described()


def test_a_worker_that_does_not_answer_is_told_with_the_way_around_it():
    with worker({}) as url:
        pass
    with pytest.raises(ClusterError, match=r"does not answer: .*--source-config"):
        connect_worker(url).described()


JAAS = "PlainLoginModule required username='u' password='hunter2';"


def status(state="RUNNING", *tasks, trace=None):
    """A worker's answer: its connector's state, and those of its tasks as (number, state) or (number, state, trace)."""

    def part(state, trace=None):
        return {"state": state, "worker_id": "w:8083"} | ({"trace": trace} if trace else {})

    tasks = [part(*about) | {"id": number} for number, *about in tasks]
    return {"name": "x", "connector": part(state, trace), "type": "source", "tasks": tasks}


def told(source, checkpoint=None, client=None, **more):
    """What is told of the two connectors of a flow, by kind; the worker answers so for them."""
    config = {"source.cluster.sasl.jaas.config": JAAS, "target.cluster.ssl.key.password": "s3cret"}
    paths = {"/connectors/copy-Source/status": source, "/connectors/copy-Checkpoint/status": checkpoint or status()}
    paths |= {f"/connectors/copy-{kind}/config": config for kind in ("Source", "Checkpoint")}
    with worker(rest(connectors({}, **config), **(paths | more))) as url:
        reader = mm2_worker_of(resolve_flow(options(connect_url=url, source_config=client)), 5.0)
        assert reader is not None and url in reader.where and "our-own-word" not in repr(reader)
        return reader.tasks()


def shown(trace, **more):
    """What is shown of the trace of a connector that has failed."""
    (failed,) = told(status("FAILED", trace=trace), **more)["copy-Source"].parts
    assert (failed.task, failed.state) == (None, "FAILED")
    return failed.trace


def test_every_connector_of_the_flow_is_told_with_its_tasks():
    failed = (1, "FAILED", "java.lang.Boom: gone\n\tat x.Y.z(Y.java:1)\n")
    assert told(status("RUNNING", (0, "RUNNING"), failed), status("PAUSED", (0, "PAUSED"))) == {
        "copy-Source": ConnectorTasks(
            Role.SOURCE,
            (
                ConnectorPart(None, "RUNNING"),
                ConnectorPart(0, "RUNNING"),
                ConnectorPart(1, "FAILED", "java.lang.Boom: gone"),
            ),
        ),
        "copy-Checkpoint": ConnectorTasks(Role.CHECKPOINT, (ConnectorPart(None, "PAUSED"), ConnectorPart(0, "PAUSED"))),
    }


@pytest.mark.parametrize(
    "answer",
    [403, b"no json", {}, [], {"connector": {}, "tasks": []}, {"connector": {"state": "RUNNING"}},
     status() | {"tasks": ["task"]}, status("RUNNING", ("0", "RUNNING"))],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_failure_and_no_running_connector(answer):
    found = told(answer)
    assert isinstance(found["copy-Source"], Failure)
    assert found["copy-Checkpoint"] == ConnectorTasks(Role.CHECKPOINT, (ConnectorPart(None, "RUNNING"),))


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_document_makes_it_raise_nor_is_a_state_of_a_later_kafka_taken_for_one_that_we_know(document):
    parts_of(json.loads(json.dumps(document)))
    parts_of({"connector": document, "tasks": [document]})
    parts, _ = parts_of(status("DANCING", (0, "RUNNING")))
    assert parts[0] == ConnectorPart(None, "in an unknown state")


TRACES = (
    f"org.apache.kafka.common.config.ConfigException: Invalid value {JAAS} for configuration sasl.jaas.config: no",
    "ConfigException: Invalid value hunter2 for configuration ssl.key.password: no",
    "IllegalArgumentException: Login module control flag not specified in JAAS config: "
    "org.apache.kafka.common.security.plain.PlainLoginModule username=u password=hunter2",
    'KafkaException: {"ssl.truststore.password": "hunter2", "x": 1}',
    "RestException: Authorization: Basic aHVudGVyMjpodW50ZXIy",
    "TokenException: client.secret was hunter2",
    "x.Y: -----BEGIN PRIVATE KEY----- hunter2 -----END",
    "x.TokenExpiredException: eyJhunter2.eyJzdWI.x is too old",
    "x.Y: basic.auth.user.info=u:hunter2",
    'ConnectException: o.a.k.PlainLoginModule required username="u" password="a;hunter2";',
    "ConnectException: {sasl.password=hunter2,cause=org.apache.kafka.common.errors.TimeoutException}",
    "ConnectException: password=[x, hunter2]",
    "ConnectException: password => hunter2",
    "ConnectException: wrong password 'hunter2' for user u",
    'ConnectException: {"sasl.password":"ab\\"hunter2"}',
    'ConnectException: "{\\"password\\":\\"hunter2\\"}"',
    'ConnectException: {\\"password\\": \\"x hunter2\\"}',
    "ConnectException: http://u:pa/hunter2@proxy:80",
    "ConnectException: http://u:pa@hunter2@proxy:80",
    "ConnectException: Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=hunter2=",
    "ConnectException: aws_access_key_id=hunter2",
    "ConnectException: jdbc:sqlserver://h;user=sa;pwd=hunter2",
    "ConnectException: Authorization: Digest hunter2",
    "ConnectException: no key MIIEvhunter2 here",
)


@pytest.mark.parametrize("trace", TRACES)
def test_what_looks_like_a_secret_is_hidden_also_where_only_the_worker_knows_its_value(trace):
    line = first_line(trace)
    assert "hunter2" not in line and "aHVudGVy" not in line
    assert line.startswith(trace.split(" ")[0].split("{")[0][:5]), "what failed is still told"


def test_a_connectors_own_settings_and_our_own_client_files_are_hidden_wherever_they_stand(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("bootstrap.servers=a:1\nssl.key.password=our-own-word\n")
    trace = shown("Boom: hunter2 and s3cret and our-own-word", client=client)
    assert trace == "Boom: [hidden] and [hidden] and [hidden]"


@pytest.mark.parametrize("settings", [
    {"source.cluster.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="${file:/etc/pw:src}";'},
    {"source.cluster.sasl.jaas.config": "${secrets:ns/name:jaas}"},
    {"target.cluster.ssl.key.password": "${env:PASSWORD}"},
])  # fmt: skip
def test_of_a_trace_only_the_exception_is_shown_where_a_secret_is_a_reference_that_the_worker_resolves(settings):
    for trace, exception in (
        ("x.KafkaException: cannot log in with hunter2\n\tat x", "x.KafkaException"),
        ("x.KafkaException\n\tat hunter2", "x.KafkaException"),
        ("cannot log in with hunter2: x.KafkaException", ""),
        ("hunter2", ""),
    ):
        assert shown(trace, **{"/connectors/copy-Source/config": settings}) == exception


@pytest.mark.parametrize("answer", [403, [], b"{"])
def test_a_trace_is_left_out_where_the_settings_that_may_stand_in_it_are_not_told(answer):
    assert shown("Boom: hunter2", **{"/connectors/copy-Source/config": answer}) == ""


def test_what_is_no_secret_is_told_as_it_is_in_one_short_line():
    for line in (
        "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [orders]",
        "org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from producer send callback",
        "org.apache.kafka.common.errors.InvalidTokenException: the broker at b1:9092 said no",
        "java.net.ConnectException: http://connect:8083/connectors answers 500",
    ):
        assert first_line(f"\n\n  {line} \n\tat x") == line
    assert len(first_line("x" * 5000)) == 300 and first_line("") == ""

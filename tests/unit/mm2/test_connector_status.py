"""The state of MM2's connectors and tasks as a worker tells it, and what of a failure is shown: never a secret."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli.options import resolve_flow
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks, first_line, parts_of
from migrate.mm2.connectors import Role
from migrate.model import Failure
from migrate.session.clusters import mm2_worker_of
from tests.facts import options
from tests.fakeworker import worker
from tests.unit.connectscene import connectors, rest

LOGIN = "PlainLoginModule required username='u' password='hunter2';"


def status(state="RUNNING", *tasks, trace=None):
    """A worker's answer: its connector's state, and those of its tasks as (number, state) or (number, state, trace)."""
    parts = [part(state, trace), *(part(*about) | {"id": number} for number, *about in tasks)]
    return {"name": "x", "connector": parts[0], "type": "source", "tasks": parts[1:]}


def part(state, trace=None):
    return {"state": state, "worker_id": "w:8083"} | ({"trace": trace} if trace else {})


def told(source, checkpoint=None, client=None, **more):
    """What is told of the two connectors of a flow, by kind; the worker answers so for them."""
    config = {"source.cluster.sasl.jaas.config": LOGIN, "target.cluster.ssl.key.password": "s3cret"}
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


def test_a_state_of_a_later_kafka_is_not_taken_for_one_that_we_know():
    parts = parts_of(status("DANCING", (0, "RUNNING")))
    assert parts is not None and parts[0][0] == ConnectorPart(None, "in an unknown state")


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_document_makes_it_raise(document):
    parts_of(json.loads(json.dumps(document)))
    parts_of({"connector": document, "tasks": [document]})


TRACES = (
    f"org.apache.kafka.common.config.ConfigException: Invalid value {LOGIN} for configuration sasl.jaas.config: no",
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


@pytest.mark.parametrize(
    "settings",
    [
        {"source.cluster.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="${file:/etc/pw:src}";'},
        {"source.cluster.sasl.jaas.config": "${secrets:ns/name:jaas}"},
        {"target.cluster.ssl.key.password": "${env:PASSWORD}"},
    ],
)
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

"""The state of MM2's connectors and tasks as a worker tells it, and what of a failure is shown: never a secret."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.cli.options import resolve_flow
from migrate.mm2.connector_status import ConnectorPart, ConnectorTasks, first_line, parts_of
from migrate.mm2.connectors import Role
from migrate.mm2.flow import Flow
from migrate.model import Failure
from migrate.session.clusters import mm2_worker_of
from tests.facts import options
from tests.fakeworker import worker
from tests.unit.connectscene import connectors, rest

LOGIN = "PlainLoginModule required username='u' password='hunter2';"


def status(state="RUNNING", *tasks, trace=None):
    itself = {"state": state, "worker_id": "w:8083"} | ({"trace": trace} if trace else {})
    return {"name": "x", "connector": itself, "type": "source", "tasks": list(tasks)}


def task(number, state="RUNNING", trace=None):
    return {"id": number, "state": state, "worker_id": "w:8083"} | ({"trace": trace} if trace else {})


def told(statuses, secret=None, **more):
    """What is told of the two connectors of a flow; `statuses` are the worker's answers by kind."""
    config = {"source.cluster.sasl.jaas.config": LOGIN, "target.cluster.ssl.key.password": "s3cret"}
    paths = {f"/connectors/copy-{kind}/status": answer for kind, answer in statuses.items()}
    paths |= {f"/connectors/copy-{kind}/config": config for kind in ("Source", "Checkpoint")}
    with worker(rest(connectors({}, **config), **(paths | more))) as url:
        flow: Flow = resolve_flow(options(connect_url=url))
        reader = mm2_worker_of(flow, 5.0)
        assert reader is not None and url in reader.where
        return reader.tasks()


def test_every_connector_of_the_flow_is_told_with_its_tasks():
    found = told(
        {
            "Source": status("RUNNING", task(0), task(1, "FAILED", "java.lang.Boom: gone\n\tat x.Y.z(Y.java:1)\n")),
            "Checkpoint": status("PAUSED", task(0, "PAUSED")),
        }
    )
    assert found == {
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
    [403, 404, 409, 500, b"no json", {}, [], {"connector": {}, "tasks": []}, status("RUNNING", "task"),
     status("RUNNING", {"id": "0", "state": "RUNNING"}), {"connector": {"state": "RUNNING"}}],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_failure_and_no_running_connector(answer):
    found = told({"Source": answer, "Checkpoint": status()})
    assert isinstance(found["copy-Source"], Failure)
    assert found["copy-Checkpoint"] == ConnectorTasks(Role.CHECKPOINT, (ConnectorPart(None, "RUNNING"),))


def test_a_state_of_a_later_kafka_is_not_taken_for_one_that_we_know():
    parts = parts_of(status("DANCING", task(0)))
    assert parts is not None and parts[0][0] == ConnectorPart(None, "in an unknown state")


TRACES = (
    f"org.apache.kafka.common.config.ConfigException: Invalid value {LOGIN} for configuration sasl.jaas.config: no",
    "ConfigException: Invalid value hunter2 for configuration ssl.key.password: no",
    "IllegalArgumentException: Login module control flag not specified in JAAS config: "
    "org.apache.kafka.common.security.plain.PlainLoginModule username=u password=hunter2",
    'KafkaException: {"ssl.truststore.password": "hunter2", "x": 1}',
    "KafkaException: password = hunter2, user = u",
    "ConnectException: https://u:hunter2@proxy:1/x answers 401",
    "RestException: Authorization: Basic aHVudGVyMjpodW50ZXIy",
    "TokenException: client.secret was hunter2",
    "x.Y: -----BEGIN PRIVATE KEY----- hunter2 -----END",
    "x.TokenExpiredException: eyJhunter2.eyJzdWI.x is too old",
    "x.Y: basic.auth.user.info=u:hunter2",
    'ConnectException: o.a.k.PlainLoginModule required username="u" password="a;hunter2";',
    'ConnectException: o.a.k.ScramLoginModule required username="u" password="x" ;" and hunter2',
    "ConnectException: jdbc:x://h/db?user=a&password=hunter2:java.sql.SQLException: no",
    "ConnectException: {sasl.password=hunter2,cause=org.apache.kafka.common.errors.TimeoutException}",
    "RuntimeException: token=hunter2;lastError",
    "ConnectException: sasl.password=two hunter2",
    "ConnectException: password=abc,hunter2",
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


def test_a_connectors_own_settings_are_hidden_wherever_they_stand():
    found = told({"Source": status("FAILED", trace="Boom: hunter2 and s3cret"), "Checkpoint": status()})
    (part,) = found["copy-Source"].parts
    assert part == ConnectorPart(None, "FAILED", "Boom: [hidden] and [hidden]")


@pytest.mark.parametrize(
    "settings",
    [
        {"source.cluster.sasl.jaas.config": 'x.PlainLoginModule required username="u" password="${file:/etc/pw:src}";'},
        {"source.cluster.sasl.jaas.config": "${secrets:ns/name:jaas}"},
        {"target.cluster.ssl.key.password": "${env:PASSWORD}"},
    ],
)
def test_of_a_trace_only_the_exception_is_shown_where_a_secret_is_a_reference_that_the_worker_resolves(settings):
    paths = {"/connectors/copy-Source/config": settings}
    for trace, shown in (
        ("x.KafkaException: cannot log in with hunter2\n\tat x", "x.KafkaException"),
        ("x.KafkaException\n\tat hunter2", "x.KafkaException"),
        ("cannot log in with hunter2: x.KafkaException", ""),
        ("hunter2", ""),
    ):
        found = told({"Source": status("FAILED", trace=trace), "Checkpoint": status()}, **paths)
        assert found["copy-Source"].parts == (ConnectorPart(None, "FAILED", shown),)


@pytest.mark.parametrize("answer", [403, 500, [], b"{"])
def test_a_trace_is_left_out_where_the_settings_that_may_stand_in_it_are_not_told(answer):
    statuses = {"Source": status("FAILED", trace="Boom: hunter2"), "Checkpoint": status()}
    found = told(statuses, **{"/connectors/copy-Source/config": answer})
    assert found["copy-Source"].parts == (ConnectorPart(None, "FAILED", ""),)


def test_the_secrets_of_our_own_client_files_are_hidden_too(tmp_path):
    client = tmp_path / "a.properties"
    client.write_text("bootstrap.servers=a:1\nssl.key.password=our-own-word\n")
    paths = {"/connectors/copy-Source/status": status("FAILED", trace="Boom: our-own-word"),
             "/connectors/copy-Checkpoint/status": status(), "/connectors/copy-Source/config": {}}  # fmt: skip
    with worker(rest(connectors({}), **paths)) as url:
        reader = mm2_worker_of(resolve_flow(options(connect_url=url, source_config=client)), 5.0)
        assert reader is not None
        assert "our-own-word" not in repr(reader) + repr(reader.tasks())


def test_a_line_is_short_and_the_first_that_says_something():
    assert first_line("\n\n  Boom: x \n\tat y") == "Boom: x"
    assert len(first_line("x" * 5000)) == 300
    assert first_line("") == ""


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_no_document_makes_it_raise(document):
    parts_of(json.loads(json.dumps(document)))
    parts_of({"connector": document, "tasks": [document]})


def test_what_is_no_secret_is_told_as_it_is():
    for line in (
        "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [orders]",
        "org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception from producer send callback",
        "org.apache.kafka.common.errors.InvalidTokenException: the broker at b1:9092 said no",
        "java.net.ConnectException: http://connect:8083/connectors answers 500",
    ):
        assert first_line(f"{line}\n\tat x") == line

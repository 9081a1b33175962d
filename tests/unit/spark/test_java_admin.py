"""Kafka's Java client: its JVM, committed offsets as Jackson writes them, and the topics that log directories name."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError

from migrate.commit_table import without_offset
from migrate.errors import ClusterError, EnvironmentLacks
from migrate.model import Commit, Failure, TopicPartition
from migrate.silence import silence_text
from migrate.spark import java_admin
from migrate.spark.java_admin import JavaMachine, KafkaJava, _commits, topics_of
from migrate.spark.java_settings import JavaSettings
from tests.fakes import NoProgress


def test_a_start_that_failed_is_told_and_tried_again_when_it_is_asked_for_again(monkeypatch):
    """A disk that was full for a minute would keep `follow` from groups with metadata for as long as it runs."""
    starts = []

    def start():
        starts.append(True)
        if len(starts) == 1:
            raise EnvironmentLacks("No space is left.", "Make some.")
        return "a machine"

    monkeypatch.setattr(java_admin, "java_machine", start)
    monkeypatch.setattr(java_admin, "stop_java_machine", lambda: None)
    with closing(JavaMachine(NoProgress(), False)) as machine:
        with pytest.raises(EnvironmentLacks, match="No space"):
            machine.jvm()
        assert machine.jvm() == machine.jvm() == "a machine" and len(starts) == 2


def test_null_is_a_commit_of_minus_1_for_what_is_not_committed_is_not_listed():
    found = _commits({"a-b-0": {"offset": 7, "metadata": "m", "leaderEpoch": 3}, "a-b-1": None})
    assert dict(found) == {TopicPartition("a-b", 0): Commit(7, "m", 3)}
    assert without_offset(found) == (TopicPartition("a-b", 1),)


@dataclass
class Folder:
    """A log directory as Java's Admin tells it."""

    places: str = "[]"
    failed: object = None

    def error(self) -> object:
        return self.failed

    def replicaInfos(self) -> object:  # noqa: N802
        return SimpleNamespace(keySet=lambda: SimpleNamespace(toString=lambda: self.places))


def hosted(told: Mapping[int, Mapping[str, Folder]], asked_of=(1, 2)):
    return topics_of(told, asked_of, lambda error: str(error))


def test_log_directories_that_all_tell_name_every_topic():
    told = hosted({1: {"/a": Folder("[t-0, t-1]"), "/b": Folder("[my-topic-12]")}, 2: {"/a": Folder()}})
    assert told == {"t", "my-topic"}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({1: {"/a": Folder("[t-0]")}, 2: {}}, "NO_ANSWER"),
        ({1: {"/a": Folder("[t-0]")}}, "NO_ANSWER"),
        ({}, "NO_ANSWER"),
        ({1: {"/a": Folder("[t-0]")}, 2: {"/a": Folder("[u-0]"), "/b": Folder(failed="DISK")}}, "DISK"),
    ],
    ids=["a broker without directories", "a broker is missing", "none answered", "a directory with an error"],
)  # fmt: skip
def test_a_broker_or_a_directory_that_does_not_tell_is_a_failure(told, code):
    failure = hosted(told)
    assert isinstance(failure, Failure) and failure.code == code


class Thrown(Py4JJavaError):
    """As py4j raises what Java has thrown, without a JVM to ask."""

    def __init__(self, name: str, message: str) -> None:
        kind = SimpleNamespace(getName=lambda: name, getSimpleName=lambda: name.rpartition(".")[2])
        self.java_exception = SimpleNamespace(getClass=lambda: kind, getMessage=lambda: message, getCause=lambda: None)


SETTINGS = JavaSettings("source A", {"sasl.password": "hunter2"}, {}, frozenset({"hunter2"}))


@pytest.fixture
def jvm():
    """A JVM of which only errors are asked for: Kafka knows its own TimeoutException, and not Java's."""
    jvm = MagicMock()
    jvm.org.apache.kafka.common.protocol.Errors.forException.return_value.name.return_value = "UNKNOWN_SERVER_ERROR"
    return jvm


def test_javas_own_deadline_has_kafkas_name_of_it_as_in_every_other_call(jvm):
    nodes = jvm.org.apache.kafka.clients.admin.Admin.create.return_value.describeCluster.return_value.nodes
    nodes.return_value.get.side_effect = Thrown("java.util.concurrent.TimeoutException", "hunter2 was slow")
    told = KafkaJava(lambda: jvm, SETTINGS, 5).hosted_topics()
    assert isinstance(told, Failure) and told.code == "REQUEST_TIMED_OUT"
    assert "TimeoutException" in told.message and "hunter2" not in told.message


def test_a_cluster_that_only_java_asks_is_named_when_it_is_silent(jvm, monkeypatch):
    monkeypatch.setattr("migrate.silence.SILENT_SECONDS", 0.0)
    told = []
    nodes = jvm.org.apache.kafka.clients.admin.Admin.create.return_value.describeCluster.return_value.nodes
    nodes.return_value.get.side_effect = lambda *_: told.append(silence_text()) or []
    KafkaJava(lambda: jvm, SETTINGS, 5).hosted_topics()
    assert told == ["no answer from source A for 0 of 15 s"] and silence_text() == ""


def test_settings_that_kafka_will_not_have_are_a_failure_that_says_so(jvm):
    create = jvm.org.apache.kafka.clients.admin.Admin.create
    create.side_effect = Thrown("org.apache.kafka.common.KafkaException", "no such key store")
    told = KafkaJava(lambda: jvm, SETTINGS, 5).hosted_topics()
    assert isinstance(told, Failure) and "KafkaException: no such key store" in told.message


def test_without_amazons_jar_the_error_says_who_fetches_it(jvm):
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    why = f"Invalid value {handler}: Class {handler} could not be found."
    jvm.org.apache.kafka.clients.admin.Admin.create.side_effect = Thrown("a.ConfigException", why)
    with pytest.raises(ClusterError, match="could not be found. Run mm2-migrate doctor"):
        KafkaJava(lambda: jvm, SETTINGS, 5).prove()


def test_a_login_by_kerberos_that_fails_says_where_to_look(jvm):
    create = jvm.org.apache.kafka.clients.admin.Admin.create
    create.side_effect = Thrown("javax.security.auth.login.LoginException", "Connection refused")
    with pytest.raises(ClusterError, match="LoginException: Connection refused. .*klist.*a KDC has to answer"):
        KafkaJava(lambda: jvm, replace(SETTINGS, admin={"sasl.mechanism": "GSSAPI"}), 5).prove()
    with pytest.raises(ClusterError, match="Check the security settings"):
        KafkaJava(lambda: jvm, replace(SETTINGS, admin={"sasl.mechanism": "PLAIN"}), 5).prove()


def test_the_client_is_closed_whatever_it_was_told(jvm):
    client = jvm.org.apache.kafka.clients.admin.Admin.create.return_value
    client.describeCluster.side_effect = Thrown("org.apache.kafka.common.KafkaException", "closed")
    assert isinstance(KafkaJava(lambda: jvm, SETTINGS, 5).hosted_topics(), Failure)
    client.close.assert_called_once()

"""What the JVM and Kafka's Java client say and how they fail: its start, committed offsets, log directories, errors."""

import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext

from migrate.commit_table import without_offset
from migrate.errors import ClusterError, EnvironmentLacks
from migrate.model import Commit, Failure, TopicPartition
from migrate.silence import silence_text
from migrate.spark import java_admin
from migrate.spark.dataframes import reading_topic
from migrate.spark.dead_jvm import LostMachine, asking_machine, needing_machine
from migrate.spark.java_admin import JavaMachine, KafkaJava, _commits, topics_of
from migrate.spark.java_errors import described, innermost, java_exception, last_line, root_cause
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


def folder(places="[]", failed=None):
    """A log directory as Java's Admin tells it."""
    made = MagicMock()
    made.error.return_value = failed
    made.replicaInfos.return_value.keySet.return_value.toString.return_value = places
    return made


def test_log_directories_that_all_tell_name_every_topic():
    told = {1: {"/a": folder("[t-0, t-1]"), "/b": folder("[my-topic-12]")}, 2: {"/a": folder()}}
    assert topics_of(told, (1, 2), str) == {"t", "my-topic"}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({1: {"/a": folder("[t-0]")}, 2: {}}, "NO_ANSWER"),
        ({1: {"/a": folder("[t-0]")}}, "NO_ANSWER"),
        ({}, "NO_ANSWER"),
        ({1: {"/a": folder("[t-0]")}, 2: {"/a": folder("[u-0]"), "/b": folder(failed="DISK")}}, "DISK"),
    ],
    ids=["a broker without directories", "a broker is missing", "none answered", "a directory with an error"],
)
def test_a_broker_or_a_directory_that_does_not_tell_is_a_failure(told, code):
    failure = topics_of(told, (1, 2), str)
    assert isinstance(failure, Failure) and failure.code == code


class Throwable:
    """A `java.lang.Throwable` as py4j shows one."""

    def __init__(self, name, message, cause=None):
        self.getClass = lambda: SimpleNamespace(getName=lambda: name, getSimpleName=lambda: name.rpartition(".")[2])
        self.getMessage, self.getCause = lambda: message, lambda: cause


class Thrown(Py4JJavaError):
    """As py4j raises what Java has thrown, without a JVM to ask."""

    def __init__(self, *throwable):
        self.java_exception = Throwable(*throwable)


SETTINGS = JavaSettings("source A", {"sasl.password": "hunter2"}, {}, frozenset({"hunter2"}))


@pytest.fixture
def java():
    """Kafka's client over a JVM of which only errors are asked for, and how that makes an Admin.

    Kafka knows its own TimeoutException, and not Java's.
    """
    jvm = MagicMock()
    jvm.org.apache.kafka.common.protocol.Errors.forException.return_value.name.return_value = "UNKNOWN_SERVER_ERROR"
    return KafkaJava(lambda: jvm, SETTINGS, 5), jvm.org.apache.kafka.clients.admin.Admin.create


def test_a_cluster_that_only_java_asks_is_named_when_it_is_silent_and_its_deadline_has_kafkas_name(java, monkeypatch):
    monkeypatch.setattr("migrate.silence.SILENT_SECONDS", 0.0)
    client, create = java
    seen = []
    nodes = create.return_value.describeCluster.return_value.nodes.return_value.get
    nodes.side_effect = lambda *_: seen.append(silence_text()) or []
    client.hosted_topics()
    assert seen == ["no answer from source A for 0 of 15 s"] and silence_text() == ""
    nodes.side_effect = Thrown("java.util.concurrent.TimeoutException", "hunter2 was slow")
    told = client.hosted_topics()
    assert isinstance(told, Failure) and told.code == "REQUEST_TIMED_OUT"
    assert "TimeoutException" in told.message and "hunter2" not in told.message


def test_settings_that_kafka_will_not_have_are_a_failure_and_the_client_is_closed_whatever_it_was_told(java):
    client, create = java
    create.return_value.describeCluster.side_effect = Thrown("org.apache.kafka.common.KafkaException", "closed")
    assert isinstance(client.hosted_topics(), Failure)
    create.return_value.close.assert_called_once()
    create.side_effect = Thrown("org.apache.kafka.common.KafkaException", "no such key store")
    told = client.hosted_topics()
    assert isinstance(told, Failure) and "KafkaException: no such key store" in told.message


HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
REFUSED = Thrown("javax.security.auth.login.LoginException", "Connection refused")


@pytest.mark.parametrize(
    ("mechanism", "thrown", "said"),
    [
        ("OAUTHBEARER", Thrown("a.ConfigException", f"Invalid value {HANDLER}: Class {HANDLER} could not be found."),
         "could not be found. Run mm2-migrate doctor"),
        ("GSSAPI", REFUSED, "LoginException: Connection refused. .*klist.*a KDC has to answer"),
        ("PLAIN", REFUSED, "Check the security settings"),
    ],
)  # fmt: skip
def test_a_login_that_fails_says_where_to_look(java, mechanism, thrown, said):
    client, create = java
    create.side_effect = thrown
    with pytest.raises(ClusterError, match=said):
        KafkaJava(client._machine, replace(SETTINGS, admin={"sasl.mechanism": mechanism}), 5).prove()


CAUSE = Throwable("TimeoutException", "timed out\n  after 5 s.")
WRAPPED = Throwable("SparkException", "Job aborted", Throwable("ExecutionException", "x", CAUSE))


# Where py4j's errors and pyspark's carry their throwable.
@pytest.mark.parametrize("name", ["java_exception", "_origin"])
def test_an_error_is_its_innermost_cause_on_one_line(name):
    error = Exception()
    setattr(error, name, WRAPPED)
    assert innermost(WRAPPED) is CAUSE
    assert root_cause(error) == "TimeoutException: timed out after 5 s"


def test_a_kdcs_refusal_is_told_and_not_that_it_is_no_ticket():
    no_ticket = Throwable("Asn1Exception", "Identifier doesn't match expected value (906)")
    again = Throwable("KrbException", "Identifier doesn't match expected value (906)", no_ticket)
    refusal = Throwable("KrbException", "Server not found in Kerberos database (7) - LOOKING_UP_SERVER", again)
    assert innermost(Throwable("GSSException", "No valid credentials provided", refusal)) is refusal


def test_the_end_of_a_workers_stream_is_told_by_what_it_came_from():
    gone = Throwable("SparkException", "Python worker exited unexpectedly (crashed).", Throwable("EOFException", None))
    assert last_line(Thrown("SparkException", "Job aborted", gone)) == "Python worker exited unexpectedly (crashed)"
    trace = Thrown("PythonException", "Traceback\n  File x\nModuleNotFoundError: No module named 'y'\n")
    assert last_line(trace) == "ModuleNotFoundError: No module named 'y'"
    assert last_line(Thrown("EOFException", None)) == "no reason was given"


def test_a_throwable_without_a_message_is_its_class_and_an_error_of_pythons_own_its_first_line_or_its_class():
    for message in (None, "", " \n"):
        assert described(Throwable("EOFException", message)) == "EOFException"
    for error, phrase in ((ValueError("no.\nmore"), "no"), (KeyError(), "KeyError")):
        assert java_exception(error) is None and root_cause(error) == phrase


@pytest.mark.parametrize(
    ("java_class", "remedy"),
    [
        ("GroupAuthorizationException", "Let this principal DESCRIBE groups that begin with mm2-migrate- (docs/rights"),
        ("UnknownTopicOrPartitionException", "Check that the topic still exists"),
    ],
)
def test_what_a_reader_of_spark_lacks_is_named_and_nothing_secret(java_class: str, remedy: str) -> None:
    settings = JavaSettings("source A", {}, {}, frozenset({"hush-hush"}))
    failed = Thrown("SparkException", "Job aborted", Throwable(java_class, "refused for hush-hush"))
    with pytest.raises(ClusterError) as raised, reading_topic(settings, "orders"):
        raise failed
    told = str(raised.value)
    assert "Topic orders on source A could not be read" in told and java_class in told and remedy in told
    assert "hush-hush" not in told


@pytest.fixture
def killed_jvm(monkeypatch):
    """A process in the place of the JVM that we launched, killed."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    process.kill()
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), Py4JNetworkError("gone"), Py4JError("gone")])
def test_a_jvm_that_was_killed_is_said_to_be_so_whether_it_was_asked_or_needed(killed_jvm, error):
    for asked in (asking_machine, needing_machine):
        with pytest.raises(LostMachine, match="ended by SIGKILL, before it had answered") as raised, asked():
            raise error
        assert raised.value.__cause__ is error


def test_a_broken_connection_behind_another_error_counts_too_and_what_has_nothing_to_do_with_it_stays(killed_jvm):
    with pytest.raises(LostMachine, match="SIGKILL"), needing_machine():
        raise ValueError("what came of it") from ConnectionRefusedError()
    for asked in (asking_machine, needing_machine):
        with pytest.raises(ValueError, match="ours"), asked():
            raise ValueError("ours")


def test_while_the_jvm_runs_what_py4j_raises_is_a_failure_of_the_client_it_was_asked_through():
    with pytest.raises(LostMachine, match=r"Kafka's Java client failed: reset\."), asking_machine():
        raise ConnectionResetError("reset")
    with pytest.raises(ConnectionResetError), needing_machine():
        raise ConnectionResetError("reset")

"""What librdkafka's errors mean: what to do next, what is unknown, and what is only named otherwise."""

import pytest
from confluent_kafka import KafkaError

from migrate.kafka.errors import (
    code_of,
    failure_of,
    is_passing,
    note_cause,
    on_one_line,
    or_too_few_copies,
    timed_out,
)
from migrate.model import Failure
from migrate.write_outcome import NOT_WRITTEN, may_be_written


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Receive failed: error:0A000416:SSL routines::ssl/tls alert certificate unknown: SSL alert number 46", "_SSL"),
        ("Receive failed: error:0A000412:SSL routines::sslv3 alert bad certificate: SSL alert number 42", "_SSL"),
        ("Receive failed: error:0A000126:SSL routines::unexpected eof while reading", "_TRANSPORT"),
        ("Connect to ipv4#127.0.0.1:1 failed: Connection refused", "_TRANSPORT"),
    ],
)
def test_a_certificate_that_the_broker_rejects_is_no_lost_connection(text, code):
    causes: dict[str, str] = {}
    note_cause(causes, KafkaError(KafkaError._TRANSPORT, text))
    assert causes == {code: text}


def test_stable_offsets_that_never_come_say_what_a_broker_may_be_waiting_for():
    late = or_too_few_copies(timed_out(5))
    assert late.code == "_TIMED_OUT" and late.message.startswith("no answer within 5 s (fewer copies of")
    refused = Failure("GROUP_AUTHORIZATION_FAILED", "no")
    assert or_too_few_copies(refused) is refused


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "UNKNOWN_TOPIC_OR_PARTITION"),
        (KafkaError.NOT_LEADER_FOR_PARTITION, "NOT_LEADER_OR_FOLLOWER"),
        (KafkaError.UNKNOWN, "UNKNOWN_SERVER_ERROR"),
        (KafkaError.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID"),
        (KafkaError._TRANSPORT, "_TRANSPORT"),
    ],
)
def test_errors_have_kafkas_own_names(code, name):
    assert code_of(KafkaError(code)) == name


AFTER_THE_APPEND = (
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_ENOUGH_REPLICAS", "NOT_LEADER_FOR_PARTITION", "KAFKA_STORAGE_ERROR", "UNKNOWN", "NETWORK_EXCEPTION",
    "_TRANSPORT", "_TIMED_OUT", "_DESTROY", "_FAIL",
)  # fmt: skip
BEFORE_IT = (
    "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART",
    "OFFSET_METADATA_TOO_LARGE", "ILLEGAL_GENERATION", "NON_EMPTY_GROUP",
)  # fmt: skip


@pytest.mark.parametrize("name", [*AFTER_THE_APPEND, *BEFORE_IT])
def test_an_error_that_may_arise_after_the_append_leaves_a_write_unknown_and_a_reading_not(name):
    error = KafkaError(getattr(KafkaError, name))
    assert failure_of(error, writing=True).outcome_unknown is (name in AFTER_THE_APPEND)
    assert not failure_of(error).outcome_unknown
    assert may_be_written("AN_ERROR_OF_KAFKA_5") and "AN_ERROR_OF_KAFKA_5" not in NOT_WRITTEN


def test_where_no_coordinator_takes_a_write_the_copies_that_may_be_too_few_are_named_and_a_reading_needs_none():
    error = KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)
    assert all(
        word in failure_of(error, writing=True).message for word in ("__consumer_offsets", "min.insync.replicas")
    )
    assert "min.insync.replicas" not in failure_of(error).message


def test_the_right_that_is_missing_depends_on_what_was_to_be_done():
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no")
    assert "DESCRIBE on the topic)" in failure_of(denied).message
    assert "READ on the topic)" in failure_of(denied, writing=True).message
    assert "READ on the topic, which includes DESCRIBE)" in failure_of(denied, fetching=True).message


def test_what_librdkafka_says_becomes_one_line_without_secrets():
    assert on_one_line("no\n  hunter2 here.", {"hunter2"}) == "no [hidden] here"


@pytest.mark.parametrize("code", [KafkaError._NOENT, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION])
def test_what_the_client_has_forgotten_with_a_connection_is_read_again_and_is_no_word_of_the_clusters(code):
    forgotten = failure_of(KafkaError(code))
    assert is_passing(forgotten) and not forgotten.retriable
    assert not is_passing(failure_of(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))


def test_a_write_is_tried_again_where_the_coordinator_moved_and_not_where_the_group_has_members():
    moved, member = KafkaError(KafkaError.NOT_COORDINATOR), KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
    assert failure_of(moved).retriable and not failure_of(member, writing=True).retriable

"""What Connect, Debezium and Kafka Streams keep in topics is known by name and shape; others are left in peace."""

import struct
from base64 import b64encode

import pytest

from migrate.model import Failure
from migrate.survey.connect_topics import Purpose, candidates, connect_topics, without_copy
from migrate.survey.streams import applications_of, is_metadata, signs_of

DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


def names(*topics, groups=(), cleanup=None, own=()):
    return [found.topic for found in connect_topics(topics, groups, cleanup or {}, own)]


@pytest.mark.parametrize("worker", [
    ("connect-offsets", "connect-configs", "connect-status"),
    ("dbz.offset", "dbz.config", "dbz.status"),
    ("offsets.prod", "configs.prod", "statuses.prod"),
    ("__AMAZON_MSK_CONNECT_OFFSETS_X_1", "__AMAZON_MSK_CONNECT_CONFIGS_X_1", "__AMAZON_MSK_CONNECT_STATUS_X_1"),
])  # fmt: skip
def test_a_workers_three_topics_are_known_by_the_one_word_in_which_they_differ(worker):
    found = {each.topic: each for each in connect_topics([*worker, "orders", "A.orders"], (), {})}
    assert [found[topic].purpose for topic in worker] == [Purpose.OFFSETS, Purpose.CONFIGS, Purpose.STATUS]
    assert {topic: {topic, *each.siblings} for topic, each in found.items()} == dict.fromkeys(worker, set(worker))


def test_a_workers_topics_are_known_by_connect_as_a_word_of_the_name_beside_its_positions_or_where_sinks_run():
    for topic in ("connect2-offsets", "my.connect.status", "kafkaconnect-status"):
        assert names(topic) == [topic]
    for topics in (["import-configs", "import-offsets"], ["connected-car-offsets", "connected-car-status"]):
        assert names(*topics) == topics
    assert names("import-offsets") == []
    assert names("import-offsets", groups=("connect-sink",)) == ["import-offsets"]


@pytest.mark.parametrize("topics", [
    ("orders-config", "connected-car-status", "disconnect-status", "reconnect.config", "offsets-of-orders"),
    ("mm2-offsets.A.internal", "mm2-offset-syncs.B.internal", "A.checkpoints.internal", "heartbeats"),
    ("mirrormaker2-cluster-offsets", "mirrormaker2-cluster-configs", "mirrormaker2-cluster-status"),
    ("__consumer_offsets", "app-offsets-changelog", "app-configs-changelog"),
    ("statusquo", "reconfigs", "offsetting"),
])  # fmt: skip
def test_what_is_no_workers_is_left_in_peace(topics):
    assert names(*topics, groups=("connect-sink",)) == []


def test_what_is_known_not_to_be_compacted_is_no_workers_and_what_is_not_told_may_be():
    worker = ["my-configs", "my-offsets", "my-status"]
    assert names(*worker, cleanup=dict.fromkeys(worker, "delete")) == []
    for cleanup in ("compact", "compact,delete", DENIED):
        assert names(*worker, cleanup=dict.fromkeys(worker, cleanup)) == worker


def test_the_worker_that_runs_mm2_stays_where_it_is():
    worker = ("connect-offsets", "connect-configs", "connect-status")
    assert names(*worker, "dbz-connect-offsets", own=("connect-offsets",)) == ["dbz-connect-offsets"]


def test_a_schema_history_is_known_by_its_name_compacted_or_not_if_nothing_goes_on_after_its_words():
    for topic in ("schema-changes.inventory", "schemahistory.x", "x.schema_history", "INVENTORY-SCHEMA-CHANGES"):
        (found,) = connect_topics([topic, "orders"], (), {topic: "delete"})
        assert found.purpose is Purpose.HISTORY and found.topic == topic
    assert names("db-history-report", "schema_changes_audit", "adb-history", "schemahistorys") == []


def test_only_what_a_name_allows_of_is_asked_for_and_those_without_a_topic_of_the_same_name_on_the_target_are_left():
    asked = candidates(["orders", "connect-offsets", "dbhistory.x", "__consumer_offsets"])
    assert asked == ("connect-offsets", "dbhistory.x")
    found = connect_topics(["connect-offsets", "connect-configs"], (), {})
    assert [each.topic for each in without_copy(found, {"connect-offsets", "A.connect-configs"})] == ["connect-configs"]


VERSION_1 = b64encode(struct.pack(">bq", 1, 1_700_000_000_000)).decode()
VERSION_2 = b64encode(struct.pack(">bq", 2, -1) + struct.pack(">i", 0)).decode()
TOPICS = ("app-store-changelog", "app-by-key-repartition", "app-notes", "apple-store-changelog", "other-changelog")


def test_internal_topics_carry_the_applications_name():
    of_app, of_apple = ["app-store-changelog", "app-by-key-repartition"], ["apple-store-changelog"]
    assert applications_of(TOPICS, {"app", "ap", "apple"}) == {"app": of_app, "apple": of_apple}
    assert applications_of(["a-b-x-changelog"], {"a", "a-b"}) == {"a-b": ["a-b-x-changelog"]}, "the longest name"


def test_the_metadata_of_streams_is_recognised_and_no_other():
    assert is_metadata(VERSION_1) and is_metadata(VERSION_2)
    other = ("", "note", "AQ==", "deployed-by-hand", VERSION_1[:-4], "B" + VERSION_1[1:], "AQEBAQEBAQEB", "é")
    assert not [text for text in other if is_metadata(text)]


def test_each_sign_is_enough_and_none_is_none():
    assert signs_of("stream", (), ()) == ("assignor stream",)
    assert signs_of("", (), ("app-x-changelog",)) == ("internal topics",)
    assert signs_of("", ("plain", VERSION_2), ()) == ("commit metadata",)
    assert signs_of("range", ("plain",), ()) == ()

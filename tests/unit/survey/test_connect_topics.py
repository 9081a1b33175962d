"""A Connect worker's own topics and Debezium's histories are known by name and shape; others are left in peace."""

import pytest

from migrate.model import Failure
from migrate.survey.connect_topics import Purpose, candidates, connect_topics, without_copy

DENIED = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")


def names(*topics, groups=(), cleanup=None, own=()):
    return [found.topic for found in connect_topics(topics, groups, cleanup or {}, own)]


@pytest.mark.parametrize(
    "worker",
    [
        ("connect-offsets", "connect-configs", "connect-status"),
        ("connect-cluster-offsets", "connect-cluster-configs", "connect-cluster-status"),
        ("docker-connect-offsets", "docker-connect-configs", "docker-connect-status"),
        ("_connect_offsets", "_connect_configs", "_connect_status"),
        ("dbz.offset", "dbz.config", "dbz.status"),
        ("offsets.prod", "configs.prod", "statuses.prod"),
        ("MY_CONNECT_OFFSETS", "MY_CONNECT_CONFIGS", "MY_CONNECT_STATUS"),
        ("__amazon_msk_connect_offsets_x_1", "__amazon_msk_connect_configs_x_1", "__amazon_msk_connect_status_x_1"),
    ],
)
def test_a_workers_three_topics_are_known_by_the_one_word_in_which_they_differ(worker):
    found = connect_topics([*worker, "orders", "A.orders"], (), {})
    assert {each.topic: each.purpose for each in found} == dict(
        zip(worker, (Purpose.OFFSETS, Purpose.CONFIGS, Purpose.STATUS), strict=True)
    )
    assert all(set(each.siblings) == set(worker) - {each.topic} for each in found)


def test_names_that_say_connect_are_enough_alone():
    assert names("connect-offsets", "x") == ["connect-offsets"]
    assert names("connect-status") == ["connect-status"]


@pytest.mark.parametrize(
    "topic", ["my.connect.status", "connect2-configs", "kafkaconnect-status", "Prod_Connect_Config"]
)
def test_connect_is_known_as_a_word_of_the_name(topic):
    assert names(topic) == [topic]


@pytest.mark.parametrize(
    "topic", ["connected-car-status", "disconnect-status", "device-connectivity-status", "connection-configs",
              "reconnect.config", "interconnects-status"],
)  # fmt: skip
def test_a_word_that_only_begins_or_ends_like_connect_is_no_workers_but_beside_positions(topic):
    assert names(topic, groups=("connect-sink",)) == []
    positions = topic.replace("status", "offsets").replace("configs", "offsets").replace("config", "offsets")
    assert names(topic, positions) == sorted([topic, positions])


def test_other_positions_count_beside_settings_or_where_sinks_run():
    assert names("import-offsets") == []
    assert names("import-offsets", "import-configs") == ["import-configs", "import-offsets"]
    assert names("import-offsets", groups=("connect-sink",)) == ["import-offsets"]
    assert names("offsets-of-orders", groups=("connect-sink",)) == []


@pytest.mark.parametrize(
    "topics",
    [
        ("orders-config", "orders-status"),
        ("order-status",),
        ("mm2-offsets.A.internal", "mm2-configs.A.internal", "mm2-status.A.internal"),
        ("mm2-offset-syncs.B.internal", "A.checkpoints.internal", "heartbeats"),
        ("mirrormaker2-cluster-offsets", "mirrormaker2-cluster-configs", "mirrormaker2-cluster-status"),
        ("__consumer_offsets", "__transaction_state"),
        ("app-offsets-changelog", "app-configs-changelog"),
        ("statusquo", "reconfigs", "offsetting"),
    ],
)
def test_what_is_no_workers_is_left_in_peace(topics):
    assert names(*topics, groups=("connect-sink",)) == []


def test_what_is_known_not_to_be_compacted_is_no_workers_and_what_is_not_told_may_be():
    worker = ("my-offsets", "my-configs", "my-status")
    assert names(*worker, cleanup=dict.fromkeys(worker, "delete")) == []
    assert names(*worker, cleanup=dict.fromkeys(worker, "compact")) == sorted(worker)
    assert names(*worker, cleanup=dict.fromkeys(worker, "compact,delete")) == sorted(worker)
    assert names(*worker, cleanup=dict.fromkeys(worker, DENIED)) == sorted(worker)


def test_the_worker_that_runs_mm2_stays_where_it_is():
    worker = ("connect-offsets", "connect-configs", "connect-status")
    assert names(*worker, "dbz-connect-offsets", own=("connect-offsets",)) == ["dbz-connect-offsets"]


@pytest.mark.parametrize(
    "topic", ["schema-changes.inventory", "schemahistory.fullfillment", "dbhistory.inventory", "x.schema_history",
              "database-history", "INVENTORY-SCHEMA-CHANGES", "schema.history.inventory", "dbhistory-inventory",
              "schema-changes_shop", "mysql-schema-history", "db_history"],
)  # fmt: skip
def test_a_schema_history_is_known_by_its_name_compacted_or_not(topic):
    (found,) = connect_topics([topic, "orders"], (), {topic: "delete"})
    assert found.purpose is Purpose.HISTORY and found.topic == topic


@pytest.mark.parametrize(
    "topic", ["db-history-report", "schema_changes_audit", "adb-history", "schema-changeset", "schemahistorys",
              "database_history_of_orders", "db-changes"],
)  # fmt: skip
def test_what_goes_on_after_the_words_of_a_schema_history_is_something_else(topic):
    assert names(topic) == []


def test_only_those_without_a_topic_of_the_same_name_on_the_target_are_left():
    found = connect_topics(["connect-offsets", "connect-configs"], (), {})
    assert [each.topic for each in without_copy(found, {"connect-offsets", "A.connect-configs"})] == ["connect-configs"]


def test_only_what_a_name_allows_of_is_asked_for():
    assert candidates(["orders", "connect-offsets", "dbhistory.x", "__consumer_offsets"]) == (
        "connect-offsets",
        "dbhistory.x",
    )

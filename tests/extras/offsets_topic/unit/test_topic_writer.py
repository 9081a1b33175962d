"""What "written to a topic" means, whatever the user's properties say."""

from types import SimpleNamespace

import pytest

from migrate.errors import Refused
from migrate.extras.offsets_topic.topic_writer import producer_options, refuse_showing_secrets
from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings


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

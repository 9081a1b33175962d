"""What "written to a topic" means, whatever the user's properties say."""

from migrate.mm2.flow import Cluster
from migrate.model import Side
from migrate.spark.java_settings import java_settings
from migrate.spark.topic_writer import producer_options


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

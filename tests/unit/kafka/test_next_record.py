"""The next records at many positions: where they end, and what becomes of those that cannot be read."""

import pytest

from migrate.errors import ClusterError
from migrate.kafka import next_record
from migrate.kafka.settings import ClientSettings
from migrate.match.next_record import Position
from migrate.model import Failure, Side
from tests.mockcluster import FETCH
from tests.unit.logscene import DEADLINE_SECONDS, LENGTH, NOWHERE, PLACES, REFUSED, config, settings


def next_records(config, positions, deadline_seconds=DEADLINE_SECONDS):
    return next_record.next_records(settings(config), deadline_seconds, "read_committed", positions)


def test_next_records_end_with_the_position_the_number_or_the_log(cluster):
    asked = {
        Position(PLACES[0], 3, 10): [3],
        Position(PLACES[0], 8, 10, 5): [8, 9],
        Position(PLACES[1], LENGTH - 2, 9999, 5): [LENGTH - 2, LENGTH - 1],
        Position(PLACES[2], 0, LENGTH, 3): [0, 1, 2],
        Position(PLACES[3], LENGTH, 9999): [],
    }
    found = next_records(config(cluster), asked)
    assert {position: [record.offset for record in records] for position, records in found.items()} == asked


def test_next_records_that_are_refused_or_do_not_come_are_failures(cluster):
    position = Position(PLACES[0], 3, 10)
    cluster.will_answer(FETCH, REFUSED)
    refused = next_records(config(cluster), [position])[position]
    assert isinstance(refused, Failure) and refused.code == "TOPIC_AUTHORIZATION_FAILED"
    assert "grant the principal READ on the topic, which includes DESCRIBE" in refused.message
    assert next_records(NOWHERE, [position], 0.5)[position] == Failure("_TIMED_OUT", "no answer within 0.5 s", True)


def test_settings_that_librdkafka_refuses_are_an_error_that_says_why_and_shows_no_secret():
    refused = ClientSettings(Side.SOURCE, "A", "source A", NOWHERE | {"acks": "hunter2"}, frozenset({"hunter2"}))
    with pytest.raises(ClusterError, match="source A cannot be read with these settings: .*acks") as raised:
        next_record.next_records(refused, 0.5, "read_committed", [Position(PLACES[0], 3, 10)])
    assert "hunter2" not in str(raised.value)

"""The consumers of the record reader: how much each fetches, what it has received, and what it says of trouble."""

import pytest

from migrate.errors import ClusterError
from migrate.kafka.record_reader import Reach, ReaderClients
from tests.unit.logscene import NOWHERE, settings


@pytest.fixture
def clients():
    made = ReaderClients(settings(NOWHERE), 0.5, "read_committed")
    yield made
    made.close()


def test_bytes_received_are_the_last_count_of_each_consumer_in_sum(clients):
    for reach, count in ((Reach.SHORT, 5), (Reach.SHORT, 7), (Reach.WHOLE, 100)):
        clients._count(reach, f'{{"brokers":{{"b":{{"rx_bytes":1}}}},"rx_bytes":{count}}}')
    clients._count(Reach.LONG, "{}")
    assert clients.received_bytes == 107


def test_each_reach_has_one_consumer_and_settings_that_librdkafka_refuses_are_an_error(clients):
    assert clients.of(Reach.SHORT) is clients.of(Reach.SHORT)
    refused = ReaderClients(settings(NOWHERE | {"no.such.setting": "x"}), 0.5, "read_committed")
    with pytest.raises(ClusterError, match="source A cannot be read with these settings: .*no.such.setting"):
        refused.of(Reach.SHORT)


def test_a_silent_cluster_is_reported_with_the_best_cause_that_its_clients_had(clients):
    assert "source A did not answer within 0.5 s while its records were read." in clients.silent().problem
    clients.causes |= {"_TRANSPORT": "Connection refused", "_TIMED_OUT": "timed out"}
    assert "did not answer within 0.5 s while its records were read: Connection refused" in str(clients.silent())
    clients.causes["_SSL"] = "certificate unknown"
    assert "source A refused while its records were read: certificate unknown." in clients.silent().problem
    denied = clients.silent("_AUTHENTICATION", "wrong password")
    assert "refused while its records were read: wrong password" in str(denied)


def test_a_token_that_ended_on_the_way_is_asked_for_anew_by_the_next_reading(clients):
    before = clients.of(Reach.SHORT)
    clients._count(Reach.SHORT, '{"rx_bytes":7}')
    clients.causes["_AUTHENTICATION"] = "token expired"
    assert "refused while its records were read: token expired" in clients.silent().problem
    after = clients.of(Reach.SHORT)
    assert after is not before and not clients.causes and clients.of(Reach.SHORT) is after
    clients._count(Reach.SHORT, '{"rx_bytes":5}')
    assert clients.received_bytes == 12

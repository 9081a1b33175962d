"""Records of many partitions: ranges, single ones, the next ones, what cannot be read, and who reads them."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from types import SimpleNamespace

import pytest

from migrate.errors import ClusterError, EnvironmentLacks
from migrate.kafka import next_record, record_reader
from migrate.kafka.log_times import may_have
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.record_reader import Reach, ReaderClients, RecordReader
from migrate.kafka.settings import ClientSettings
from migrate.match.equality import Equality
from migrate.match.log_reader import Wanted
from migrate.match.next_record import Position
from migrate.match.protocol import OffsetRange, Unreadable
from migrate.model import Failure, Side, TopicPartition
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.mockcluster import FETCH, LIST_OFFSETS, MockCluster
from tests.unit.logscene import DEADLINE_SECONDS, LENGTH, NOWHERE, PLACES, REFUSED, config, settings


@pytest.fixture
def reader(cluster):
    made = RecordReader(settings(config(cluster)), DEADLINE_SECONDS)
    yield made
    made.close()


def test_ranges_are_read_whole_short_and_long_ones_of_many_partitions(reader):
    ranges = (OffsetRange(5, 20), OffsetRange(25, 30), OffsetRange(50, LENGTH))
    found = reader.read({place: Wanted(ranges, Equality.KEY_AND_VALUE) for place in PLACES})
    for place in PLACES:
        assert [list(piece.offsets) for piece in found[place]] == [list(range(r.start, r.end)) for r in ranges]
    assert len({tuple(found[place][0].prints) for place in PLACES}) == len(PLACES)


def test_a_partition_that_is_refused_is_a_value_and_a_cluster_that_is_silent_an_error_with_its_cause(cluster, reader):
    cluster.will_answer(FETCH, REFUSED)
    wanted = {PLACES[0]: Wanted((OffsetRange(0, 5),), Equality.ALL)}
    assert reader.read(wanted) == {PLACES[0]: Unreadable("TOPIC_AUTHORIZATION_FAILED")}
    nobody = RecordReader(settings(NOWHERE), 3.0)
    with pytest.raises(ClusterError, match=r"source A did not answer within 3 s .*Connection refused"):
        nobody.read(wanted)
    nobody.close()


@pytest.mark.parametrize("code", [5, 6, 56, 78])
def test_a_partition_that_gets_another_leader_is_asked_again(cluster, reader, code):
    expected = reader.first_offsets({place: [0] for place in PLACES})
    cluster.will_answer(LIST_OFFSETS, [code] * 3)
    assert reader.first_offsets({place: [0] for place in PLACES}) == expected


@pytest.mark.parametrize("code", ["_DESTROY_BROKER", "_TRANSPORT", "_UNKNOWN_PARTITION", "_TIMED_OUT"])
def test_a_line_that_breaks_until_the_deadline_is_the_clusters_silence(reader, monkeypatch, code):
    broken = Failure(code, "the line broke", retriable=True)
    monkeypatch.setattr(reader._log_times, "first_offsets", lambda pairs: (dict.fromkeys(pairs, broken), {}))
    with pytest.raises(ClusterError, match=r"source A did not answer within .* s.*the line broke"):
        reader.first_offsets({PLACES[0]: [0]})


def test_a_partition_that_the_cluster_does_not_have_is_told_and_not_taken_for_forgotten(reader):
    missing = TopicPartition("t", 77)
    assert reader.first_offsets({missing: [0]}) == {missing: Unreadable("UNKNOWN_TOPIC_OR_PARTITION")}
    (start,) = reader._log_times.starts([missing]).values()
    assert start.code == "UNKNOWN_TOPIC_OR_PARTITION"


NOT_TOLD = Failure("UNSUPPORTED_VERSION", "the broker is older than that question")
PASSING = Failure("_TRANSPORT", "the line broke", retriable=True)


def test_a_time_that_was_not_found_is_believed_only_where_the_logs_newest_is_told_to_be_older(reader, monkeypatch):
    for newest, doubted in ((15, [10]), (20, [10, 20]), (5, []), (PASSING, [10, 20]), (NOT_TOLD, [])):
        assert [time for time in (10, 20) if may_have(newest, time)] == doubted, newest
    late = 1 << 50
    for newest, offset in ((1, None), (PASSING, 0)):
        monkeypatch.setattr(reader._log_times, "newest_times", lambda absent, told=newest: dict.fromkeys(absent, told))
        assert reader.first_offsets({PLACES[0]: [late]}) == {PLACES[0]: {late: offset}}


def test_a_broker_that_falls_silent_before_it_tells_a_logs_start_is_an_error_of_the_cluster(monkeypatch):
    """Of librdkafka's own exception `follow` would end, where it is to make its next pass."""
    mock = MockCluster(1)
    mock.create_topic("t", 1)
    reader = RecordReader(settings(config(mock)), 4.0)
    assert reader.first_offsets({PLACES[0]: [5]})

    def falls_silent(absent):
        mock.will_take(60_000)
        return dict.fromkeys(absent, PASSING)

    monkeypatch.setattr(reader._log_times, "newest_times", falls_silent)
    with pytest.raises(ClusterError, match="source A did not answer within 4 s"):
        reader.first_offsets({PLACES[0]: [5]})


class Crowded:
    """The client of a reader, which hands out nothing before two have assigned partitions, or some time has passed."""

    def __init__(self, client):
        self._client = client
        self._assigned = Semaphore(0)

    def __getattr__(self, name):
        return getattr(self._client, name)

    def assign(self, places):
        self._client.assign(places)
        self._assigned.release()

    def consume(self, *most):
        for _ in range(2):
            self._assigned.acquire(timeout=0.2)
        return self._client.consume(*most)


def test_two_threads_that_read_through_one_reader_get_what_each_of_them_asked_for(cluster):
    """One consumer serves both: whoever assigns last takes it over, whoever polls first gets the other's records."""
    reader, offsets = RecordReader(settings(config(cluster)), 60.0), range(0, LENGTH, 7)
    expected = {place: reader.contents({place: offsets})[place] for place in PLACES[:2]}
    reader._clients._consumers = {reach: Crowded(of) for reach, of in reader._clients._consumers.items()}
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda place: reader.contents({place: offsets})[place], PLACES[:2]))
    assert found == list(expected.values())
    reader.close()


def test_a_topic_that_a_client_hears_of_for_the_first_time_does_not_wait_until_it_looks_for_leaders_by_itself(reader):
    """librdkafka does that once a second; whoever looks at many clusters' topics in turn pays it for each."""
    asked = []
    assert reader.contents({PLACES[0]: [3]})
    client = reader._clients.of(Reach.SHORT)

    class Noting:
        def __getattr__(self, name):
            return getattr(client, name)

        def list_topics(self, topic, timeout):
            asked.append(topic)
            return client.list_topics(topic, timeout=timeout)

    reader._clients._consumers[Reach.SHORT] = Noting()
    for _ in range(2):
        assert len(reader.contents({PLACES[0]: [3]})[PLACES[0]]) == 1
        assert len(reader.contents({TopicPartition(OFFSETS_TOPIC, 0): [3]})[OFFSETS_TOPIC, 0]) == 1
    assert asked == [OFFSETS_TOPIC], "the first is told as the client connects"


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
    assert clients.of(Reach.SHORT) is before
    clients._count(Reach.SHORT, '{"rx_bytes":7}')
    clients.causes["_AUTHENTICATION"] = "token expired"
    assert "refused while its records were read: token expired" in clients.silent().problem
    after = clients.of(Reach.SHORT)
    assert after is not before and not clients.causes and clients.of(Reach.SHORT) is after
    clients._count(Reach.SHORT, '{"rx_bytes":5}')
    assert clients.received_bytes == 12


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
    position = Position(PLACES[0], 3, 10)
    for asked in (
        lambda: next_record.next_records(refused, 0.5, "read_committed", [position]),
        lambda: ReaderClients(refused, 0.5, "read_committed").of(Reach.SHORT),
    ):
        with pytest.raises(ClusterError, match="source A cannot be read with these settings: .*acks") as raised:
            asked()
        assert "hunter2" not in str(raised.value)


SOURCE, TARGET = ClientSettings(Side.SOURCE, "A", "A", {}), ClientSettings(Side.TARGET, "B", "B", {})
READERS = KafkaReaders(SOURCE, TARGET, 5.0, "read_uncommitted")


def test_the_source_is_read_committed_the_target_as_asked_and_both_are_closed(monkeypatch):
    closed = []

    def reader(settings, deadline_seconds, isolation_level="read_committed"):
        made = (settings.alias, deadline_seconds, isolation_level)
        return SimpleNamespace(made=made, close=lambda: closed.append(made))

    monkeypatch.setattr(record_reader, "RecordReader", reader)
    with pickle.loads(pickle.dumps(READERS))() as pair:
        made = [each.made for each in pair]
        assert made == [("A", 5.0, "read_committed"), ("B", 5.0, "read_uncommitted")] and not closed
    assert sorted(closed) == made


def test_an_executor_without_the_kafka_client_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "migrate.kafka.record_reader", None)
    with pytest.raises(EnvironmentLacks, match="Spark's executors cannot read Kafka") as error, READERS():
        pass
    assert "pip install 'confluent-kafka" in error.value.todo

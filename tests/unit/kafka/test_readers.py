"""The three readers, which share one loop: what each makes of records, of a log's end, of errors and of silence."""

import pytest
from confluent_kafka import KafkaError, Message, Producer

from migrate.errors import ClusterError
from migrate.kafka.next_record import ConsumerOfNextRecords
from migrate.kafka.offsets_topic import read_offsets_topic
from migrate.kafka.read_pass import ReadPass
from migrate.kafka.record_reader import RecordReader
from migrate.kafka.settings import ClientSettings
from migrate.match.equality import Equality
from migrate.match.log_reader import Wanted
from migrate.match.next_record import Position
from migrate.match.protocol import OffsetRange, Unreadable
from migrate.model import Failure, Side, TopicPartition
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.mockcluster import FETCH, TOPIC_AUTHORIZATION_FAILED, MockCluster

DEADLINE_SECONDS = 30.0
PLACES = [TopicPartition("t", partition) for partition in range(4)]
LENGTH = 600
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
REFUSED = [TOPIC_AUTHORIZATION_FAILED] * 40


class Log:
    """What the reader of the offsets topic was given."""

    def __init__(self):
        self.taken = []

    def take(self, keys, values):
        self.taken += zip(keys, values, strict=True)


@pytest.fixture
def cluster():
    mock = MockCluster(1)
    producer = Producer({"bootstrap.servers": mock.bootstrap, "linger.ms": 0})
    for topic in ("t", OFFSETS_TOPIC):
        mock.create_topic(topic, len(PLACES))
        for place in PLACES:
            for number in range(LENGTH):
                producer.produce(topic, b"v%d" % number, b"k%d" % place.partition, place.partition)
    producer.flush()
    return mock


def config(cluster):
    return {"bootstrap.servers": cluster.bootstrap}


@pytest.fixture
def reader(cluster):
    made = RecordReader(settings(config(cluster)), DEADLINE_SECONDS)
    yield made
    made.close()


def settings(config):
    return ClientSettings(Side.SOURCE, "A", "source A", config)


def next_records(config, positions, deadline_seconds=DEADLINE_SECONDS):
    return ConsumerOfNextRecords(settings(config), deadline_seconds).next_records(positions)


def test_ranges_are_read_whole_short_and_long_ones_of_many_partitions(reader):
    ranges = (OffsetRange(5, 20), OffsetRange(25, 30), OffsetRange(50, LENGTH))
    found = reader.read({place: Wanted(ranges, Equality.KEY_AND_VALUE) for place in PLACES})
    for place in PLACES:
        assert [list(piece.offsets) for piece in found[place]] == [list(range(r.start, r.end)) for r in ranges]
    assert len({tuple(found[place][0].prints) for place in PLACES}) == len(PLACES)


def test_single_records_come_as_they_are(reader):
    found = reader.contents({PLACES[1]: [3, LENGTH - 1]})[PLACES[1]]
    assert {offset: (c.key, c.value) for offset, c in found.items()} == {
        3: (b"k1", b"v3"),
        LENGTH - 1: (b"k1", b"v%d" % (LENGTH - 1)),
    }


def test_a_partition_that_is_refused_is_a_value(cluster, reader):
    cluster.will_answer(FETCH, REFUSED)
    found = reader.read({PLACES[0]: Wanted((OffsetRange(0, 5),), Equality.ALL)})
    assert found == {PLACES[0]: Unreadable("TOPIC_AUTHORIZATION_FAILED")}


def test_a_cluster_that_is_silent_is_an_error_with_its_cause():
    reader = RecordReader(settings(NOWHERE), 0.5)
    with pytest.raises(ClusterError, match=r"source A did not answer within 0.5 s .*Connection refused"):
        reader.read({PLACES[0]: Wanted((OffsetRange(0, 5),), Equality.ALL)})
    reader.close()


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


def test_the_offsets_topic_is_read_to_its_end_each_partition_in_log_order(cluster):
    log = Log()
    assert read_offsets_topic(config(cluster), {0, 2}, log, DEADLINE_SECONDS) is None
    for partition in (0, 2):
        values = [value for key, value in log.taken if key == b"k%d" % partition]
        assert values == [b"v%d" % number for number in range(LENGTH)]
    assert len(log.taken) == 2 * LENGTH


def test_an_offsets_topic_that_can_not_be_read_in_full_is_a_failure(cluster):
    assert read_offsets_topic(NOWHERE, {0}, Log(), 0.5) == Failure("_TIMED_OUT", "no answer within 0.5 s", True)
    cluster.will_answer(FETCH, REFUSED)
    failure = read_offsets_topic(config(cluster), {0, 1}, Log(), DEADLINE_SECONDS)
    assert failure is not None and failure.code == "TOPIC_AUTHORIZATION_FAILED"


class Complaining:
    """A consumer that hears of nothing but connections that failed."""

    polls = 0

    def assign(self, partitions):
        pass

    def unassign(self):
        pass

    def consume(self, most, seconds):
        self.polls += 1
        assert self.polls < 1_000_000, "it never gives up"
        return [Message(topic="t", partition=0, error=KafkaError(KafkaError._TRANSPORT, "refused"))]


class Unread:
    start = 0

    def take(self, messages):
        return False


def test_a_client_that_only_complains_is_as_good_as_silent():
    reading = ReadPass(Complaining(), {PLACES[0]: Unread()}, silence_seconds=0.05)
    reading.run()
    assert list(reading.waiting) == [PLACES[0]] and not reading.problems

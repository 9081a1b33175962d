"""Logs on a mock cluster, for those who read records."""

from confluent_kafka import Producer

from migrate.kafka.settings import ClientSettings
from migrate.model import Side, TopicPartition
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.mockcluster import TOPIC_AUTHORIZATION_FAILED, MockCluster

DEADLINE_SECONDS = 30.0
PLACES = [TopicPartition("t", partition) for partition in range(4)]
LENGTH = 600
NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
REFUSED = [TOPIC_AUTHORIZATION_FAILED] * 40


def config(cluster):
    return {"bootstrap.servers": cluster.bootstrap}


def settings(config):
    return ClientSettings(Side.SOURCE, "A", "source A", config)


def cluster_with_logs() -> MockCluster:
    mock = MockCluster(1)
    producer = Producer({"bootstrap.servers": mock.bootstrap, "linger.ms": 0})
    for topic in ("t", OFFSETS_TOPIC):
        mock.create_topic(topic, len(PLACES))
        for place in PLACES:
            for number in range(LENGTH):
                producer.produce(topic, b"v%d" % number, b"k%d" % place.partition, place.partition)
    producer.flush()
    return mock

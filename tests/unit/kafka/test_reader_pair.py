"""The two readers of a task of Spark's: made where they are used, closed with it, and missed in plain words."""

import pickle
import sys

import pytest

from migrate.errors import EnvironmentLacks
from migrate.kafka import record_reader
from migrate.kafka.reader_pair import KafkaReaders
from migrate.kafka.settings import ClientSettings
from migrate.model import Side

SOURCE, TARGET = ClientSettings(Side.SOURCE, "A", "A", {}), ClientSettings(Side.TARGET, "B", "B", {})
READERS = KafkaReaders(SOURCE, TARGET, 5.0, "read_uncommitted")


class Reader:
    """A reader that notes what it was made with, and that it was closed."""

    made: list["Reader"] = []

    def __init__(self, settings, deadline_seconds, isolation_level="read_committed"):
        self.arguments = (settings.alias, deadline_seconds, isolation_level)
        self.closed = False
        self.made.append(self)

    def close(self):
        self.closed = True


def test_the_source_is_read_committed_the_target_as_asked_and_both_are_closed(monkeypatch):
    monkeypatch.setattr(record_reader, "RecordReader", Reader)
    with pickle.loads(pickle.dumps(READERS))() as pair:
        assert [reader.arguments for reader in pair] == [("A", 5.0, "read_committed"), ("B", 5.0, "read_uncommitted")]
        assert not any(reader.closed for reader in pair)
    assert len(Reader.made) == 2 and all(reader.closed for reader in Reader.made)


def test_an_executor_without_the_kafka_client_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "migrate.kafka.record_reader", None)
    with pytest.raises(EnvironmentLacks, match="Spark's executors cannot read Kafka") as error, READERS():
        pass
    assert "pip install 'confluent-kafka" in error.value.todo

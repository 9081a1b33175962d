"""What is made of librdkafka's answers, where a broker's would differ from one run to the next."""

from types import SimpleNamespace

from migrate.kafka.cluster_reader import _commits
from migrate.model import UNREAD_METADATA, Commit, TopicPartition


class Beyond:
    """A partition whose metadata Java wrote: librdkafka reads on behind its end, into bytes that are no text."""

    topic, partition, offset, leader_epoch, error = "t", 0, 7, None, None

    @property
    def metadata(self) -> str:
        return b"AgAAAZ==\xa2".decode()


def test_metadata_that_librdkafka_can_not_read_is_some_and_no_fault():
    found = _commits(SimpleNamespace(topic_partitions=[Beyond()]))
    assert found == {TopicPartition("t", 0): Commit(7, UNREAD_METADATA, None)}

"""What Kafka's Java Admin tells of committed offsets, as Jackson writes it."""

from migrate.commit_table import without_offset
from migrate.model import Commit, TopicPartition
from migrate.spark.java_admin import _commits


def test_null_is_a_commit_of_minus_1_for_what_is_not_committed_is_not_listed():
    found = _commits({"a-b-0": {"offset": 7, "metadata": "m", "leaderEpoch": 3}, "a-b-1": None})
    assert dict(found) == {TopicPartition("a-b", 0): Commit(7, "m", 3)}
    assert without_offset(found) == (TopicPartition("a-b", 1),)

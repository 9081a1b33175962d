"""Nothing is written where groups are read or leave, nor to a topic that is not there."""

import pytest

from migrate.errors import ClusterError, Refused
from migrate.extras.offsets_topic.json_topic import growth, log_ends, refuse_destination, refuse_internal
from migrate.model import Failure, LogRange, Side, TopicPartition
from tests.fakes import FakeCluster

ZERO, ONE = TopicPartition("json", 0), TopicPartition("json", 1)


def destination(**more):
    return FakeCluster(cluster_id="c-id", ranges={ZERO: LogRange(0, 4), ONE: LogRange(2, 9)}, **more)


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__json"])
def test_a_name_of_internal_topics_is_refused(topic):
    with pytest.raises(Refused, match="is a name of internal topics"):
        refuse_internal(topic)
    refuse_internal("_json")


def test_a_topic_of_another_cluster_is_taken():
    refuse_destination("json", destination(), [FakeCluster(cluster_id="a-id"), FakeCluster(cluster_id="b-id")])


@pytest.mark.parametrize("ids", [("c-id", "b-id"), ("a-id", "c-id")])
def test_a_cluster_that_is_read_or_that_groups_leave_is_refused_by_its_id(ids):
    others = [FakeCluster(Side.SOURCE, "A", cluster_id=cluster_id) for cluster_id in ids]
    with pytest.raises(Refused, match="names source A: both are cluster c-id"):
        refuse_destination("json", destination(), others)


def test_a_cluster_that_does_not_tell_its_id_may_be_the_same():
    with pytest.raises(ClusterError, match="is not visible"):
        refuse_destination("json", destination(), [FakeCluster(down=True)])


def test_a_topic_that_is_not_there_is_refused_and_not_asked_for_by_name():
    calls = []
    with pytest.raises(Refused, match="shows no topic jsn"):
        refuse_destination("jsn", destination(on_call=calls.append), [FakeCluster(cluster_id="a-id")])
    assert calls == ["facts", "topics"]


def test_log_ends_are_those_for_every_reader_or_not_known():
    open_one = destination(watermarks={ONE: 11})
    assert log_ends("json", open_one) == {ZERO: 4, ONE: 11}
    open_one.ranges[ONE] = Failure("LEADER_NOT_AVAILABLE", "no leader")
    assert isinstance(log_ends("json", destination(down=True)), Failure)


def test_growth_is_known_where_both_ends_are():
    silent = Failure("NOT_VISIBLE", "no")
    assert growth({ZERO: 4, ONE: 9}, {ZERO: 6, ONE: 10}) == 3
    assert growth({ZERO: 4}, {ZERO: 6, ONE: 10}) == 12
    assert growth(silent, {ZERO: 6}) == growth({ZERO: 6}, silent) == silent

"""MM2's two topics are read up to an end that is pinned once, or it is said why they were not read."""

import pytest

from migrate.errors import ClusterError
from migrate.model import Failure, LogRange, Side, TopicPartition
from migrate.survey.mm2_topics import read_checkpoints_topic, read_syncs_topic
from migrate.survey.offsets_pin import CompactedMeanwhileError
from migrate.survey.survey import Clusters, Mm2Topic
from tests.unit.planscene import CHECKPOINTS, SYNCS, world
from tests.unit.surveyscene import FLOW, timer


def test_checkpoints_are_read_on_the_target_and_syncs_where_mm2_writes_them_if_they_are_there():
    source, target, mirror = world()
    edges = Clusters(source, target, mirror)
    _, checkpoints = read_checkpoints_topic(edges, FLOW, target.topics(), timer())
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, True, LogRange(0, 5))
    reading, syncs = read_syncs_topic(edges, FLOW, source.topics(), timer())
    assert syncs == Mm2Topic(Side.SOURCE, SYNCS, True, LogRange(0, 30))
    assert reading.counts and not reading.windows
    reading, checkpoints = read_checkpoints_topic(edges, FLOW, {}, timer())
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, False, None) and not reading.latest
    assert read_syncs_topic(edges, FLOW, {}, timer())[1] == Mm2Topic(Side.SOURCE, SYNCS, False, None)


def test_checkpoints_that_are_compacted_meanwhile_are_read_up_to_a_later_end():
    source, target, mirror = world()
    read, pins = mirror.checkpoints, []

    def compacted_once(topic, pinned):
        pins.append(pinned)
        if len(pins) == 1:
            target.ranges[TopicPartition(topic, 0)] = LogRange(0, 6)
            raise CompactedMeanwhileError(topic)
        return read(topic, pinned)

    mirror.checkpoints = compacted_once
    _, checkpoints = read_checkpoints_topic(Clusters(source, target, mirror), FLOW, target.topics(), timer())
    assert pins == [LogRange(0, 5), LogRange(0, 6)]
    assert checkpoints == Mm2Topic(Side.TARGET, CHECKPOINTS, True, LogRange(0, 6))


def test_a_topic_that_is_there_and_may_not_be_read_is_an_error_that_names_the_right():
    source, target, mirror = world()
    target.ranges[TopicPartition(CHECKPOINTS, 0)] = Failure("TOPIC_AUTHORIZATION_FAILED", "not allowed")
    with pytest.raises(ClusterError, match=f"{CHECKPOINTS} .*TOPIC_AUTHORIZATION_FAILED.* Grant DESCRIBE and READ"):
        read_checkpoints_topic(Clusters(source, target, mirror), FLOW, target.topics(), timer())

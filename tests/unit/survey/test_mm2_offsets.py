"""MM2's own positions beside its syncs and checkpoints: every number is of its own store, what is not known is said."""

import json
from dataclasses import dataclass, replace

import pytest

from migrate.errors import ClusterError
from migrate.mm2.flow import Mm2Home, Mm2Runtime
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import Failure, LogRange, OffsetSync, TopicPartition
from migrate.show.mm2_offsets import stores_document, stores_lines
from migrate.survey.filters import Filters
from migrate.survey.mm2_offsets import read_stores
from migrate.survey.survey import Clusters
from tests.unit.planscene import CHECKPOINTS, SYNCS, world
from tests.unit.surveyscene import FLOW, timer

T0 = TopicPartition("t", 0)
IN_WORKER = replace(FLOW, runtime=Mm2Runtime(Mm2Home.CONNECT, url="http://c:1"))


@dataclass
class FakeWorker:
    """A worker that tells these positions, or none."""

    told: dict[TopicPartition, int] | None
    where: str = "the Connect worker at http://c:1"

    def positions(self):
        if self.told is None:
            raise ClusterError("The worker is older than Kafka 3.5.", "x")
        return self.told


def read(source, target, mirror, flow=FLOW, worker=None):
    clusters = Clusters(source, target, mirror, worker=worker)
    return read_stores(flow, clusters, Filters(), timer())


def text(stores):
    return " ".join("\n".join(stores_lines(stores, FLOW, 120, False)).split())


def test_each_partition_has_its_position_its_newest_sync_and_the_furthest_checkpoint():
    source, target, mirror = world()
    mirror.last_copied_offset[T0] = 89
    for group, place in (("g", (55, 50)), ("h", (70, 60))):
        mirror.latest[CheckpointKey(group, "A.t", 0)] = CheckpointRecord(*place, "", 0, 0)
    stores = read(source, target, mirror)
    (t0,) = (s for s in stores.partitions if s.source == T0)
    assert (t0.last_copied_offset, t0.left, t0.sync, t0.groups, t0.furthest) == (89, 10, (90, 90), 2, (70, 60))
    assert [str(s.source) for s in stores.partitions] == ["t-0", "t-1", "u-0"]
    shown = text(stores)
    assert "Read from topic mm2-offsets.A.internal on B." in shown
    assert "3 partitions, 10 offsets left." in shown
    document = json.loads("".join(stores_document(stores, FLOW)))
    assert document["partitions"][0]["position"] == 89
    assert document["partitions"][0]["newest_sync"] == {"source_offset": 90, "target_offset": 90}
    assert document["not_known"] == {}


@pytest.mark.parametrize(("position", "left"), [(129, 0), (99, 30), (130, -1)])
def test_records_of_an_open_transaction_that_mm2_has_copied_are_no_other_log(position, left):
    source, target, mirror = world()
    # The log ends at 100 for read_committed readers, at 130 for MM2, which reads uncommitted by default.
    source.watermarks[T0], mirror.last_copied_offset[T0] = 130, position
    stores = read(source, target, mirror)
    assert (stores.partitions[0].source_log, stores.partitions[0].left) == (LogRange(0, 130), left)
    assert f"{max(0, left)} offsets left" in text(stores)
    assert ("1 with a position beyond the log's end" in text(stores)) is (left < 0)


@pytest.mark.parametrize("sync", [OffsetSync(99, 120, 95), OffsetSync(99, 95, 120)], ids=["source", "target"])
def test_a_sync_among_the_records_of_an_open_transaction_on_either_side_fits_both_logs(sync):
    source, target, mirror = world()
    if sync.source_offset > 100:
        source.watermarks[T0] = 130
    else:
        target.watermarks[TopicPartition("A.t", 0)] = 130
    mirror.history["t", 0].append(sync)
    assert read(source, target, mirror).partitions[0].sync == (sync.source_offset, sync.target_offset)


def test_what_retention_removed_before_it_was_copied_is_not_left_to_copy():
    for start, left in ((60, 40), (100, 0)):
        source, target, mirror = world()
        mirror.last_copied_offset, source.ranges[T0] = {T0: 10}, LogRange(start, 100)
        assert read(source, target, mirror).partitions[0].left == left


def test_without_the_source_what_the_target_knows_is_shown():
    _, target, mirror = world()
    stores = read(None, target, mirror)
    assert [(s.source_log, s.last_copied_offset, s.left) for s in stores.partitions] == [(None, 99, None)] * 3
    assert stores.syncs_unknown == f"{SYNCS} is on A, which is down"


def test_a_store_that_is_not_there_or_not_told_is_said_and_the_others_are_shown():
    source, target, mirror = world()
    target.ranges[TopicPartition(CHECKPOINTS, 0)] = Failure("TOPIC_AUTHORIZATION_FAILED", "no")
    del source.ranges[TopicPartition(SYNCS, 0)]
    stores = read(source, target, mirror)
    assert "TOPIC_AUTHORIZATION_FAILED" in stores.checkpoints_unknown and not stores.positions_unknown
    assert f"SYNC: not known, there is no topic {SYNCS} on A." in text(stores)


def test_in_a_worker_its_rest_tells_the_positions_unless_its_topic_is_named():
    source, target, mirror = world()
    stores = read(source, target, mirror, IN_WORKER, FakeWorker({T0: 42}))
    assert stores.positions_from == "the Connect worker at http://c:1"
    assert stores.partitions[0].last_copied_offset == 42
    target.ranges[TopicPartition("w-offsets", 0)] = LogRange(0, 1)
    named = replace(IN_WORKER, runtime=replace(IN_WORKER.runtime, offsets_topics=("w-offsets",)))
    assert read(source, target, mirror, named, FakeWorker(None)).partitions[0].last_copied_offset == 99


def test_positions_of_several_workers_lie_in_a_topic_each_and_are_read_of_all():
    source, target, mirror = world()
    of_topic = {"one": {T0: 90}, "two": {T0: 80, TopicPartition("t", 1): 70}}
    mirror.positions = lambda topic, pinned: of_topic[topic]
    two = replace(FLOW, runtime=Mm2Runtime(Mm2Home.STRIMZI, offsets_topics=("one", "two")))
    target.ranges |= {TopicPartition(topic, 0): LogRange(0, 1) for topic in of_topic}
    stores = read(source, target, mirror, two)
    # What one has taken over from the other has an old position there: the lower is true of both.
    assert [s.last_copied_offset for s in stores.partitions] == [80, 70, None]
    assert stores.positions_from == "topic one and two on B"
    del target.ranges[TopicPartition("two", 0)]
    stores = read(source, target, mirror, two)
    assert stores.positions_unknown == "there is no topic two on B"
    assert {s.last_copied_offset for s in stores.partitions} == {None}, "what one topic alone says may be old"


def test_where_nobody_tells_the_positions_the_topics_name_is_asked_for():
    source, target, mirror = world()
    for worker in (FakeWorker(None), None):
        stores = read(source, target, mirror, IN_WORKER, worker)
        assert "--connect-offsets-topic" in stores.positions_unknown and stores.positions_from == ""
        assert "MM2's replication progress is unknown." in text(stores)
    del target.ranges[TopicPartition("mm2-offsets.A.internal", 0)]
    assert "--connect-offsets-topic" in read(source, target, mirror).positions_unknown

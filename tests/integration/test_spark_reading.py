"""Spark's Kafka source and Kafka's Java Admin against real brokers and a real MirrorMaker 2."""

from collections import Counter
from contextlib import closing
from random import Random
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from migrate.mm2.chain import chain, window
from migrate.mm2.config_file import read_flow
from migrate.mm2.flow import Cluster, Flow
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.mm2.topics import CheckpointKey, WindowQuestion
from migrate.mm2.wire import RecordKind, SyncRecord, WireCheckpoint, decode_checkpoint, decode_sync, label
from migrate.model import Commit, Failure, LogRange, OffsetSync, Side
from migrate.model import TopicPartition as Partition
from migrate.session.clusters import endpoints
from migrate.spark.consumer_offsets import offsets_session
from migrate.spark.consumer_offsets import topic_reader as offsets_reader
from migrate.spark.dataframes import read_topic
from migrate.spark.java_admin import UNSTABLE, KafkaJava
from migrate.spark.java_settings import java_settings
from migrate.spark.mm2_topics import SparkMirrorReader
from migrate.spark.session import spark_session, stop_session
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from tests.integration.clusters import create_topic, partitions_of
from tests.integration.offsetsrecords import sent_in_transaction
from tests.lab.cluster import QUIET_CLIENT
from tests.lab.lab import Lab
from tests.lab.reading import topic_reader
from tests.lab.waiting import wait_until
from tests.wirebytes import encode_checkpoint, encode_sync


@pytest.fixture(scope="module")
def spark():
    session = spark_session("local[2]")
    yield session
    stop_session(session)


@pytest.fixture
def flow(lab: Lab) -> Flow:
    return read_flow(lab.mm2_properties, lab.options.source_alias, lab.options.target_alias)


def test_one_spark_reads_the_offsets_topics_of_two_clusters(spark, lab, flow, topic):
    """Under a name of one group for both, the second would be refused: a client is kept for a group and a partition."""
    found = []
    for bootstrap, side in ((lab.source_bootstrap, flow.source), (lab.target_bootstrap, flow.target)):
        create_topic(bootstrap, f"{topic}-offsets", 1)
        commit(bootstrap, f"g-{topic}", [(f"{topic}-offsets", 0, 7)])
        with topic_reader(bootstrap) as reader:
            logs = {p: LogRange(*reader.bounds(t, p)) for t, p in partitions_of(bootstrap, [OFFSETS_TOPIC])}
        read = offsets_reader(offsets_session(lambda: spark, is_small=True), java_settings(side))(logs)
        found.append(read.filter(f"instr(cast(key as string), 'g-{topic}') > 0").count())
    assert min(found) >= 1


@pytest.fixture
def topic(lab: Lab) -> str:
    """A topic on the target that MM2 has nothing to do with."""
    name = f"own-{uuid4().hex[:8]}"
    create_topic(lab.target_bootstrap, name, 1)
    return name


def producer(bootstrap, **config):
    return Producer({"bootstrap.servers": bootstrap, **QUIET_CLIENT, **config})


def write(bootstrap, topic, pairs):
    sender = producer(bootstrap)
    for key, value in pairs:
        sender.produce(topic, value, key)
    assert sender.flush(30) == 0


def numbered(bootstrap, topic, records):
    """Write these records to the topic's first two partitions in turn."""
    sender = producer(bootstrap)
    for number in range(records):
        sender.produce(topic, str(number), partition=number % 2)
    assert sender.flush(30) == 0


def pinned(bootstrap, topic):
    with topic_reader(bootstrap) as reader:
        return LogRange(*reader.bounds(topic, 0))


def messages(bootstrap, topic, bounds):
    with topic_reader(bootstrap) as reader:
        return [m for m in reader.records(topic, 0) if bounds.start <= m.offset() < bounds.end]


def commit(bootstrap, group, offsets):
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET_CLIENT})) as consumer:
        consumer.commit(offsets=[TopicPartition(*place) for place in offsets], asynchronous=False)


def mirror_reader(spark, flow, most_held):
    settings = {Side.SOURCE: java_settings(flow.source), Side.TARGET: java_settings(flow.target)}
    readers = [end.records() for end in endpoints(flow, 30.0)]
    return SparkMirrorReader(lambda: spark, flow, settings, ConsumedMm2Topics(flow, *readers), most_held)


# Nothing is held here, or all of a short topic.
in_spark_and_here = pytest.mark.parametrize("most_held", [-1, 20_000])


def commit_reader(spark, bootstrap, deadline_seconds=30):
    cluster = Cluster(Side.TARGET, "B", {"bootstrap.servers": bootstrap})
    return closing(KafkaJava(lambda: spark._jvm, java_settings(cluster), deadline_seconds))


@in_spark_and_here
def test_mm2s_own_checkpoints_and_syncs_are_read_in_full(spark, lab, flow, most_held):
    name, group = f"orders-{uuid4().hex[:8]}", f"g-{uuid4().hex[:8]}"
    create_topic(lab.source_bootstrap, name, 2)
    numbered(lab.source_bootstrap, name, 500)
    commit(lab.source_bootstrap, group, [(name, 0, 100), (name, 1, 250)])
    lab.mirror.wait_until_replicated([name])
    lab.mirror.wait_checkpoints([group])
    reader = mirror_reader(spark, flow, most_held)

    bounds = pinned(lab.target_bootstrap, flow.checkpoints_topic)
    newest, counts = {}, Counter()
    for message in messages(lab.target_bootstrap, flow.checkpoints_topic, bounds):
        counts[label(RecordKind.CHECKPOINT, message.key(), message.value())] += 1
        record = decode_checkpoint(message.key(), message.value())
        key = CheckpointKey(record.group, record.target_topic, record.partition)
        newest[key] = (record.source_offset, record.target_offset, message.offset(), message.timestamp()[1])
    reading = reader.checkpoints(flow.checkpoints_topic, bounds)
    assert dict(reading.counts) == counts
    found = {key: (c.source_offset, c.target_offset, c.position, c.timestamp) for key, c in reading.latest.items()}
    assert found == newest
    assert any(key.group == group for key in found)

    side = flow.syncs_side
    bootstrap = lab.source_bootstrap if side is Side.SOURCE else lab.target_bootstrap
    bounds = pinned(bootstrap, flow.offset_syncs_topic)
    syncs = []
    for message in messages(bootstrap, flow.offset_syncs_topic, bounds):
        record = decode_sync(message.key(), message.value())
        if record.source_topic == name and record.partition == 0:
            syncs.append(OffsetSync(message.offset(), record.source_offset, record.target_offset))
    questions = [WindowQuestion(name, 0, g, 250, 250) for g in range(0, 251, 10)]
    answered = reader.windows(side, flow.offset_syncs_topic, bounds, questions)
    assert syncs
    for question in questions:
        assert answered.windows[question] == window(chain(syncs, 250, 250), question.source_committed)
    chains = reader.chains
    again = reader.windows(side, flow.offset_syncs_topic, bounds, questions[:1])
    assert again.windows == {questions[0]: answered.windows[questions[0]]} and again.counts == answered.counts
    assert most_held > 0 or reader.chains is chains, "the topic was read twice"


@in_spark_and_here
def test_mm2s_own_positions_come_to_stand_on_the_last_record_that_it_copied(spark, lab, flow, most_held):
    name = f"positions-{uuid4().hex[:8]}"
    create_topic(lab.source_bootstrap, name, 3)
    numbered(lab.source_bootstrap, name, 90)
    lab.mirror.wait_until_replicated([name])
    reader, topic = mirror_reader(spark, flow, most_held), flow.connect_offsets_topics[0]

    def last_copied_offset():
        with topic_reader(lab.target_bootstrap) as consumer:
            ranges = {p: LogRange(*consumer.bounds(topic, p)) for _, p in partitions_of(lab.target_bootstrap, [topic])}
        found = reader.positions(topic, ranges)
        return {place.partition: offset for place, offset in found.items() if place.topic == name}

    # Connect commits positions every offset.flush.interval.ms.
    wait_until(lambda: last_copied_offset() == {0: 44, 1: 44}, 90, "MM2's positions")


@in_spark_and_here
def test_aborted_records_are_neither_read_nor_counted(spark, lab, flow, topic, most_held):
    good = [encode_checkpoint(WireCheckpoint("g", "A.t", p, 1, 1)) for p in range(3)]
    sender = producer(lab.target_bootstrap, **{"transactional.id": uuid4().hex})
    sender.init_transactions(30)
    for commits in (True, False):
        sender.begin_transaction()
        for key, value in good:
            sender.produce(topic, value, key)
        assert sender.flush(30) == 0
        (sender.commit_transaction if commits else sender.abort_transaction)(30)
    reading = mirror_reader(spark, flow, most_held).checkpoints(topic, pinned(lab.target_bootstrap, topic))
    assert reading.counts == {"checkpoint": 3}


@in_spark_and_here
def test_only_the_pinned_range_is_read(spark, lab, flow, topic, most_held):
    rnd = Random(3)
    pairs = [encode_checkpoint(WireCheckpoint("g", "A.t", rnd.randrange(5), u, u, "m" * u)) for u in range(50)]
    write(lab.target_bootstrap, topic, pairs)
    reading = mirror_reader(spark, flow, most_held).checkpoints(topic, LogRange(10, 40))
    newest = {}
    for key, value in pairs[10:40]:
        record = decode_checkpoint(key, value)
        newest[record.partition] = (record.source_offset, record.metadata)
    assert {k.partition: (c.source_offset, c.metadata) for k, c in reading.latest.items()} == newest
    assert reading.counts == {"checkpoint": 30}


def test_a_range_in_many_tasks_is_read_once(spark, lab, topic):
    write(lab.target_bootstrap, topic, [encode_sync(SyncRecord("t", 0, u, u)) for u in range(1000)])
    options = {"kafka.bootstrap.servers": lab.target_bootstrap}
    frame = read_topic(spark, options, topic, LogRange(5, 995), min_partitions=7)
    assert frame.rdd.getNumPartitions() == 7
    assert sorted(row.offset for row in frame.select("offset").collect()) == list(range(5, 995))


def test_a_pending_transaction_on_one_groups_offsets_is_told_and_hides_no_other_group(spark, lab, topic):
    pending, settled = f"pending-{topic}", f"settled-{topic}"
    for group in (pending, settled):
        commit(lab.target_bootstrap, group, [(topic, 0, 1)])
    with (
        commit_reader(spark, lab.target_bootstrap) as reader,
        sent_in_transaction(lab.target_bootstrap, pending, topic) as sender,
    ):
        commits = {Partition(topic, 0): Commit(1)}
        answers = reader.commits([pending, settled])
        assert isinstance(answers[pending], Failure) and answers[pending].code == UNSTABLE
        assert answers[settled] == commits
        assert reader.commits([pending], require_stable=False) == {pending: commits}
        sender.commit_transaction(30)
        commits = {Partition(topic, 0): Commit(99)}
        wait_until(lambda: reader.commits([pending]) == {pending: commits}, 30, "the transaction's offset")

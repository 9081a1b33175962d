"""MM2's topics read by Spark say what the reader without Spark says of them: good bytes, broken ones and noise."""

import json
import random
from contextlib import closing
from types import SimpleNamespace

import pytest

from migrate.match.equality import Content
from migrate.mm2.chain import Window
from migrate.mm2.connect_offsets import positions_of
from migrate.mm2.topic_reader import ConsumedMm2Topics
from migrate.mm2.topics import WindowQuestion
from migrate.mm2.wire import SyncRecord, WireCheckpoint
from migrate.model import LogRange, Side
from migrate.spark.checkpoints import newest_checkpoints, read_checkpoints
from migrate.spark.dataframes import read_topic
from migrate.spark.mm2_topics import positions_in
from migrate.spark.syncs import Syncs
from migrate.survey.offsets_pin import CompactedMeanwhileError
from tests.spark.records import EPOCH_MS, FLOW, damaged, frame
from tests.wirebytes import Heartbeat, encode_checkpoint, encode_heartbeat, encode_sync

# Topic names in Kafka are tamer than this; nothing here may depend on it.
NAMES = ["", "g", "grüppe", "a'b\"c\\d", "two\nlines", "\x00", "名前", "x" * 300]
OFFSETS = [0, 1, 255, 256, 2**31, 2**47, 2**48, 2**63 - 1]
CONNECT = [
    (b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t1"}]', b'{"offset":4660}'),
    (b'"AAJnMQ=="', b'"AAAAAAAAAAAAAAAAAAAAAAAAAAE="'),
    (b'{"schema":{"type":"bytes"},"payload":"AA=="}', b'{"schema":{"type":"bytes"},"payload":"AA=="}'),
    (b"k", b'"AAAA=AA="'),
    (b"k", b'"AAAA\n"'),
    (b"k", b'{"schema":123456'),
]
UNBOUNDED = 2**62
SYNC = encode_sync(SyncRecord("t", 0, 1, 1))
CHECKPOINT = encode_checkpoint(WireCheckpoint("g", "A.t", 0, 1, 1))


def held(pairs, flow=FLOW):
    """The reader without Spark, of a topic with these records."""
    records = {n: Content(EPOCH_MS + n, *pair, ()) for n, pair in enumerate(pairs)}
    scanner = SimpleNamespace(scan=lambda ranges: dict.fromkeys(ranges, records))
    return ConsumedMm2Topics(flow, scanner, scanner)


def windows_of(records, questions, flow=FLOW):
    with closing(Syncs(records, flow)) as syncs:
        return syncs.reading(questions)


def some_record(rnd):
    partition = rnd.choice([0, 1, 300, 2**31 - 1])
    pick = rnd.randrange(4)
    if pick == 0:
        return encode_heartbeat(Heartbeat(rnd.choice(NAMES), rnd.choice(NAMES), rnd.choice(OFFSETS)))
    if pick == 1:
        return encode_sync(SyncRecord(rnd.choice(NAMES), partition, rnd.choice(OFFSETS), rnd.choice(OFFSETS)))
    group, topic, metadata = (rnd.choice(NAMES) for _ in range(3))
    offsets = (rnd.choice(OFFSETS), rnd.choice(OFFSETS))
    # One group has no metadata on any partition.
    return encode_checkpoint(WireCheckpoint(group, topic, partition, *offsets, "" if group == "g" else metadata))


def records_of_all_kinds(seed):
    rnd = random.Random(seed)
    pairs = [*CONNECT, CHECKPOINT]
    for _ in range(1500):
        key, value = some_record(rnd)
        if rnd.random() < 0.3:
            key = damaged(rnd, key)
        if rnd.random() < 0.5:
            value = damaged(rnd, value)
        pairs.append((key, value))
    rnd.shuffle(pairs)
    return pairs


@pytest.mark.parametrize("seed", range(3))
def test_the_newest_checkpoints_and_the_count_of_records_by_kind_are_those_of_the_other_reader(spark, seed):
    pairs = records_of_all_kinds(seed)
    whole, log = frame(spark, pairs), LogRange(0, len(pairs))
    read = newest_checkpoints(lambda part: whole.where(f"offset between {part.start} and {part.end - 1}"), log)
    expected = held(pairs).checkpoints("topic", log)
    assert dict(read.latest) == expected.latest and len(expected.latest) > 100
    assert read.counts == expected.counts and min(expected.counts["tombstone"], len(expected.counts)) > 5
    questions = [WindowQuestion(name, 0, 2**48, 2**63 - 1, 2**63 - 1) for name in NAMES]
    assert windows_of(whole, questions) == held(pairs).windows(Side.SOURCE, "topic", log, questions)


def test_a_record_compacted_away_between_the_passes_is_not_missed_in_silence(spark):
    of_h = (encode_checkpoint(WireCheckpoint("h", "A.t", 3, n, n)) for n in (2, 3))
    whole = frame(spark, [CHECKPOINT, *of_h])
    ranges = []

    def compacting(part):
        ranges.append(part)
        return whole if len(ranges) == 1 else whole.where("offset <> 0")

    # Read again up to the same end, the group whose record gave place to one beyond it would not be there at all.
    with pytest.raises(CompactedMeanwhileError, match="MM2's checkpoints topic was compacted"):
        newest_checkpoints(compacting, LogRange(0, 3))
    assert ranges == [LogRange(0, 3), LogRange(0, 3)]


def history(rnd, count, wildness):
    """Syncs as MM2 leaves them: rising, with restarts (back in both), re-creations (back in one) and noise."""
    source = target = 0
    for _ in range(count):
        if rnd.random() < wildness:
            source = rnd.choice([source, 0, max(0, source - rnd.randrange(20))])
            target = rnd.choice([target, 0, target + rnd.randrange(20)])
        source += rnd.randrange(4)
        target += rnd.randrange(4)
        yield source, target


def scene(seed, wildness, partitions=6, count=60):
    rnd = random.Random(seed)
    places = [(rnd.choice(NAMES), number) for number in range(partitions)]
    queues = {place: list(history(rnd, count, wildness)) for place in places}
    pairs = []
    while any(queues.values()):
        place = rnd.choice([p for p in places if queues[p]])
        pairs.append(encode_sync(SyncRecord(*place, *queues[place].pop(0))))
        if rnd.random() < 0.05:
            pairs.append((pairs[-1][0], rnd.choice([None, b"", b"0123456789"])))
    questions = []
    for place in [*places, ("never-synced", 0)]:
        ends = (rnd.choice([None, rnd.randrange(1, 150), UNBOUNDED]), rnd.choice([rnd.randrange(1, 150), UNBOUNDED]))
        questions += [WindowQuestion(*place, g, *ends) for g in range(0, 150, rnd.choice([1, 7]))]
    return pairs, questions


@pytest.mark.parametrize("flow", [FLOW, FLOW.reversed()], ids=["onwards", "back"])
@pytest.mark.parametrize("wildness", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_windows_between_syncs_are_those_of_the_other_reader(spark, seed, wildness, flow):
    pairs, questions = scene(seed, wildness)
    expected = held(pairs, flow).windows(Side.SOURCE, "topic", LogRange(0, len(pairs)), questions)
    assert windows_of(frame(spark, pairs), questions, flow) == expected


def test_topics_of_another_kind_are_recognised_and_where_there_is_nothing_no_broker_is_asked(spark):
    question, nothing = WindowQuestion("A.t", 0, 5, 10, 10), LogRange(5, 5)
    of_syncs = frame(spark, [SYNC] * 3)
    read = newest_checkpoints(lambda part: of_syncs, LogRange(0, 3)), read_checkpoints(spark, {}, "no-such", nothing)
    assert [(reading.latest, reading.counts) for reading in read] == [({}, {"offset-sync": 3}), ({}, {})]
    for records, counts in (
        (frame(spark, [CHECKPOINT] * 3), {"checkpoint": 3}), (read_topic(spark, {}, "no-such", nothing), {}),
    ):  # fmt: skip
        reading = windows_of(records, [question])
        assert (reading.windows, reading.counts) == ({question: Window(None, None)}, counts)


def key(connector, **members):
    return json.dumps([connector, members], separators=(",", ":"), ensure_ascii=False).encode()


def some_positions(seed):
    rnd = random.Random(seed)
    keys = [
        key("MirrorSourceConnector", cluster="A", partition=p, topic=t) for t in ("t", "group", "名") for p in (0, 1)
    ]
    keys += [
        key("MirrorSourceConnector", cluster="C", partition=0, topic="t"),
        key("MirrorCheckpointConnector", partition=0, topic="A.t", group="g"),
        key("MirrorHeartbeatConnector", sourceClusterAlias="A", targetClusterAlias="B"),
        b"\xff\x00", b"[", None,
    ]  # fmt: skip
    values = [None, b"{}", *(json.dumps({"offset": rnd.randrange(999)}).encode() for _ in range(20))]
    return [(rnd.choice(keys), rnd.choice(values)) for _ in range(80)]


@pytest.mark.parametrize("seed", range(3))
def test_mm2s_own_positions_are_those_that_the_plain_function_finds(spark, seed):
    pairs = some_positions(seed)
    expected = positions_of(pairs, "A")
    assert positions_in(frame(spark, pairs), "A") == expected
    assert len(expected) > 3

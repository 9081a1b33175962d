"""The SQL expressions say the same as `migrate.mm2.wire`, on good bytes, broken bytes and noise."""

import random

import pytest

from migrate.mm2.wire import RecordKind, SyncRecord, WireCheckpoint, decode_checkpoint, label
from migrate.spark import columns
from tests.spark.records import frame, newest, windows_of
from tests.wirebytes import Heartbeat, encode_checkpoint, encode_heartbeat, encode_sync

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


def some_record(rnd):
    partition = rnd.choice([0, 1, 300, 2**31 - 1])
    pick = rnd.randrange(4)
    if pick == 0:
        return encode_heartbeat(Heartbeat(rnd.choice(NAMES), rnd.choice(NAMES), rnd.choice(OFFSETS)))
    if pick == 1:
        return encode_sync(SyncRecord(rnd.choice(NAMES), partition, rnd.choice(OFFSETS), rnd.choice(OFFSETS)))
    names = [rnd.choice(NAMES) for _ in range(3)]
    offsets = (rnd.choice(OFFSETS), rnd.choice(OFFSETS))
    return encode_checkpoint(WireCheckpoint(names[0], names[1], partition, *offsets, names[2]))


def damaged(rnd, data):
    """The same bytes cut, extended, with a byte changed, replaced by noise, or left out."""
    pick = rnd.randrange(7)
    place = rnd.randrange(len(data) + 1)
    if pick == 0:
        return None
    if pick == 1:
        return data[:place]
    if pick == 2:
        return data + rnd.randbytes(rnd.randrange(1, 6))
    if pick == 3:
        return rnd.randbytes(rnd.choice([0, 1, 2, 9, 10, 15, 16, 17, 20, 21, 40]))
    if pick == 4 and data:
        return data[:place][:-1] + bytes([rnd.choice([0x00, 0x01, 0x7F, 0x80, 0xFF])]) + data[place:]
    return data


def records_of_all_kinds(seed, count=1500):
    rnd = random.Random(seed)
    pairs = []
    for _ in range(count):
        key, value = some_record(rnd)
        if rnd.random() < 0.5:
            key = damaged(rnd, key)
        if rnd.random() < 0.5:
            value = damaged(rnd, value)
        pairs.append((key, value))
    pairs += CONNECT
    rnd.shuffle(pairs)
    return pairs


@pytest.mark.parametrize("wanted", [RecordKind.CHECKPOINT, RecordKind.OFFSET_SYNC])
def test_every_record_has_the_label_that_the_plain_decoder_gives_it(spark, wanted):
    pairs = records_of_all_kinds(seed=7)
    shaped = frame(spark, pairs).selectExpr("*", f"{columns.shape()} as shape")
    found = dict(columns.with_label(shaped, wanted).select("offset", "label").collect())
    assert found == {offset: label(wanted, *pair) for offset, pair in enumerate(pairs)}


@pytest.mark.parametrize("seed", range(3))
def test_counts_add_up_to_the_records_read(spark, seed):
    pairs = records_of_all_kinds(seed, count=400)
    assert sum(newest(spark, pairs).counts.values()) == len(pairs)
    assert sum(windows_of(frame(spark, pairs), []).counts.values()) == len(pairs)


def test_checkpoints_decode_as_the_plain_decoder_says(spark):
    pairs = [
        pair
        for pair in dict(records_of_all_kinds(seed=11)).items()
        if isinstance(decode_checkpoint(*pair), WireCheckpoint)
    ]
    wanted = {}
    for offset, pair in enumerate(pairs):
        record = decode_checkpoint(*pair)
        place = (record.group, record.target_topic, record.partition)
        wanted[place] = (record.source_offset, record.target_offset, record.metadata, offset)
    found = {
        (k.group, k.target_topic, k.partition): (c.source_offset, c.target_offset, c.metadata, c.position)
        for k, c in newest(spark, pairs).latest.items()
    }
    assert found == wanted

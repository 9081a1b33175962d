"""Laws of MM2's wire formats: Kafka's own bytes decode as Kafka says, and nothing foreign passes for a record.

`CAPTURED` is what a real MirrorMaker 2 wrote, of two Kafka versions: agreeing with ourselves proves nothing. It copied
a topic `orders` of two partitions from A to B, with the groups `billing` at (150, 40) and `größe` at (150, -).
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.wire import (
    Reason,
    RecordKind,
    SyncRecord,
    WireCheckpoint,
    classify,
    decode_checkpoint,
    decode_sync,
    label,
)
from tests.wirebytes import encode_checkpoint, encode_sync

OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CHECKPOINTS = st.builds(WireCheckpoint, NAMES, NAMES, PARTITIONS, OFFSETS, OFFSETS, NAMES)
SYNCS = st.builds(SyncRecord, NAMES, PARTITIONS, OFFSETS, OFFSETS)
KEY, VALUE = encode_checkpoint(WireCheckpoint("g", "A.t", 0, 1, 2, "m"))
SYNC_KEY, SYNC_VALUE = encode_sync(SyncRecord("t", 0, 1, 2))


def test_kafkas_bytes_decode_and_encode():
    """What Kafka 4.3's Checkpoint class writes, with metadata, which no captured record has."""
    key = bytes.fromhex("0007 67726f75702d31 0007 746f7069632d32 00000003")
    value = bytes.fromhex("0000 0000000000000004 0000000000000005 000a 6d657461646174612d36")
    record = WireCheckpoint("group-1", "topic-2", 3, 4, 5, "metadata-6")
    assert decode_checkpoint(key, value) == record and encode_checkpoint(record) == (key, value)


@given(CHECKPOINTS, SYNCS)
def test_records_survive_their_bytes(checkpoint, sync):
    assert decode_checkpoint(*encode_checkpoint(checkpoint)) == checkpoint
    assert classify(*encode_checkpoint(checkpoint)) is RecordKind.CHECKPOINT
    assert decode_sync(*encode_sync(sync)) == sync
    assert classify(*encode_sync(sync)) is RecordKind.OFFSET_SYNC


@given(st.binary(max_size=60) | st.none(), st.binary(max_size=60) | st.none())
def test_no_bytes_raise(key, value):
    for read in (decode_checkpoint, decode_sync, classify):
        read(key, value)


@pytest.mark.parametrize(("decode", "key", "value", "reason"), [
    (decode_checkpoint, KEY, None, Reason.TOMBSTONE),
    (decode_checkpoint, None, VALUE, Reason.OTHER),
    (decode_checkpoint, KEY, b"\x00", Reason.BAD_LENGTH),
    (decode_checkpoint, KEY, b"\x00\x01" + VALUE[2:], Reason.UNKNOWN_VERSION),
    (decode_checkpoint, KEY, VALUE[:18] + b"\xff\xff", Reason.BAD_LENGTH),
    (decode_checkpoint, b"\xff\xff" + KEY[2:], VALUE, Reason.BAD_LENGTH),
    (decode_checkpoint, KEY, VALUE[:-1] + b"\xff", Reason.INVALID_UTF8),
    (decode_checkpoint, b"\x00\x01\xff\x00\x01t\x00\x00\x00\x00", VALUE, Reason.INVALID_UTF8),
    (decode_checkpoint, KEY[:-4] + b"\xff\xff\xff\xff", VALUE, Reason.OTHER),
    (decode_checkpoint, KEY, VALUE[:2] + b"\xff" * 8 + VALUE[10:], Reason.OTHER),
    (decode_checkpoint, KEY, b'{"schema":{"type":"bytes","optional":false},"payload":"AAAA"}', Reason.CONNECT_JSON),
    (decode_checkpoint, KEY, b'"AAAAAAAAAAAAAAAAAAAAAAAAAAE="', Reason.CONNECT_JSON),
    (decode_sync, SYNC_KEY, None, Reason.TOMBSTONE),
    (decode_sync, SYNC_KEY, SYNC_VALUE + b"\x00", Reason.BAD_LENGTH),
    (decode_sync, SYNC_KEY[:-1], SYNC_VALUE, Reason.BAD_LENGTH),
    (decode_sync, SYNC_KEY, b"\x80" + SYNC_VALUE[1:], Reason.OTHER),
    (decode_sync, None, SYNC_VALUE, Reason.OTHER),
])  # fmt: skip
def test_a_broken_record_has_its_reason(decode, key, value, reason):
    assert decode(key, value) == reason


@pytest.mark.parametrize(("key", "value", "kind"), [
    (b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t1"}]', b'{"offset":9}', "connect-offsets"),
    (b'{"schema":{"type":"bytes"},"payload":"AA=="}', b'{"schema":{},"payload":"AA=="}', "connect-json"),
    (KEY, None, "tombstone"),
    (b"order-1", b'{"id":1}', "undecodable:unknown-version"),
    (SYNC_KEY, SYNC_VALUE, "offset-sync"),
])  # fmt: skip
def test_the_records_of_a_wrong_topic_name_it(key, value, kind):
    assert label(RecordKind.CHECKPOINT, key, value) == kind


CAPTURED = json.loads((Path(__file__).parents[2] / "golden" / "mm2-records.json").read_text())


def records(version: str, kind: str) -> list[tuple[bytes | None, ...]]:
    pairs = [(record["key"], record["value"]) for record in CAPTURED[version][kind]]
    return [tuple(None if text is None else bytes.fromhex(text) for text in pair) for pair in pairs]


@pytest.mark.parametrize("version", sorted(CAPTURED))
def test_records_are_read_as_mm2_meant_them_and_written_back_to_the_same_bytes(version):
    checkpoints = [decode_checkpoint(*record) for record in records(version, "checkpoint")]
    assert {(r.group, r.target_topic, r.partition, r.source_offset) for r in checkpoints} == {
        ("billing", "A.orders", 0, 150), ("billing", "A.orders", 1, 40), ("größe", "A.orders", 0, 150),
    }  # fmt: skip
    assert all(0 <= r.target_offset <= r.source_offset for r in checkpoints)
    assert [encode_checkpoint(r) for r in checkpoints] == records(version, "checkpoint")
    syncs = [decode_sync(*record) for record in records(version, "offset-sync")]
    # Nothing was lost or written twice, so both logs run alike.
    assert all(r.source_topic == "orders" and r.source_offset == r.target_offset for r in syncs)
    assert [encode_sync(r) for r in syncs] == records(version, "offset-sync")
    for kind in ("checkpoint", "offset-sync", "heartbeat", "connect-offsets"):
        assert {classify(*record) for record in records(version, kind)} == {RecordKind(kind)}

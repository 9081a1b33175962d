"""Laws of MM2's wire formats: Kafka's own bytes decode as Kafka says, and nothing foreign passes for a record."""

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
from tests.wirebytes import Heartbeat, encode_checkpoint, encode_heartbeat, encode_sync

OFFSETS = st.integers(0, 2**63 - 1)
PARTITIONS = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
CHECKPOINTS = st.builds(WireCheckpoint, NAMES, NAMES, PARTITIONS, OFFSETS, OFFSETS, NAMES)
SYNCS = st.builds(SyncRecord, NAMES, PARTITIONS, OFFSETS, OFFSETS)
HEARTBEATS = st.builds(Heartbeat, NAMES, NAMES, st.integers(-(2**63), 2**63 - 1))

# What Kafka 4.3's Checkpoint, OffsetSync and Heartbeat classes write.
CHECKPOINT_BYTES = [
    (
        "0002 6731 0004 412e7431 00000003",
        "0000 0000000000001234 0000000000000102 0000",
        WireCheckpoint("g1", "A.t1", 3, 4660, 258),
    ),
    (
        "0007 67726f75702d31 0007 746f7069632d32 00000003",
        "0000 0000000000000004 0000000000000005 000a 6d657461646174612d36",
        WireCheckpoint("group-1", "topic-2", 3, 4, 5, "metadata-6"),
    ),
]
SYNC_BYTES = [
    ("0002 7431 00000003", "0000000000001234 0000000000000102", SyncRecord("t1", 3, 4660, 258)),
    ("0007 746f7069632d31 00000002", "0000000000000003 0000000000000004", SyncRecord("topic-1", 2, 3, 4)),
]
HEARTBEAT_BYTES = ("0001 41 0001 42", "0000 0000018bcfe56800", Heartbeat("A", "B", 1_700_000_000_000))

KEY, VALUE = encode_checkpoint(WireCheckpoint("g", "A.t", 0, 1, 2, "m"))
SYNC_KEY, SYNC_VALUE = encode_sync(SyncRecord("t", 0, 1, 2))


@pytest.mark.parametrize(("key", "value", "record"), CHECKPOINT_BYTES)
def test_kafkas_checkpoint_bytes_decode_and_encode(key, value, record):
    assert decode_checkpoint(bytes.fromhex(key), bytes.fromhex(value)) == record
    assert encode_checkpoint(record) == (bytes.fromhex(key), bytes.fromhex(value))


@pytest.mark.parametrize(("key", "value", "record"), SYNC_BYTES)
def test_kafkas_offset_sync_bytes_decode_and_encode(key, value, record):
    assert decode_sync(bytes.fromhex(key), bytes.fromhex(value)) == record
    assert encode_sync(record) == (bytes.fromhex(key), bytes.fromhex(value))


def test_kafkas_heartbeat_bytes_are_recognised():
    key, value, record = HEARTBEAT_BYTES
    assert classify(bytes.fromhex(key), bytes.fromhex(value)) is RecordKind.HEARTBEAT
    assert encode_heartbeat(record) == (bytes.fromhex(key), bytes.fromhex(value))


@given(CHECKPOINTS)
def test_a_checkpoint_survives_its_bytes(record):
    assert decode_checkpoint(*encode_checkpoint(record)) == record
    assert classify(*encode_checkpoint(record)) is RecordKind.CHECKPOINT


@given(SYNCS)
def test_an_offset_sync_survives_its_bytes(record):
    assert decode_sync(*encode_sync(record)) == record
    assert classify(*encode_sync(record)) is RecordKind.OFFSET_SYNC


@given(HEARTBEATS)
def test_a_heartbeat_is_recognised_by_its_bytes(record):
    assert classify(*encode_heartbeat(record)) is RecordKind.HEARTBEAT


@given(st.binary(max_size=60) | st.none(), st.binary(max_size=60) | st.none())
def test_no_bytes_raise(key, value):
    for decode in (decode_checkpoint, decode_sync):
        decode(key, value)
    classify(key, value)


@given(CHECKPOINTS, st.binary(min_size=1, max_size=5))
def test_trailing_bytes_are_refused(record, extra):
    key, value = encode_checkpoint(record)
    assert decode_checkpoint(key + extra, value) == Reason.BAD_LENGTH
    assert decode_checkpoint(key, value + extra) == Reason.BAD_LENGTH


@given(CHECKPOINTS, st.data())
def test_a_cut_off_record_is_refused(record, data):
    key, value = encode_checkpoint(record)
    assert isinstance(decode_checkpoint(key[: data.draw(st.integers(0, len(key) - 1))], value), Reason)
    assert isinstance(decode_checkpoint(key, value[: data.draw(st.integers(0, len(value) - 1))]), Reason)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (KEY, None, Reason.TOMBSTONE),
        (None, VALUE, Reason.OTHER),
        (KEY, b"", Reason.BAD_LENGTH),
        (KEY, b"\x00", Reason.BAD_LENGTH),
        (KEY, b"\x00\x01" + VALUE[2:], Reason.UNKNOWN_VERSION),
        (KEY, VALUE[:18] + b"\xff\xff", Reason.BAD_LENGTH),
        (b"\xff\xff" + KEY[2:], VALUE, Reason.BAD_LENGTH),
        (KEY, VALUE[:-1] + b"\xff", Reason.INVALID_UTF8),
        (b"\x00\x01\xff\x00\x01t\x00\x00\x00\x00", VALUE, Reason.INVALID_UTF8),
        (KEY[:-4] + b"\xff\xff\xff\xff", VALUE, Reason.OTHER),
        (KEY, VALUE[:2] + b"\xff" * 8 + VALUE[10:], Reason.OTHER),
        (KEY, b'{"schema":{"type":"bytes","optional":false},"payload":"AAAA"}', Reason.CONNECT_JSON),
        (KEY, b'"AAAAAAAAAAAAAAAAAAAAAAAAAAE="', Reason.CONNECT_JSON),
    ],
)
def test_a_broken_checkpoint_has_its_reason(key, value, reason):
    assert decode_checkpoint(key, value) == reason


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (SYNC_KEY, None, Reason.TOMBSTONE),
        (SYNC_KEY, SYNC_VALUE + b"\x00", Reason.BAD_LENGTH),
        (SYNC_KEY[:-1], SYNC_VALUE, Reason.BAD_LENGTH),
        (SYNC_KEY, b"\x80" + SYNC_VALUE[1:], Reason.OTHER),
        (None, SYNC_VALUE, Reason.OTHER),
    ],
)
def test_a_broken_offset_sync_has_its_reason(key, value, reason):
    assert decode_sync(key, value) == reason


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (
            b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t1"}]',
            b'{"offset":4660}',
            "connect-offsets",
        ),
        (b'{"schema":{"type":"bytes"},"payload":"AA=="}', b'{"schema":{},"payload":"AA=="}', "connect-json"),
        (KEY, None, "tombstone"),
        (b"order-1", b'{"id":1}', "undecodable:unknown-version"),
        (SYNC_KEY, SYNC_VALUE, "offset-sync"),
    ],
)
def test_the_records_of_a_wrong_topic_name_it(key, value, kind):
    assert label(RecordKind.CHECKPOINT, key, value) == kind


def test_a_name_too_long_for_the_format_is_refused():
    with pytest.raises(ValueError, match="32768 bytes"):
        encode_sync(SyncRecord("x" * 32768, 0, 0, 0))

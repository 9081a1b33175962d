"""The bytes of MirrorMaker 2's own records: checkpoints, offset syncs, heartbeats.

Layouts are those of Kafka's `Checkpoint`, `OffsetSync` (connect/mirror) and `Heartbeat` (connect/mirror-client): all
integers big-endian, a string is an int16 byte length and UTF-8. `migrate.spark.columns` says the same in Spark SQL and
is tested against this. Nothing raises on foreign bytes: what cannot be read gives the `Reason` why. Stricter
than MM2 in two points: a version other than 0 and trailing bytes are refused, as their meaning is unknown.
"""

import re
import struct
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a record could not be decoded."""

    TOMBSTONE = "tombstone"
    UNKNOWN_VERSION = "unknown-version"
    BAD_LENGTH = "bad-length"
    INVALID_UTF8 = "invalid-utf8"
    CONNECT_JSON = "connect-json"
    OTHER = "other"


class RecordKind(StrEnum):
    """Which of MM2's topics a record looks to belong to."""

    CHECKPOINT = "checkpoint"
    OFFSET_SYNC = "offset-sync"
    HEARTBEAT = "heartbeat"
    CONNECT_OFFSETS = "connect-offsets"
    CONNECT_JSON = "connect-json"
    TOMBSTONE = "tombstone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WireCheckpoint:
    """One checkpoint; `target_topic` is the topic's name on the target, as MM2's policy renamed it."""

    group: str
    target_topic: str
    partition: int
    source_offset: int
    target_offset: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """One offset sync; `source_topic` is the topic's name on the source."""

    source_topic: str
    partition: int
    source_offset: int
    target_offset: int


_CONNECT_JSON_START = b'{"schema":'
_QUOTED_BASE64 = re.compile(rb'"[A-Za-z0-9+/]+={0,2}"')
_INT32 = struct.Struct(">i")
_PAIR = struct.Struct(">qq")
_CHECKPOINT_HEAD = struct.Struct(">hqqh")
_HEARTBEAT_SIZE = struct.calcsize(">hq")


class _Broken(Exception):
    """Raised where a record cannot be read."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def _present(value: bytes | None) -> bytes:
    """Return a value that is there, in bytes that no JSON converter has wrapped."""
    if value is None:
        raise _Broken(Reason.TOMBSTONE)
    if looks_like_connect_json(value):
        raise _Broken(Reason.CONNECT_JSON)
    return value


def _version_zero(value: bytes) -> bytes:
    """Return a value whose first int16 is version 0, the only one that exists."""
    if len(value) < 2:
        raise _Broken(Reason.BAD_LENGTH)
    if value[:2] != b"\x00\x00":
        raise _Broken(Reason.UNKNOWN_VERSION)
    return value


def decode_checkpoint(key: bytes | None, value: bytes | None) -> WireCheckpoint | Reason:
    """Decode a record of the checkpoints topic (Kafka's `Checkpoint`, value version 0)."""
    try:
        value = _version_zero(_present(value))
        if len(value) < _CHECKPOINT_HEAD.size:
            raise _Broken(Reason.BAD_LENGTH)
        _, source_offset, target_offset, size = _CHECKPOINT_HEAD.unpack_from(value)
        if size < 0 or len(value) != _CHECKPOINT_HEAD.size + size:
            raise _Broken(Reason.BAD_LENGTH)
        group, topic, partition = _checkpoint_key(key)
        _require_natural(source_offset, target_offset)
        metadata = _text(value[_CHECKPOINT_HEAD.size :])
        return WireCheckpoint(group, topic, partition, source_offset, target_offset, metadata)
    except _Broken as broken:
        return broken.reason


def decode_checkpoint_key(key: bytes | None) -> tuple[str, str, int] | Reason:
    """Decode what a record of the checkpoints topic is about, a tombstone too: group, target topic and partition."""
    try:
        return _checkpoint_key(key)
    except _Broken as broken:
        return broken.reason


def decode_sync(key: bytes | None, value: bytes | None) -> SyncRecord | Reason:
    """Decode a record of the offset-syncs topic (Kafka's `OffsetSync`; it has no version)."""
    try:
        value = _present(value)
        if len(value) != _PAIR.size:
            raise _Broken(Reason.BAD_LENGTH)
        (topic,), tail = _strings(key, 1, _INT32.size)
        (partition,) = _INT32.unpack(tail)
        source_offset, target_offset = _PAIR.unpack(value)
        _require_natural(partition, source_offset, target_offset)
        return SyncRecord(topic, partition, source_offset, target_offset)
    except _Broken as broken:
        return broken.reason


def _is_heartbeat(key: bytes | None, value: bytes) -> bool:
    """True for a record of a heartbeats topic (Kafka's `Heartbeat`, value version 0): two aliases, and a timestamp."""
    try:
        _strings(key, 2, 0)
        return len(_version_zero(value)) == _HEARTBEAT_SIZE
    except _Broken:
        return False


def classify(key: bytes | None, value: bytes | None) -> RecordKind:
    """Say which of MM2's topics a record belongs to, so that a wrong topic is recognised by its records.

    Values of the three kinds differ in length, so that at most one fits; a record that is broken is `UNKNOWN`.
    """
    if value is None:
        return RecordKind.TOMBSTONE
    if not isinstance(decode_checkpoint(key, value), Reason):
        return RecordKind.CHECKPOINT
    if not isinstance(decode_sync(key, value), Reason):
        return RecordKind.OFFSET_SYNC
    if _is_heartbeat(key, value):
        return RecordKind.HEARTBEAT
    if key is not None and key.startswith(b'["') and key.endswith(b"}]"):
        # A JSON array of a connector's name and an object.
        return RecordKind.CONNECT_OFFSETS
    return RecordKind.CONNECT_JSON if looks_like_connect_json(value) else RecordKind.UNKNOWN


def label(expected: RecordKind, key: bytes | None, value: bytes | None) -> str:
    """Name a record for the counts of a topic that should hold `expected` (CHECKPOINT or OFFSET_SYNC).

    The kind it looks to be of, else "undecodable:" and the reason why it is not of the expected kind.
    """
    return read_as(expected, key, value)[1]


def read_as(
    expected: RecordKind, key: bytes | None, value: bytes | None
) -> tuple[WireCheckpoint | SyncRecord | Reason, str]:
    """Decode a record as `label` expects it, once, and name it as `label` does; `Reason` where it is none of these."""
    decoded = decode_checkpoint(key, value) if expected is RecordKind.CHECKPOINT else decode_sync(key, value)
    if expected in (RecordKind.CHECKPOINT, RecordKind.OFFSET_SYNC) and not isinstance(decoded, Reason):
        # At most one kind fits a record: no other needs to be tried.
        return decoded, expected.value
    kind = classify(key, value)
    if kind is not RecordKind.UNKNOWN:
        return decoded, kind.value
    return decoded, f"undecodable:{decoded if isinstance(decoded, Reason) else Reason.OTHER}"


def looks_like_connect_json(value: bytes) -> bool:
    """True for bytes that went through a JsonConverter: `{"schema":...}`, or a quoted base64 string.

    MM2 under Kafka Connect writes its records through the worker's converters; a worker that was left on
    JsonConverter writes text where MM2 and its tools expect bytes.
    """
    is_base64 = len(value) % 4 == 2 and _QUOTED_BASE64.fullmatch(value) is not None
    return is_base64 or value.startswith(_CONNECT_JSON_START)


def encode_sync_key(source_topic: str, partition: int) -> bytes:
    """Return the key of a partition's offset syncs; raises `ValueError` for a name over 32,767 bytes."""
    raw = source_topic.encode()
    if len(raw) > 0x7FFF:
        raise ValueError(f"a string of {len(raw)} bytes does not fit an int16 length")
    return struct.pack(">h", len(raw)) + raw + _INT32.pack(partition)


def _strings(data: bytes | None, count: int, tail_size: int) -> tuple[list[str], bytes]:
    """Read `count` strings; exactly `tail_size` bytes are left after them and come second."""
    if data is None:
        raise _Broken(Reason.OTHER)
    raw = []
    for _ in range(count):
        if len(data) < 2:
            raise _Broken(Reason.BAD_LENGTH)
        size = int.from_bytes(data[:2], "big", signed=True)
        if size < 0 or len(data) < 2 + size:
            raise _Broken(Reason.BAD_LENGTH)
        raw.append(data[2 : 2 + size])
        data = data[2 + size :]
    if len(data) != tail_size:
        raise _Broken(Reason.BAD_LENGTH)
    return [_text(part) for part in raw], data


def _checkpoint_key(key: bytes | None) -> tuple[str, str, int]:
    (group, topic), tail = _strings(key, 2, _INT32.size)
    (partition,) = _INT32.unpack(tail)
    _require_natural(partition)
    return group, topic, partition


def _require_natural(*numbers: int) -> None:
    # A negative offset is never written by MM2; taken as a number it would pass every "below the commit" test.
    if min(numbers) < 0:
        raise _Broken(Reason.OTHER)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _Broken(Reason.INVALID_UTF8) from None

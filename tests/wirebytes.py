"""Records of MM2's topics as bytes, as MM2 writes them: what tests and benchmarks put into a log."""

import struct
from typing import NamedTuple

from migrate.mm2.wire import SyncRecord, WireCheckpoint, encode_sync_key

_VERSION = 0
_INT32 = struct.Struct(">i")
_PAIR = struct.Struct(">qq")
_CHECKPOINT_HEAD = struct.Struct(">hqqh")
_HEARTBEAT = struct.Struct(">hq")


class Heartbeat(NamedTuple):
    """One heartbeat; `timestamp` in ms since 1970."""

    source_alias: str
    target_alias: str
    timestamp: int


def encode_checkpoint(record: WireCheckpoint) -> tuple[bytes, bytes]:
    """Return key and value as MM2 writes them; raises `ValueError` for a string over 32,767 bytes."""
    key = _string(record.group) + _string(record.target_topic) + _INT32.pack(record.partition)
    metadata = record.metadata.encode()
    if len(metadata) > 0x7FFF:
        raise ValueError(f"metadata of {len(metadata)} bytes does not fit an int16 length")
    head = _CHECKPOINT_HEAD.pack(_VERSION, record.source_offset, record.target_offset, len(metadata))
    return key, head + metadata


def encode_sync(record: SyncRecord) -> tuple[bytes, bytes]:
    """Return key and value as MM2 writes them; raises `ValueError` for a string over 32,767 bytes."""
    key = encode_sync_key(record.source_topic, record.partition)
    return key, _PAIR.pack(record.source_offset, record.target_offset)


def encode_heartbeat(record: Heartbeat) -> tuple[bytes, bytes]:
    """Return key and value as MM2 writes them; raises `ValueError` for a string over 32,767 bytes."""
    return _string(record.source_alias) + _string(record.target_alias), _HEARTBEAT.pack(_VERSION, record.timestamp)


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > 0x7FFF:
        raise ValueError(f"a string of {len(encoded)} bytes does not fit an int16 length")
    return struct.pack(">h", len(encoded)) + encoded

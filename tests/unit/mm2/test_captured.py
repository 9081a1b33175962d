"""Bytes that a real MirrorMaker 2 wrote, of two Kafka versions: agreeing with ourselves proves nothing.

Captured from MM2 copying a topic `orders` of two partitions from A to B, with the groups `billing` at (150, 40) and
`größe` at (150, -). The first eight records of each topic.
"""

import json
from pathlib import Path

import pytest

from migrate.mm2.wire import (
    RecordKind,
    SyncRecord,
    WireCheckpoint,
    classify,
    decode_checkpoint,
    decode_sync,
)
from tests.wirebytes import encode_checkpoint, encode_sync

CAPTURED = json.loads((Path(__file__).parents[2] / "golden" / "mm2-records.json").read_text())
VERSIONS = sorted(CAPTURED)


def records(version: str, kind: str) -> list[tuple[bytes | None, bytes | None]]:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else bytes.fromhex(text)

    return [(raw(r["key"]), raw(r["value"])) for r in CAPTURED[version][kind]]


@pytest.mark.parametrize("version", VERSIONS)
def test_checkpoints_are_read_as_mm2_meant_them_and_written_back_to_the_same_bytes(version):
    read = [decode_checkpoint(*record) for record in records(version, "checkpoint")]
    assert all(isinstance(r, WireCheckpoint) for r in read)
    assert {(r.group, r.target_topic, r.partition, r.source_offset) for r in read} == {
        ("billing", "A.orders", 0, 150), ("billing", "A.orders", 1, 40), ("größe", "A.orders", 0, 150),
    }  # fmt: skip
    assert all(0 <= r.target_offset <= r.source_offset for r in read)
    assert [encode_checkpoint(r) for r in read] == records(version, "checkpoint")


@pytest.mark.parametrize("version", VERSIONS)
def test_offset_syncs_are_read_as_mm2_meant_them_and_written_back_to_the_same_bytes(version):
    read = [decode_sync(*record) for record in records(version, "offset-sync")]
    assert all(isinstance(r, SyncRecord) and r.source_topic == "orders" for r in read)
    # Nothing was lost or written twice, so both logs run alike.
    assert all(r.source_offset == r.target_offset for r in read)
    assert [encode_sync(r) for r in read] == records(version, "offset-sync")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["checkpoint", "offset-sync", "heartbeat", "connect-offsets"])
def test_a_topic_is_recognised_by_its_records(version, kind):
    assert {classify(*record) for record in records(version, kind)} == {RecordKind(kind)}

"""Bytes that a real MirrorMaker 2 wrote, of two Kafka versions: agreeing with ourselves proves nothing.

Captured from MM2 copying a topic `orders` of two partitions from A to B, with the groups `billing` at (150, 40) and
`größe` at (150, -). The first eight records of each topic.
"""

import json
from pathlib import Path

import pytest

from migrate.mm2.wire import (
    RecordKind,
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

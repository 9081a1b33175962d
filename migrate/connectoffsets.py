"""MM2's own positions: the records of the Connect offsets topic that its source connector's tasks commit. Pure.

A key is JSON, `["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]`, a value `{"offset":4660}`:
the last source record that was copied, inclusive (`MirrorSourceTask`, `MirrorUtils`). A null value clears it. In
a Connect worker the connector has the user's name, and other connectors share the topic: only the shape of the
second part counts.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from migrate.model import LogRange, TopicPartition


@dataclass(frozen=True)
class Positions:
    """What MM2 has copied for sure, by source partition: the offset of the last record copied.

    `pinned` are the ranges of `topic` that were read, by partition. `unknown` says why nothing could be read, ""
    where it was.
    """

    topic: str = ""
    copied_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    pinned: Mapping[int, LogRange] = field(default_factory=dict)
    unknown: str = ""


def positions_of(records: Iterable[tuple[bytes | None, bytes | None]], source_alias: str) -> dict[TopicPartition, int]:
    """Return the last copied offset by source partition, from (key, value) pairs in log order.

    The last record of a key wins, and a null value clears it. Records of other connectors and other sources, and
    what is no position at all, are left aside. Two keys that mean the same partition (their members may stand in
    another order where a position was set by hand) give the smaller offset.
    """
    last = dict(records)
    found: dict[TopicPartition, int] = {}
    for key, value in last.items():
        partition, offset = _partition(key, source_alias), _offset(value)
        if partition is not None and offset is not None:
            found[partition] = min(offset, found.get(partition, offset))
    return found


def _partition(key: bytes | None, source_alias: str) -> TopicPartition | None:
    match _json(key):
        case [str(), {"cluster": str(cluster), "topic": str(topic), "partition": int(partition)}] if (
            cluster == source_alias and partition >= 0
        ):
            return TopicPartition(topic, partition)
    return None


def _offset(value: bytes | None) -> int | None:
    match _json(value):
        case {"offset": int(offset)} if offset >= 0:
            return offset
    return None


def _json(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None

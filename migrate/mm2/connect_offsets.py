"""MM2's own positions: the records of the Connect offsets topic that its source connector's tasks commit. Pure.

A key is JSON, `["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]`, a value `{"offset":4660}`: the
last source record that was copied, inclusive (`MirrorSourceTask`, `MirrorUtils`); null clears it. In a worker the
connector has the user's name, and others share the topic: where the names are not known, only the shape of the second
part counts. A worker's REST reports the same as documents (KIP-875).
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from migrate.model import LogRange, TopicPartition


@dataclass(frozen=True)
class Positions:
    """What MM2 has copied for sure, by source partition: the offset of the last record copied.

    `topics` are where they lie, and `pinned` the ranges of them that were read; both are empty where a Connect worker
    reported the offsets. `unknown` says why nothing could be read, "" where it was.
    """

    topics: tuple[str, ...] = ()
    last_copied_offset: Mapping[TopicPartition, int] = field(default_factory=dict)
    pinned: Mapping[TopicPartition, LogRange] = field(default_factory=dict)
    unknown: str = ""


def positions_of(
    records: Iterable[tuple[bytes | None, bytes | None]], source_alias: str, connectors: Collection[str] = ()
) -> dict[TopicPartition, int]:
    """Return the last copied offset by source partition, from (key, value) pairs in log order.

    The last record of a key wins, and a null value clears it. Records of other sources, of connectors other than
    `connectors` (where these are known), and what is no position at all, are left aside. Two keys that mean the same
    partition (their members may be in another order where a position was set by hand) give the smaller offset.
    """
    newest = dict(records)
    return positions_in(((_key(key, connectors), _json(value)) for key, value in newest.items()), source_alias)


def positions_in(documents: Iterable[tuple[object, object]], source_alias: str) -> dict[TopicPartition, int]:
    """Return the last copied offset by source partition, from (partition, offset) documents as Connect has them."""
    positions: dict[TopicPartition, int] = {}
    for pair in documents:
        match pair:
            case {"cluster": alias, "topic": str(topic), "partition": int(number)}, {"offset": int(offset)} if (
                alias == source_alias and number >= 0 and offset >= 0
            ):
                place = TopicPartition(topic, number)
                positions[place] = min(offset, positions.get(place, offset))
    return positions


def _key(key: bytes | None, connectors: Collection[str]) -> object:
    match _json(key):
        case [str(name), partition] if not connectors or name in connectors:
            return partition
    return None


def _json(data: bytes | None) -> object:
    try:
        return json.loads(data or b"null")
    except (ValueError, RecursionError):
        return None

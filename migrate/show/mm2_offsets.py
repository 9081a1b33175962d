"""`mm2 offsets` as text and as JSON. Pure."""

import json
from collections.abc import Iterator

from migrate.match.protocol import OffsetPair
from migrate.mm2.flow import Flow
from migrate.show.lines import wrapped
from migrate.show.table import INDENT, Column, Table, field, shown
from migrate.survey.mm2_offsets import PartitionStores, Stores
from migrate.text import Colour, both_names, capital, many, name, paint, safe

LEGEND = (
    "POSITION is MM2's own: the last source offset that it has copied; it goes on behind it. LEFT counts the offsets "
    "after it, those of open transactions too, which MM2 copies unless it reads committed; where a log ends in "
    "transaction markers that never becomes 0. SYNC and CHECKPOINT (source:target) are MM2's notes for translation: "
    "the newest sync that fits both logs, and of the GROUPS that have a checkpoint the one that has come furthest. "
    "Neither says how far MM2 is."
)


def _pair(pair: OffsetPair | None) -> dict[str, int] | None:
    return None if pair is None else {"source_offset": pair[0], "target_offset": pair[1]}


def _pair_text(pair: dict[str, int] | None) -> str:
    return shown(pair and f"{pair['source_offset']}:{pair['target_offset']}")


COLUMNS: tuple[Column[PartitionStores], ...] = (
    Column("TOPIC", lambda s: both_names(s.source.topic, s.target_topic)),
    Column(None, lambda s: s.source.topic, key="source_topic"),
    Column("PARTITION", lambda s: s.source.partition, right=True, key="partition"),
    field("target_topic"),
    Column("LOG-START", lambda s: s.source_log and s.source_log.start, right=True, key="source_log_start"),
    Column("LOG-END", lambda s: s.source_log and s.source_log.end, right=True, key="source_log_end"),
    Column(None, lambda s: s.target_log and s.target_log.start, key="target_log_start"),
    Column(None, lambda s: s.target_log and s.target_log.end, key="target_log_end"),
    Column("POSITION", lambda s: s.last_copied_offset, right=True, key="position"),
    field("left", "LEFT", right=True),
    Column("SYNC", lambda s: _pair(s.sync), _pair_text, right=True, key="newest_sync"),
    Column("GROUPS", lambda s: s.groups, right=True, key="groups_with_checkpoint"),
    Column("CHECKPOINT", lambda s: _pair(s.furthest), _pair_text, right=True, key="furthest_checkpoint"),
)


def stores_lines(stores: Stores, flow: Flow, width: int, colour: bool) -> Iterator[str]:
    """Yield the report: what was read where, then every topic's partitions, then what is odd."""
    title = f"MM2's own positions, {name(flow.source.alias)} -> {name(flow.target.alias)}"
    yield paint(title, Colour.BOLD, colour)
    where = f"Read from {safe(stores.positions_from)}." if stores.positions_from else "Not read."
    yield from wrapped(where, width)
    yield from wrapped(LEGEND, width)
    for what, unknown in _unknown(stores):
        shade = Colour.RED if what == "POSITION" else Colour.YELLOW
        yield from wrapped(f"{what}: not known, {safe(unknown)}.", width, "", INDENT, shade if colour else None)
    if stores.partitions:
        yield ""
        table = Table(COLUMNS, stores.partitions, width, narrow=COLUMNS[1:])
        yield from table.lines(colour, _shade, COLUMNS[0].cell)
    yield ""
    yield from wrapped(_verdict(stores), width)


def stores_document(stores: Stores, flow: Flow) -> Iterator[str]:
    """Yield one JSON document: `partitions` with every number, null where a store says nothing of it."""
    document = {
        "source": flow.source.alias,
        "target": flow.target.alias,
        "positions_from": stores.positions_from,
        "not_known": {what.lower(): unknown for what, unknown in _unknown(stores)},
        "partitions": list(Table(COLUMNS, stores.partitions).documents()),
    }
    yield json.dumps(document, indent=2)


def _shade(row: PartitionStores) -> Colour | None:
    return Colour.RED if row.left is not None and row.left < 0 else None


def _unknown(stores: Stores) -> list[tuple[str, str]]:
    unknown = (stores.positions_unknown, stores.syncs_unknown, stores.checkpoints_unknown)
    return [(what, why) for what, why in zip(("POSITION", "SYNC", "CHECKPOINT"), unknown, strict=True) if why]


def _verdict(stores: Stores) -> str:
    if stores.positions_unknown:
        return "MM2's replication progress is unknown."
    if not stores.partitions:
        return "No topic inside the filters has a copy, or a position of MM2's: it has copied nothing of them yet."
    without = sum(s.last_copied_offset is None and not _is_empty(s) for s in stores.partitions)
    beyond = sum(s.left is not None and s.left < 0 for s in stores.partitions)
    left = sum(s.left for s in stores.partitions if s.left is not None and s.left > 0)
    unread = sum(s.last_copied_offset is not None and s.source_log is None for s in stores.partitions)
    is_known = any(s.left is not None for s in stores.partitions)
    # Where nothing is known, a sum of nothing would read as "all is copied".
    at_least = "at least " if without or beyond or unread else ""
    parts = [many(len(stores.partitions), "partition") + f", {at_least}{many(left, 'offset')} left" * is_known]
    if unread:
        parts.append(f"what is left of {many(unread, 'partition')} is not known: the source's log was not read")
    if without:
        parts.append(f"{without} without a position: nothing copied yet, or it was reset")
    if beyond:
        parts.append(f"{beyond} with a position beyond the log's end: of a log that was re-created or truncated")
    return capital("; ".join(parts)) + "."


def _is_empty(row: PartitionStores) -> bool:
    return row.source_log is not None and row.source_log.start == row.source_log.end

"""`mm2 offsets` as text and as JSON. Pure."""

import json
from collections.abc import Iterator
from itertools import groupby

from migrate.match.protocol import OffsetPair
from migrate.mm2.flow import Flow
from migrate.show.layout import columns, layout
from migrate.show.lines import number, wrapped
from migrate.survey.mm2_offsets import PartitionStores, Stores
from migrate.text import Colour, capital, many, name, paint, safe

LEGEND = (
    "POSITION is MM2's own: the last source offset that it has copied; it goes on behind it. LEFT counts the offsets "
    "after it, those of open transactions too, which MM2 copies unless it reads committed; where a log ends in "
    "transaction markers that never becomes 0. SYNC and CHECKPOINT (source:target) are MM2's notes for translation: "
    "the newest sync that fits both logs, and of the GROUPS that have a checkpoint the one that has come furthest. "
    "Neither says how far MM2 is."
)
COLUMNS = columns("PARTITION", "LOG-START", "LOG-END", "POSITION", "LEFT", "SYNC", "GROUPS", "CHECKPOINT")
INDENT = "  "


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
    laid = layout(COLUMNS, map(_values, stores.partitions), width - len(INDENT))
    for (source, target), rows in groupby(stores.partitions, key=lambda s: (s.source.topic, s.target_topic)):
        yield ""
        yield name(source) + (f" -> {name(target)}" if target != source else "")
        for heading in laid.headings:
            yield paint(INDENT + heading, Colour.DIM, colour)
        for row in rows:
            odd = row.left is not None and row.left < 0
            yield paint(INDENT + laid.line(_values(row)), Colour.RED, colour and odd)
    yield ""
    yield from wrapped(_verdict(stores), width)


def stores_document(stores: Stores, flow: Flow) -> Iterator[str]:
    """Yield one JSON document: `partitions` with every number, null where a store says nothing of it."""
    document = {
        "source": flow.source.alias,
        "target": flow.target.alias,
        "positions_from": stores.positions_from,
        "not_known": {what.lower(): unknown for what, unknown in _unknown(stores)},
        "partitions": [
            {
                "source_topic": s.source.topic,
                "partition": s.source.partition,
                "target_topic": s.target_topic,
                "source_log_start": s.source_log.start if s.source_log else None,
                "source_log_end": s.source_log.end if s.source_log else None,
                "target_log_start": s.target_log.start if s.target_log else None,
                "target_log_end": s.target_log.end if s.target_log else None,
                "position": s.last_copied_offset,
                "left": s.left,
                "newest_sync": _document(s.sync),
                "groups_with_checkpoint": s.groups,
                "furthest_checkpoint": _document(s.furthest),
            }
            for s in stores.partitions
        ],
    }
    yield json.dumps(document, indent=2)


def _document(pair: OffsetPair | None) -> dict[str, int] | None:
    return None if pair is None else {"source_offset": pair[0], "target_offset": pair[1]}


def _unknown(stores: Stores) -> list[tuple[str, str]]:
    unknown = (stores.positions_unknown, stores.syncs_unknown, stores.checkpoints_unknown)
    return [(what, why) for what, why in zip(("POSITION", "SYNC", "CHECKPOINT"), unknown, strict=True) if why]


def _values(row: PartitionStores) -> list[str]:
    log = row.source_log
    start, end = (log.start, log.end) if log else (None, None)
    numbers = [row.source.partition, start, end, row.last_copied_offset, row.left]
    return [*map(number, numbers), _pair(row.sync), str(row.groups), _pair(row.furthest)]


def _pair(pair: OffsetPair | None) -> str:
    return "-" if pair is None else f"{pair[0]}:{pair[1]}"


def _verdict(stores: Stores) -> str:
    if stores.positions_unknown:
        return "MM2's replication progress is unknown."
    if not stores.partitions:
        return "No topic inside the filters has a copy, or a position of MM2's: it has copied nothing of them yet."
    without = sum(s.last_copied_offset is None and not _is_empty(s) for s in stores.partitions)
    beyond = sum(s.left is not None and s.left < 0 for s in stores.partitions)
    left = sum(s.left for s in stores.partitions if s.left is not None and s.left > 0)
    unread = sum(s.last_copied_offset is not None and s.source_log is None for s in stores.partitions)
    is_told = any(s.left is not None for s in stores.partitions)
    # Where nothing is known, a sum of nothing would read as "all is copied".
    at_least = "at least " if without or beyond or unread else ""
    parts = [many(len(stores.partitions), "partition") + f", {at_least}{many(left, 'offset')} left" * is_told]
    if unread:
        parts.append(f"what is left of {many(unread, 'partition')} is not known: the source's log was not read")
    if without:
        parts.append(f"{without} without a position: nothing copied yet, or it was reset")
    if beyond:
        parts.append(f"{beyond} with a position beyond the log's end: of a log that was re-created or truncated")
    return capital("; ".join(parts)) + "."


def _is_empty(row: PartitionStores) -> bool:
    return row.source_log is not None and row.source_log.start == row.source_log.end

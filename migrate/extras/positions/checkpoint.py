"""What a Structured Streaming checkpoint says of a batch, in the words of Spark's OffsetSeqLog and CommitLog. Pure.

A file `offsets/<N>` of format v1 is: `v1`, a line of JSON (watermark, time, settings), then a line for each source of
the query in its order, `-` for none yet. That of a Kafka source is `{"topic":{"partition":next offset}}`. What a Kafka
source began at is in `sources/<number>/0`: a zero byte, `v1`, and such a line.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from migrate.errors import UsageError
from migrate.text import name

FORMAT = "v1"
NO_OFFSET = "-"
_LARGEST = 2**63 - 1
KafkaOffsets = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class Batches:
    """Which batches count: `finished` is the last that was committed, `begun` a later one that was not, or None."""

    finished: int
    begun: int | None


def batches(offsets: Iterable[str], commits: Iterable[str], origin: str) -> Batches:
    """Return the batches by the names in the folders `offsets` and `commits`; names that are no number are left aside.

    Raises `UsageError` where there is no finished batch, or its offsets are gone.
    """
    begun, finished = _numbers(offsets), _numbers(commits)
    if not begun:
        raise UsageError(
            f"{origin} is not the checkpoint of a Spark query that has run: its folder offsets holds no batch.",
            "Name the folder of checkpointLocation, which holds offsets, commits and sources.",
        )
    newest, done = max(begun), max(finished, default=-1)
    if done < 0:
        raise UsageError(
            f"{origin}: batch {newest} was begun, and no batch was ever finished: this query has no position.",
            "Let it finish a batch on the source and stop it, or start it anew on the target.",
        )
    if done > newest or done not in begun:
        raise UsageError(
            f"{origin}: the newest finished batch is {done}, and the newest with offsets {newest}: expected offsets of "
            "the finished one.",
            "The folder is incomplete: get it again from where the query ran.",
        )
    return Batches(done, newest if newest > done else None)


def kafka_offsets(content: str, origin: str) -> KafkaOffsets:
    """Return what the Kafka sources of a batch want next; raises `UsageError` for a file of another format.

    Two sources on one partition are one position where they want the same record.
    """
    merged: dict[str, dict[int, int]] = {}
    for number, line in enumerate(lines_of(content, origin)[2:], 3):
        for topic, partitions in (kafka_line(line) or {}).items():
            mine = merged.setdefault(topic, {})
            for partition, offset in partitions.items():
                if not 0 <= offset <= _LARGEST:
                    raise UsageError(
                        f"{origin}, line {number}: {topic}-{partition} is at {offset}; expected 0 or more.",
                        "Nothing of the folder was used.",
                    )
                if mine.setdefault(partition, offset) != offset:
                    raise UsageError(
                        f"{origin}, line {number}: two sources read {topic}-{partition}, one wants {mine[partition]} "
                        f"next and the other {offset}: expected one position.",
                        "Stop the query when both have read all there is, or give both as holders with --positions.",
                    )
    if not merged:
        raise UsageError(
            f'{origin}: no source of this query reads Kafka; expected a line such as {{"orders":{{"0":42}}}}.',
            "Leave it out: it has no position to move.",
        )
    return merged


def kafka_began(content: str) -> KafkaOffsets:
    """Return what a source began at by its file `sources/<number>/0`; nothing where it is none of Kafka's."""
    version, _, line = content.removeprefix("\0").partition("\n")
    return (kafka_line(line) or {}) if version.strip() == FORMAT else {}


def lines_of(content: str, origin: str) -> list[str]:
    """Return the lines of a batch's file; raises `UsageError` if its format is not v1."""
    lines = content.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    version = lines[0].strip() if lines else ""
    if version != FORMAT:
        known = " (of Spark 4.2 and later, whose sources have names)" if version == "v2" else ""
        raise UsageError(
            f"{origin}, line 1: format {name(version[:20])}{known}; this version reads {FORMAT} alone.",
            "Give its offsets with --positions: topic and partition of each, as the query's progress reports them.",
        )
    try:
        settings = json.loads(lines[1]) if len(lines) > 1 else None
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise UsageError(
            f"{origin}, line 2: no JSON object; expected the settings of the batch.",
            "The file is damaged or cut short.",
        )
    return lines


def kafka_line(line: str) -> KafkaOffsets | None:
    """Return what a source's line says if it is that of a Kafka source, else None: those of others are left alone."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not document:
        return None
    found: dict[str, dict[int, int]] = {}
    for topic, partitions in document.items():
        if not isinstance(partitions, dict) or not partitions:
            return None
        if not all(p.isascii() and p.isdecimal() and type(offset) is int for p, offset in partitions.items()):
            return None
        found[topic] = {int(partition): offset for partition, offset in partitions.items()}
    return found


def _numbers(names: Iterable[str]) -> set[int]:
    return {int(text) for text in names if text.isascii() and text.isdecimal()}

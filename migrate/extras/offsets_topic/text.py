"""What became of every record that was read of `__consumer_offsets`, and groups' commits over time. Pure.

A lag is marked with ~: the log's end at a past time is known by the timestamps of its records, which is an estimate.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrate.clock import iso
from migrate.extras.offsets_topic.history_values import HistoryRequest, HistoryResult
from migrate.extras.offsets_topic.request import (
    FILTER,
    NOT_ITS_PARTITION,
    OTHER_KIND,
    OUTSIDE_TIME,
    SUPERSEDED,
    TOMBSTONE_UNASKED,
    Exported,
)
from migrate.model import Failure
from migrate.show.lines import number, wrapped
from migrate.show.table import UNSEEN, Column, Table, field
from migrate.survey.offsets_pin import OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.offsets_wire import (
    BROKEN_KEY,
    BROKEN_VALUE,
    COMMIT_WITH_OTHER_TAGS,
    COMMIT_WITHOUT_OFFSET,
    OTHER_TYPE,
    TYPE_NAMES,
)
from migrate.text import bytes_text, duration_text, many, name, safe, some

NAMED = 10
_WORDS = {
    SUPERSEDED: "superseded by a later record of the same key",
    OUTSIDE_TIME: "outside --since and --until",
    OTHER_KIND: "of another kind than was asked for",
    NOT_ITS_PARTITION: "in a partition that is not their group's own, left from when the topic had fewer",
    TOMBSTONE_UNASKED: "tombstones: offsets that were deleted or have expired",
}


def announcement(pin: OffsetsPin, size: int, passes: str = "") -> str:
    """Say what will be read, before it is; `size` in bytes."""
    partitions = f"{len(pin.logs)} of {many(pin.partitions, 'partition')}"
    about = f"{many(pin.offsets, 'offset')}, about {bytes_text(size)}{passes}"
    return f"reading {OFFSETS_TOPIC} of {pin.alias}: {partitions}, {about}"


def summary_lines(exported: Exported, pin: OffsetsPin, out: str, retention: Failure | None) -> Iterator[str]:
    """Yield what was written and what was not; `retention` says why the brokers' retention is not known."""
    yield f"{many(exported.lines, 'record')} written to {safe(out)}{_counts(exported.written)}"
    yield from counted_lines(exported, pin)
    if retention is not None:
        yield f"offsets.retention.minutes is not visible ({retention.code}): when most commits expire is unknown"


def counted_lines(exported: Exported, pin: OffsetsPin) -> Iterator[str]:
    """Yield what was read, and what was left out and why."""
    yield f"{many(exported.read, 'record')} read{_counts(exported.labels)}"
    left_out = sum(exported.left_out.values())
    if left_out:
        yield f"{many(left_out, 'record')} left out:"
        for reason, count in sorted(exported.left_out.items(), key=lambda each: (-each[1], each[0])):
            yield f"  {count:,} {_reason(reason)}"
    if COMMIT_WITH_OTHER_TAGS in exported.labels:
        yield "Commits with unknown tags are of a newer Kafka: what is known of them was written, the rest left out."
    yield f"Pinned: {_pinned(pin)}"


def missing_lines(exported: Exported, pin: OffsetsPin) -> Iterator[str]:
    """Yield a line for each thing that was asked for and could not be given; none means that nothing is missing."""
    for partition, end in sorted(pin.open_ends.items()):
        start = pin.logs[partition].end
        yield (
            f"Not visible: {many(end - start, 'offset')} of partition {partition} from {start} on: a transaction is "
            "open there, which hides what any group has committed after it began"
        )
    for label, count in sorted(exported.lost.items()):
        yield f"Not decodable: {many(count, 'record')} that would have been written ({label})"
    if exported.unknown:
        yield f"Nothing is there of {some(map(safe, exported.unknown), NAMED)}"


def topic_lines(written: int, sent: int, grown: int | Failure) -> Iterator[str]:
    """Yield how far the log ends of the topic have moved; `sent` counts attempts too that compaction broke off."""
    if sent > written:
        yield f"{many(sent - written, 'line')} of an attempt that compaction broke off are in the topic too"
    if isinstance(grown, Failure):
        yield f"The topic's log ends are not visible ({grown.code}): only the brokers' acknowledgements count"
    elif grown > sent:
        yield (
            f"The topic's log ends moved by {grown}, {grown - sent} more than was written: other writers, "
            "transaction markers, or tasks that Spark ran again"
        )
    elif grown == sent:
        yield f"The topic's log ends moved by {grown}: by what was written, nothing twice"


def short_topic_lines(sent: int, grown: int | Failure) -> Iterator[str]:
    """Yield a line if brokers acknowledged records by which the topic did not grow."""
    if not isinstance(grown, Failure) and grown < sent:
        yield f"Not there: {many(sent, 'record')} were acknowledged, and the topic's log ends moved by {grown} only"


def _counts(counts: Mapping[str, int]) -> str:
    listed = ", ".join(f"{count:,} {_label(label)}" for label, count in sorted(counts.items()))
    return f": {listed}" if listed else ""


def _label(label: str) -> str:
    if label.startswith(OTHER_TYPE):
        number = label.removeprefix(OTHER_TYPE)
        return f"{label} ({TYPE_NAMES.get(int(number), 'unknown')})"
    return label


def _reason(reason: str) -> str:
    if reason.startswith(FILTER):
        return f"by the filter {reason.removeprefix(FILTER)}"
    if reason.startswith(OTHER_TYPE):
        return f"of a type that is not exported, {_label(reason)}"
    if reason.startswith((BROKEN_KEY, BROKEN_VALUE)):
        return f"that cannot be decoded, {reason}"
    if reason == COMMIT_WITHOUT_OFFSET:
        return "with an offset of -1, which is read as nothing committed"
    return _WORDS[reason]


def _pinned(pin: OffsetsPin) -> str:
    read = [f"{partition}: {log.start}-{log.end}" for partition, log in sorted(pin.logs.items()) if log.start < log.end]
    return ", ".join(read) or "nothing to read"


TIME = field("time", "TIME", iso)
PLACE = (field("group", "GROUP", name), field("topic", "TOPIC", name), field("partition", "PARTITION", right=True))
_COMPACTED = (
    f"A history goes back only as far as the log cleaner has not been: {OFFSETS_TOPIC} is compacted by default, which "
    "in the end leaves the newest commit of each group and partition alone. What it has taken is in no row."
)


def history_table(rows: Sequence[Any], result: HistoryResult, request: HistoryRequest, width: int, colour: bool
                  ) -> Iterator[str]:  # fmt: skip
    """Yield the rows that are shown, by group, topic, partition and time; names above them where the page is narrow.

    Rows have the fields of the history, `time` in ms since 1970.
    """
    length = duration_text(request.bucket_ms / 1000)
    lag = "LAG (~) is END-AT-TIME less OFFSET, an estimate by the records' timestamps; ? is not visible."
    yield from wrapped(
        f"The newest commits of each {length}, in UTC. TIME is when it ended. RECORDS/S is since the row before, - "
        f"where there is none or the group went back. {lag if result.with_lag else ''}",
        width,
    )
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: (row.group, row.topic, row.partition, row.time))
    yield ""
    numbers = _numbers(result)
    table = Table((TIME, *PLACE, *numbers), ordered, width, narrow=(TIME, *numbers))
    yield from table.lines(colour, above=lambda row: f"{name(row.group)}  {name(row.topic)}-{row.partition}")
    if result.rows > len(rows):
        older = many(result.rows - len(rows), "row")
        yield f"and {older} of earlier times: --rows, or --format csv or parquet, which have all"


def history_summary(result: HistoryResult, pin: OffsetsPin, out: str) -> Iterator[str]:
    """Yield what was read, left out and not visible; `out` is where the rows went, "" for the screen."""
    where = f" written to {safe(out)}" if out else ""
    yield f"{many(result.rows, 'row')}{where} of {many(result.counted.lines, 'commit')}"
    yield from counted_lines(result.counted, pin)
    yield _COMPACTED
    read, pinned = many(result.counted.read, "record"), many(pin.offsets, "offset")
    yield f"{read} read of {pinned} pinned: the others are transaction markers, aborted commits, or compacted away"
    if not result.with_lag:
        yield "The logs' ends were not asked for: no row has END-AT-TIME and LAG (--no-lag)"
    for reason, count in sorted(result.unseen.items(), key=lambda each: (-each[1], each[0])):
        yield f"END-AT-TIME and LAG of {many(count, 'row')} are not visible ({safe(reason)})"
    if result.lacks_ends:
        yield "Something that is there could not be read: this history is not whole"
    yield from missing_lines(result.counted, pin)


def _numbers(result: HistoryResult) -> tuple[Column[Any], ...]:
    none = UNSEEN if result.with_lag else "-"
    return (
        field("offset", "OFFSET", right=True),
        field("commits", "COMMITS", right=True),
        field("records_per_s", "RECORDS/S", lambda rate: "-" if rate is None else f"{rate:.1f}", right=True),
        field("end_at_time", "END-AT-TIME", lambda end: number(end, none), right=True),
        field("lag", "LAG", lambda lag: none if lag is None else f"~{lag}", right=True),
    )

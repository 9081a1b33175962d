"""What became of every record that was read of `__consumer_offsets`, in a few lines. Pure."""

from collections.abc import Iterator, Mapping

from migrate.model import Failure
from migrate.survey.offsets_export import (
    FILTER,
    NOT_ITS_PARTITION,
    OTHER_KIND,
    OUTSIDE_TIME,
    SUPERSEDED,
    TOMBSTONE_UNASKED,
    Exported,
    OffsetsPin,
)
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.survey.offsets_wire import (
    BROKEN_KEY,
    BROKEN_VALUE,
    COMMIT_WITH_OTHER_TAGS,
    COMMIT_WITHOUT_OFFSET,
    OTHER_TYPE,
    TYPE_NAMES,
)
from migrate.text import bytes_text, many, safe, some

NAMED = 10
_WORDS = {
    SUPERSEDED: "superseded by a later record of the same key",
    OUTSIDE_TIME: "outside --since and --until",
    OTHER_KIND: "not of --kinds",
    NOT_ITS_PARTITION: "in a partition that is not their group's own, left from when the topic had fewer",
    TOMBSTONE_UNASKED: "tombstones (--tombstones writes them)",
}


def announcement(pin: OffsetsPin) -> str:
    """Say what will be read, before it is."""
    partitions = f"{len(pin.logs)} of {many(pin.partitions, 'partition')}"
    return (
        f"reading {OFFSETS_TOPIC} of {pin.alias}: {partitions}, {many(pin.offsets, 'offset')}, "
        f"about {bytes_text(pin.fetched_bytes)} in two passes"
    )


def summary_lines(exported: Exported, pin: OffsetsPin, out: str, retention: Failure | None) -> Iterator[str]:
    """Yield what was written and what was not; `retention` says why the brokers' retention is not known."""
    yield f"{many(exported.lines, 'record')} written to {safe(out)}{_counts(exported.written)}"
    yield from counted_lines(exported, pin, _WORDS)
    if retention is not None:
        yield f"offsets.retention.minutes is not visible ({retention.code}): when most commits expire is unknown"


def counted_lines(exported: Exported, pin: OffsetsPin, words: Mapping[str, str]) -> Iterator[str]:
    """Yield what was read, and what was left out and why; `words` are those of reasons that are not records' labels."""
    yield f"{many(exported.read, 'record')} read{_counts(exported.labels)}"
    left_out = sum(exported.left_out.values())
    if left_out:
        yield f"{many(left_out, 'record')} left out:"
        for reason, count in sorted(exported.left_out.items(), key=lambda each: (-each[1], each[0])):
            yield f"  {count} {_reason(reason, words)}"
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
    listed = ", ".join(f"{count} {_label(label)}" for label, count in sorted(counts.items()))
    return f": {listed}" if listed else ""


def _label(label: str) -> str:
    if label.startswith(OTHER_TYPE):
        number = label.removeprefix(OTHER_TYPE)
        return f"{label} ({TYPE_NAMES.get(int(number), 'unknown')})"
    return label


def _reason(reason: str, words: Mapping[str, str]) -> str:
    if reason.startswith(FILTER):
        return f"by the filter {reason.removeprefix(FILTER)}"
    if reason.startswith(OTHER_TYPE):
        return f"of a type that is not exported, {_label(reason)}"
    if reason.startswith((BROKEN_KEY, BROKEN_VALUE)):
        return f"that cannot be decoded, {reason}"
    if reason == COMMIT_WITHOUT_OFFSET:
        return "with an offset of -1, which is read as nothing committed"
    return words[reason]


def _pinned(pin: OffsetsPin) -> str:
    read = [f"{partition}: {log.start}-{log.end}" for partition, log in sorted(pin.logs.items()) if log.start < log.end]
    return ", ".join(read) or "nothing to read"

"""Groups' commits over time as a table, and what became of the records that it was made of. Pure.

A lag is marked with ~: the log's end at a past time is told by the timestamps of its records, which is an estimate.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from migrate.clock import iso
from migrate.show.lines import number, wrapped
from migrate.show.offsets_export import counted_lines, missing_lines
from migrate.show.table import UNSEEN, Column, Table, field
from migrate.survey.commit_history import HistoryRequest, ToldHistory
from migrate.survey.offsets_export import NOT_ITS_PARTITION, OTHER_KIND, OUTSIDE_TIME, TOMBSTONE_UNASKED, OffsetsPin
from migrate.survey.offsets_topic import OFFSETS_TOPIC
from migrate.text import bytes_text, duration_text, many, name, safe

TIME = field("time", "TIME", iso)
PLACE = (field("group", "GROUP", name), field("topic", "TOPIC", name), field("partition", "PARTITION", right=True))
_WORDS = {
    OUTSIDE_TIME: "outside --since and --until",
    OTHER_KIND: "of groups themselves, which are no commits",
    NOT_ITS_PARTITION: "in a partition that is not their group's own, left from when the topic had fewer",
    TOMBSTONE_UNASKED: "tombstones: offsets that were deleted or have expired; what follows one begins anew",
}
_COMPACTED = (
    f"A history goes back only as far as the log cleaner has not been: {OFFSETS_TOPIC} is compacted by default, which "
    "in the end leaves the newest commit of each group and partition alone. What it has taken is in no row."
)


def announced(pin: OffsetsPin) -> str:
    """Say what will be read, before it is."""
    partitions = f"{len(pin.logs)} of {many(pin.partitions, 'partition')}"
    size = f"{many(pin.offsets, 'offset')}, about {bytes_text(pin.offsets_bytes)}"
    return f"reading {OFFSETS_TOPIC} of {pin.alias}: {partitions}, {size}"


def history_table(rows: Sequence[Any], told: ToldHistory, request: HistoryRequest, width: int, colour: bool
                  ) -> Iterator[str]:  # fmt: skip
    """Yield the rows that are shown, by group, topic, partition and time; names above them where the page is narrow.

    Rows have the fields of the history, `time` in ms since 1970.
    """
    length = duration_text(request.bucket_ms / 1000)
    lag = "LAG (~) is END-AT-TIME less OFFSET, an estimate by the records' timestamps; ? is not visible."
    yield from wrapped(
        f"The newest commits of each {length}, in UTC. TIME is when it ended. RECORDS/S is since the row before, - "
        f"where there is none or the group went back. {lag if told.with_lag else ''}",
        width,
    )
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: (row.group, row.topic, row.partition, row.time))
    yield ""
    numbers = _numbers(told)
    table = Table((TIME, *PLACE, *numbers), ordered, width, narrow=(TIME, *numbers))
    yield from table.lines(colour, above=lambda row: f"{name(row.group)}  {name(row.topic)}-{row.partition}")
    if told.rows > len(rows):
        older = many(told.rows - len(rows), "row")
        yield f"and {older} of earlier times: --rows, or --format csv or parquet, which have all"


def history_summary(told: ToldHistory, pin: OffsetsPin, out: str) -> Iterator[str]:
    """Yield what was read, left out and not visible; `out` is where the rows went, "" for the screen."""
    where = f" written to {safe(out)}" if out else ""
    yield f"{many(told.rows, 'row')}{where} of {many(told.counted.lines, 'commit')}"
    yield from counted_lines(told.counted, pin, _WORDS)
    yield _COMPACTED
    read, pinned = many(told.counted.read, "record"), many(pin.offsets, "offset")
    yield f"{read} read of {pinned} pinned: the others are transaction markers, aborted commits, or compacted away"
    if not told.with_lag:
        yield "The logs' ends were not asked for: no row has END-AT-TIME and LAG (--no-lag)"
    for reason, count in sorted(told.unseen.items(), key=lambda each: (-each[1], each[0])):
        yield f"END-AT-TIME and LAG of {many(count, 'row')} are not visible ({safe(reason)})"
    if told.lacks_ends:
        yield "Something that is there could not be read: this history is not whole"
    yield from missing_lines(told.counted, pin)


def _numbers(told: ToldHistory) -> tuple[Column[Any], ...]:
    none = UNSEEN if told.with_lag else "-"
    return (
        field("offset", "OFFSET", right=True),
        field("commits", "COMMITS", right=True),
        field("records_per_s", "RECORDS/S", lambda rate: "-" if rate is None else f"{rate:.1f}", right=True),
        field("end_at_time", "END-AT-TIME", lambda end: number(end, none), right=True),
        field("lag", "LAG", lambda lag: none if lag is None else f"~{lag}", right=True),
    )

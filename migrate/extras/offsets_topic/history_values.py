"""Commits of groups over time: what was asked for, and what became of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrate.extras.offsets_topic.request import Exported, ExportRequest
from migrate.kafka.log_times import PlaceTime
from migrate.model import Failure
from migrate.survey.filters import Filters

RECORDS_GONE = Failure("RECORDS_GONE", "retention has taken the records of that time")
OFFSET_DELETED = Failure("OFFSET_DELETED", "the offset was deleted, or expired, before its bucket ended")


@dataclass(frozen=True)
class HistoryRequest:
    """Which commits, and into buckets of how many ms they go; buckets begin at whole multiples since 1970 (UTC).

    `now_ms` is when the topic was pinned: the bucket that was still open then ends there.
    """

    bucket_ms: int
    now_ms: int
    filters: Filters = field(default_factory=Filters)
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def cut_ms(self) -> int:
        """Where the newest bucket ends, if it does not end before."""
        return self.now_ms if self.until_ms is None else min(self.now_ms, self.until_ms)

    def as_export(self) -> ExportRequest:
        """Return what of the offsets topic counts."""
        return ExportRequest(self.filters, history=True, since_ms=self.since_ms, until_ms=self.until_ms)


@dataclass(frozen=True)
class HistoryResult:
    """What became of the records, how many rows they gave, and why `end_at_time` is not visible, by reason.

    `with_lag` is False where nobody asked for it.
    """

    counted: Exported
    rows: int
    with_lag: bool = True
    unseen: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """False if something could not be read that is there; what was deleted, or retention took, is there no more."""
        counted = self.counted
        return not counted.unknown and not counted.lost and not self.lacks_ends

    @property
    def lacks_ends(self) -> bool:
        """True if the end of a log that is there could not be read."""
        return not set(self.unseen) <= {reason_of(RECORDS_GONE), reason_of(OFFSET_DELETED)}


def reason_of(failure: Failure) -> str:
    """Return the words under which an end that is not visible is counted."""
    return f"{failure.code}: {failure.message}"


def lookups_of(pairs: int, most: int) -> str | None:
    """Return why so many questions are not asked; None where they are."""
    if pairs <= most:
        return None
    return f"The log's end would be asked for at {pairs:,} times of partitions, and --max-lookups allows {most:,}."


def end_rows(ends: Mapping[PlaceTime, int | Failure]) -> list[tuple[str, int, int, int | None, str | None]]:
    """Return topic, partition, time, and the log's end then, or why it is not visible."""
    return [
        (place.topic, place.partition, time_ms, *((None, reason_of(end)) if isinstance(end, Failure) else (end, None)))
        for (place, time_ms), end in ends.items()
    ]

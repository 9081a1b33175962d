"""Where logs ended at past times, by ListOffsets: what it answers, and what that means. Pure but for the port.

ListOffsets for a timestamp gives the first record of that time or later. It knows only the records that are still
there, and says -1 both where no record is so late and where a leader is silent: so the newest timestamp of each log is
asked for too, and only behind it does the pinned end stand for the end at that time.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Protocol

from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.cluster import ClusterAdmin

PlaceTime = tuple[TopicPartition, int]
"""A partition, and a time in ms since 1970."""

RECORDS_GONE = Failure("RECORDS_GONE", "retention has taken the records of that time")


class LogTimes(Protocol):
    """Asks one cluster for offsets by timestamp (ms since 1970), read_uncommitted. Reads only."""

    def newest_times(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | Failure]:
        """Return the newest timestamp of any record of each log; brokers before Kafka 3.0 cannot tell."""

    def offsets_at(self, times: Mapping[int, Collection[TopicPartition]]) -> Mapping[PlaceTime, int | Failure]:
        """Return the first offset whose record is of that time or later, of each partition at each time."""


def ends_at(admin: ClusterAdmin, times: LogTimes, wanted: Collection[PlaceTime]) -> dict[PlaceTime, int | Failure]:
    """Return where each log ended at each time, in the order of `wanted`, or why that is not visible.

    It is an estimate: records' timestamps are those of their producers, unless the topic has LogAppendTime.
    """
    partitions = sorted({place for place, _ in wanted})
    # Starts before ends: a log that retention cuts in between shows too wide, never start > end.
    ranges = admin.log_ranges(partitions)
    watermarks = admin.high_watermarks(partitions)
    logs: dict[TopicPartition, LogRange | Failure] = {}
    for place in partitions:
        log, end = ranges[place], watermarks[place]
        if isinstance(log, LogRange):
            log = end if isinstance(end, Failure) else LogRange(log.start, end)
        logs[place] = log
    holding = [place for place, log in logs.items() if isinstance(log, LogRange) and log.start < log.end]
    newest = times.newest_times(holding)
    asked: dict[int, list[TopicPartition]] = defaultdict(list)
    for place, time_ms in wanted:
        last = newest.get(place)
        if last is not None and (isinstance(last, Failure) or time_ms <= last):
            asked[time_ms].append(place)
    answers = times.offsets_at(asked)
    return {pair: _end(logs[pair[0]], answers.get(pair)) for pair in wanted}


def _end(log: LogRange | Failure, answer: int | Failure | None) -> int | Failure:
    """`answer` is None where no record of the log is so late, or it has none at all."""
    if isinstance(log, Failure):
        return log
    if answer is None:
        # An emptied log may have had records of any time.
        return log.end if log.start < log.end or log.end == 0 else RECORDS_GONE
    if isinstance(answer, Failure):
        return answer
    # The first record that is left: how many there were before it at that time, nobody knows any more.
    if answer <= log.start and log.start > 0:
        return RECORDS_GONE
    return min(answer, log.end)

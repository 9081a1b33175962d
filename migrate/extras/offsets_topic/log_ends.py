"""Where logs ended at past times, by the timestamps of their records."""

from collections.abc import Collection, Mapping

from migrate.extras.offsets_topic.history_values import RECORDS_GONE
from migrate.kafka.log_times import NOT_FOUND, LogTimes, PlaceTime
from migrate.model import Failure, LogRange, TopicPartition
from migrate.survey.cluster import ClusterAdmin


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
    holding = {place for place, log in logs.items() if isinstance(log, LogRange) and log.start < log.end}
    answers, newest = times.first_offsets([pair for pair in wanted if pair[0] in holding])
    return {pair: _end(logs[pair[0]], pair, answers, newest) for pair in wanted}


def _end(
    log: LogRange | Failure,
    pair: PlaceTime,
    answers: Mapping[PlaceTime, int | None | Failure],
    newest: Mapping[TopicPartition, int | Failure],
) -> int | Failure:
    if isinstance(log, Failure):
        return log
    answer = answers.get(pair)
    if answer is None:
        if pair not in answers:
            # An emptied log may have had records of any time.
            return log.end if log.end == 0 else RECORDS_GONE
        last = newest[pair[0]]
        if isinstance(last, Failure):
            return last
        # Only behind the newest record does the pinned end stand for the end at that time.
        return log.end if pair[1] > last else NOT_FOUND
    if isinstance(answer, Failure):
        return answer
    # The first record that is left: how many there were before it at that time, nobody knows any more.
    if answer <= log.start and log.start > 0:
        return RECORDS_GONE
    return min(answer, log.end)

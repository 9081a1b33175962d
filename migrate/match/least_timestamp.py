"""Law 2b: a commit is placed by the least timestamp of all that the group is owed (docs/translation.md). Pure.

Not by the timestamp of one record: where timestamps fall, later records have an earlier one, and are skipped.
"""

from array import array
from bisect import bisect_left
from collections.abc import Generator, Sequence
from itertools import accumulate

from migrate.match.protocol import (
    Matched,
    Needs,
    OffsetRange,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    Why,
    WhyUnmatched,
)
from migrate.model import LogRange

# Offsets of the source that are held at once.
PIECE = 50_000
# More than any timestamp: nothing is owed.
NEVER = 1 << 62


class LeastTimestamps:
    """The least timestamp (ms) at or after each of some offsets of the source, from records in any order.

    `offsets` are sorted and distinct. What lies below the first of them does not count.
    """

    def __init__(self, offsets: Sequence[int]) -> None:
        self._offsets = offsets
        self._least = array("q", [NEVER]) * len(offsets)

    def add(self, offsets: Sequence[int], times: Sequence[int]) -> None:
        """Take in records: their offsets, in order, and the timestamp of each."""
        starts = [bisect_left(offsets, start) for start in self._offsets]
        for at, (low, top) in enumerate(zip(starts, [*starts[1:], len(offsets)], strict=True)):
            if low < top:
                self._least[at] = min(self._least[at], min(times[low:top]))

    def since(self) -> dict[int, int]:
        """Return it by offset; `NEVER` where no record is left."""
        return dict(zip(reversed(self._offsets), accumulate(reversed(self._least), min), strict=True))


def question_for(least: int) -> int | None:
    """Return the timestamp (ms) whose first offset is to be asked of the target; None where none can tell.

    One millisecond less than the least timestamp: a log's time index may name the last offset of the batch that holds
    it. Records without a timestamp have -1, and brokers take negative ones for words of their own.
    """
    return least - 1 if 0 < least < NEVER else None


def placed(least: int, first_offset: int | None, target_log: LogRange) -> Matched:
    """Return the place of a commit, by the least timestamp of what it is owed.

    `first_offset` is the target's answer for `question_for(least)`, its pinned end where it has no record so young.
    Whatever the target has from there on is the most that can be read twice.
    """
    if least == NEVER:
        offset = target_log.end
    elif first_offset is None:
        offset = target_log.start
    else:
        offset = min(max(first_offset, target_log.start), target_log.end)
    return Matched(offset, Why.LEAST_TIMESTAMP, target_log.end - offset)


def by_timestamp(
    question: PartitionQuestion, piece: int = PIECE
) -> Generator[Needs, Supply | Unreadable, PartitionAnswer]:
    """Place the commits of a partition by timestamps alone: all of the source from the lowest on is read once.

    At most `piece` offsets of it are held at a time. A conversation as `migrate.match.matcher.matching` holds it. A
    commit further from the source's end than may be read is `Unmatched`; one that retention has passed stands at the
    target's log start.
    """
    log, target_log, places = question.source_log, question.target_log, dict[int, Matched | Unmatched]()
    affordable = max(log.start, log.end - question.match_limit)
    for committed in question.source_committed:
        if committed < log.start:
            places[committed] = placed(0, None, target_log)
        elif committed < affordable:
            places[committed] = Unmatched(WhyUnmatched.MATCH_LIMIT)
    timed = [committed for committed in question.source_committed if committed not in places]
    least, start, read = LeastTimestamps(timed), log.start, 0
    for low in range(timed[0] if timed else log.end, log.end, piece):
        supply = yield Needs(source=(OffsetRange(low, min(low + piece, log.end)),))
        if isinstance(supply, Unreadable):
            return _unreadable(question, places, supply)
        (stretch,) = supply.source
        if stretch.readable_from > stretch.start:
            start = max(start, stretch.readable_from)
        least.add(stretch.offsets, stretch.times)
        read += len(stretch.offsets)
    # What retention removed before it could be read may have been older than all that was.
    by_commit = {committed: min(time, NEVER if committed >= start else 0) for committed, time in least.since().items()}
    asked = {time for each in by_commit.values() if (time := question_for(each)) is not None}
    first: dict[int, int] = {}
    if asked:
        supply = yield Needs(target_times=tuple(sorted(asked)))
        if isinstance(supply, Unreadable):
            return _unreadable(question, places, supply)
        first = dict(supply.target_first or {})
    for committed, time in by_commit.items():
        told = question_for(time)
        places[committed] = placed(time, None if told is None else first[told], target_log)
    return PartitionAnswer({g: places[g] for g in question.source_committed}, Tail(None), read, 0)


def _unreadable(
    question: PartitionQuestion, places: dict[int, Matched | Unmatched], why: Unreadable
) -> PartitionAnswer:
    for committed in question.source_committed:
        places.setdefault(committed, Unmatched.not_readable(why.reason))
    return PartitionAnswer(places, Tail(None), 0, 0)

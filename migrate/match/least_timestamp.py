"""Law 2b: a commit is placed by the least timestamp of all that the group is owed (docs/translation.md). Pure.

Not by the timestamp of one record: where timestamps fall, later records have an earlier one, and are skipped.

The law rests on copies that keep the timestamps of their originals. A target that stamps records itself shares a
millisecond with the source now and then. So a pair of records with one key and one timestamp proves nothing; many do,
unless records between them have one key and two timestamps.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise

from migrate.match.calibration import FURTHER, SOURCE_TAIL, TARGET_TAIL, CalibratedOn, end_of
from migrate.match.equality import Content
from migrate.match.log_reader import LogReader
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
from migrate.model import LogRange, TopicPartition

# Offsets of the source that are held at once.
PIECE = 50_000
# More than any timestamp: nothing is owed.
NEVER = 1 << 62
# Pairs, of as many keys, that are asked for, and the time (ms) on the source that they are spread over.
PAIRS = 20
SPAN_MS = 10_000
# Stretches of a partition whose copies are looked for by time, beside the ends of both logs. Where timestamps fall,
# what is found by time may lie elsewhere; the ends of both logs are compared whatever the times are.
STRETCHES = 7
# Whole records are held meanwhile, more of a topic than where it is calibrated.
TOPICS_AT_ONCE = 3

# The timestamp (ms) and key of records by offset, of those that have both.
_Marks = Mapping[int, tuple[int, bytes]]


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
        asked_time = question_for(time)
        places[committed] = placed(time, None if asked_time is None else first[asked_time], target_log)
    return PartitionAnswer({g: places[g] for g in question.source_committed}, Tail(None), read, 0)


def _unreadable(
    question: PartitionQuestion, places: dict[int, Matched | Unmatched], why: Unreadable
) -> PartitionAnswer:
    for committed in question.source_committed:
        places.setdefault(committed, Unmatched.not_readable(why.reason))
    return PartitionAnswer(places, Tail(None), 0, 0)


def topics_with_kept_timestamps(source: LogReader, target: LogReader, topics: Iterable[CalibratedOn]) -> Iterator[str]:
    """Yield the topics of the source that are shown to keep timestamps: a task.

    Shown means: `PAIRS` pairs of an original and a copy with one timestamp and one key, each of another key, in the
    same order on both sides and spread over `SPAN_MS` of the source's time, and no pair of one key and two timestamps
    between them. Records without a key show nothing.
    """
    waiting = iter(topics)
    while some := list(islice(waiting, TOPICS_AT_ONCE)):
        yield from _shown(some, source, target)


@dataclass
class _Votes:
    """What the pairs of a topic say: keys and timestamps (ms) of those that agree, and whether one does not."""

    keys: set[bytes] = field(default_factory=set)
    times: set[int] = field(default_factory=set)
    is_refuted: bool = False

    @property
    def are_enough(self) -> bool:
        return not self.is_refuted and len(self.keys) >= PAIRS and max(self.times) - min(self.times) >= SPAN_MS


def _shown(topics: Collection[CalibratedOn], source: LogReader, target: LogReader) -> Iterator[str]:
    partitions = [p for topic in topics for p in topic]
    stretches = {p.source: _stretches(p.source_log) for p in partitions}
    ours = _marks(source, {p.source: _all(stretches[p.source]) for p in partitions})
    copies = {p.target: _copies(p, stretches[p.source], ours[p.source], target) for p in partitions}
    theirs = _marks(target, {place: _all(ranges) for place, ranges in copies.items()})
    for topic in topics:
        votes = _Votes()
        for p in topic:
            for original, copy in zip(stretches[p.source], copies[p.target], strict=True):
                _vote(votes, original, copy, ours[p.source], theirs[p.target])
        if votes.are_enough:
            yield topic[0].source.topic


def _stretches(log: LogRange) -> list[range]:
    """Return stretches of the source that are spread over its log, and its end as the last."""
    step = (log.end - log.start) // STRETCHES
    spread = [range(start, min(start + SOURCE_TAIL, log.end)) for start in range(log.start, log.end, max(step, 1))]
    return [*(spread[:STRETCHES] if step else []), end_of(log, FURTHER * SOURCE_TAIL)]


def _copies(p: PartitionQuestion, stretches: Sequence[range], ours: _Marks, target: LogReader) -> list[range]:
    """Return where the copies of each stretch are if timestamps are kept; the target's end for the last."""
    asked = [question_for(min((ours[o][0] for o in stretch if o in ours), default=0)) for stretch in stretches[:-1]]
    times = sorted({time for time in asked if time is not None})
    found = target.first_offsets({p.target: times})[p.target] if times else {}
    firsts = {} if isinstance(found, Unreadable) else found
    starts = [None if time is None else firsts.get(time) for time in asked]
    log = p.target_log
    spread = [
        range(0) if start is None else range(max(start, log.start), min(start + TARGET_TAIL, log.end))
        for start in starts
    ]
    return [*spread, end_of(log, FURTHER * TARGET_TAIL)]


def _vote(votes: _Votes, original: range, copy: range, ours: _Marks, theirs: _Marks) -> None:
    """Add the pairs of one stretch."""
    # Of two copies the last counts, as everywhere; of equal originals any does.
    copy_of = {theirs[d]: d for d in copy if d in theirs}
    in_order: list[tuple[int, int]] = []
    for o in reversed(original):
        at = copy_of.get(ours[o]) if o in ours else None
        if at is not None and (not in_order or at < in_order[-1][1]):
            in_order.append((o, at))
    in_order.reverse()
    for source_offset, _ in in_order:
        time, key = ours[source_offset]
        votes.keys.add(key)
        votes.times.add(time)
    alike, read = set(theirs.values()), set(ours.values())
    for (low, first), (high, last) in pairwise(in_order):
        # Beyond the next pair a key may come again, in a record whose own copy was not read.
        lacking = {ours[o][1] for o in range(low + 1, high) if o in ours and ours[o] not in alike}
        other = {theirs[d][1] for d in range(first + 1, last) if d in theirs and theirs[d] not in read}
        votes.is_refuted |= not lacking.isdisjoint(other)


def _marks(reader: LogReader, offsets: Mapping[TopicPartition, Collection[int]]) -> dict[TopicPartition, _Marks]:
    """Read records at single offsets; a partition that cannot be read shows nothing."""
    read = reader.contents({place: some for place, some in offsets.items() if some})
    contents: dict[TopicPartition, Mapping[int, Content]] = {
        place: found for place, found in read.items() if not isinstance(found, Unreadable)
    }
    return {
        place: {o: (c.timestamp, c.key) for o, c in contents.get(place, {}).items() if c.timestamp > 0 and c.key}
        for place in offsets
    }


def _all(ranges: Iterable[range]) -> list[int]:
    return sorted({offset for each in ranges for offset in each})

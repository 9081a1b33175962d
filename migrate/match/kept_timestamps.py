"""Whether copies keep the timestamps of their originals, which Law 2b rests on (docs/translation.md). Pure.

A target that stamps records itself shares a millisecond with the source now and then. So a pair of records with one key
and one timestamp proves nothing; many do, unless records between them have one key and two timestamps.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise

from migrate.errors import MigrateError
from migrate.match.calibration import FURTHER, SOURCE_TAIL, TARGET_TAIL, AnchorPartition, TopicQuestion
from migrate.match.equality import Content
from migrate.match.least_timestamp import question_for
from migrate.match.log_reader import LogReader
from migrate.match.protocol import Unreadable
from migrate.match.task import OpenReaders
from migrate.model import LogRange, TopicPartition

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


def topics_with_kept_timestamps(
    open_readers: OpenReaders, questions: Iterable[TopicQuestion]
) -> Iterator[str | MigrateError]:
    """Yield the topics of the source that are shown to keep timestamps; the error that ends a task is its last value.

    Shown means: `PAIRS` pairs of an original and a copy with one timestamp and one key, each of another key, in the
    same order on both sides and spread over `SPAN_MS` of the source's time, and no pair of one key and two timestamps
    between them. Records without a key show nothing.
    """
    try:
        with open_readers() as (source, target):
            waiting = iter(questions)
            while some := list(islice(waiting, TOPICS_AT_ONCE)):
                yield from _shown(some, source, target)
    except MigrateError as error:
        yield error


@dataclass
class _Votes:
    """What the pairs of a topic say: keys and timestamps (ms) of those that agree, and whether one does not."""

    keys: set[bytes] = field(default_factory=set)
    times: set[int] = field(default_factory=set)
    is_refuted: bool = False

    @property
    def are_enough(self) -> bool:
        return not self.is_refuted and len(self.keys) >= PAIRS and max(self.times) - min(self.times) >= SPAN_MS


def _shown(questions: Collection[TopicQuestion], source: LogReader, target: LogReader) -> Iterator[str]:
    partitions = [p for question in questions for p in question.partitions]
    stretches = {p.source: _stretches(p.source_log) for p in partitions}
    ours = _marks(source, {p.source: _all(stretches[p.source]) for p in partitions})
    copies = {p.target: _copies(p, stretches[p.source], ours[p.source], target) for p in partitions}
    theirs = _marks(target, {place: _all(ranges) for place, ranges in copies.items()})
    for question in questions:
        votes = _Votes()
        for p in question.partitions:
            for original, copy in zip(stretches[p.source], copies[p.target], strict=True):
                _vote(votes, original, copy, ours[p.source], theirs[p.target])
        if votes.are_enough:
            yield question.topic


def _stretches(log: LogRange) -> list[range]:
    """Return stretches of the source that are spread over its log, and its end as the last."""
    step = (log.end - log.start) // STRETCHES
    spread = [range(start, min(start + SOURCE_TAIL, log.end)) for start in range(log.start, log.end, max(step, 1))]
    return [*(spread[:STRETCHES] if step else []), _end(log, FURTHER * SOURCE_TAIL)]


def _copies(p: AnchorPartition, stretches: Sequence[range], ours: _Marks, target: LogReader) -> list[range]:
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
    return [*spread, _end(log, FURTHER * TARGET_TAIL)]


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


def _end(log: LogRange, count: int) -> range:
    return range(max(log.start, log.end - count), log.end)

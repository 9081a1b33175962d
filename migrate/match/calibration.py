"""Which parts of a topic's records survive replication (Law 3 of docs/translation.md), and how long they are. Pure.

Anchors are read before any window: few syncs, the newest of several partitions. A topic with fewer is calibrated on
records near the ends of both logs as well, on those that occur once on either side. Where no sync names a pair, and
those that are alike differ in their timestamps, they may be no copies: records that repeat what others said, behind a
target that lags, or written on the other side since a cutover. Then some of the target's are looked for on the source
by their own timestamps.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import attrgetter
from statistics import fmean

from migrate.match.equality import Content, Equality, calibrated, is_clear
from migrate.match.log_reader import LogReader
from migrate.match.protocol import OffsetPair, PartitionQuestion, Unreadable, Work
from migrate.model import LogRange, TopicPartition
from migrate.progress import side_by_side

# Anchors per partition and partitions per topic that a topic is calibrated on.
ANCHORS = 16
ANCHOR_PARTITIONS = 4
# Records read from the end of either log where a topic has fewer; a copy's log is often longer, by markers and replays.
SOURCE_TAIL = 50
TARGET_TAIL = 100
# How many times as many are read where these leave open whether headers are kept, or where none are alike.
FURTHER = 8
# Records near the target's end that are looked for on the source by their timestamps, and how many offsets are read
# there: writers that interleave may swap some of one millisecond.
LOOKED_FOR = 16
LOOKED_AT = 10
# Partitions whose ends are read of a topic that has some syncs: most topics have few, once MM2's own is compacted.
TAILS_BESIDE_SYNCS = 2
# Whole records are held while a topic is calibrated.
TOPICS_AT_ONCE = 50
# A record's own fields and its share of its batch's, in bytes.
OVERHEAD = 12

_TIME_KEY_VALUE = attrgetter("timestamp", "key", "value")

Contents = Mapping[int, Content]
Pair = tuple[Content, Content]
"""A record of the source and what may be its copy."""
_Read = tuple[Mapping[TopicPartition, Contents], Mapping[TopicPartition, Contents]]
"""What was read of the source and of the target, by partition."""


CalibratedOn = tuple[PartitionQuestion, ...]
"""The partitions of one topic on which it is calibrated; of their chains the newest syncs."""
OffsetsOf = Callable[[PartitionQuestion], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a topic's anchors say: `equality` is None if no anchor agrees under any, and the widest if there are none.

    Sizes are averages in bytes, None where no record was read. `lasts` is True where another look would say the same:
    not where there are no anchors, nor where no sync shows that timestamps are lost, for the originals of what was
    compared may only be out of reach.
    """

    topic: str
    equality: Equality | None
    source_size: float | None
    target_size: float | None
    lasts: bool


def topic_questions(works: Iterable[tuple[Work, Sequence[OffsetPair]]]) -> list[CalibratedOn]:
    """Return what to calibrate the topics of these works on: the newest syncs of the partitions that have most.

    Partitions without syncs come last: they only have their ends. Of as many syncs, the longest log counts.
    """
    chosen: dict[str, list[PartitionQuestion]] = defaultdict(list)
    for work, pairs in sorted(
        works, key=lambda each: (-len(each[1]), each[0].source_log.start - each[0].source_log.end, each[0].source)
    ):
        partitions = chosen[work.source.topic]
        if len(partitions) < ANCHOR_PARTITIONS:
            partitions.append(
                PartitionQuestion(
                    work.source, work.target, work.source_log, work.target_log, (),
                    sync_pairs=tuple(pairs[-ANCHORS:]), equality=Equality.ALL,
                )
            )  # fmt: skip
    return [tuple(partitions) for partitions in chosen.values()]


def calibrate_topics(source: LogReader, target: LogReader, topics: Iterable[CalibratedOn]) -> Iterator[Calibration]:
    """Yield one calibration per topic: a task."""
    waiting = iter(topics)
    while some := list(islice(waiting, TOPICS_AT_ONCE)):
        yield from _calibrations(some, source, target)


@dataclass(frozen=True, slots=True)
class _OpenTopic:
    """A topic that its syncs leave open, on the partitions whose ends are read, and the pairs that syncs name."""

    partitions: CalibratedOn
    by_syncs: list[Pair]

    def has_more(self, times: int) -> bool:
        """True if so many times as many records from the ends are more than those that were read."""
        return any(
            end_of(log, times * count) != end_of(log, count)
            for p in self.partitions
            for log, count in ((p.source_log, SOURCE_TAIL), (p.target_log, TARGET_TAIL))
        )


def _calibrations(topics: Collection[CalibratedOn], source: LogReader, target: LogReader) -> Iterator[Calibration]:
    def read(some: Iterable[CalibratedOn], on_source: OffsetsOf, on_target: OffsetsOf) -> _Read:
        partitions = [p for topic in some for p in topic]
        of_source = partial(_contents, source, {p.source: tuple(on_source(p)) for p in partitions})
        of_target = partial(_contents, target, {p.target: tuple(on_target(p)) for p in partitions})
        return side_by_side(of_source, of_target)

    def with_ends(some: Collection[_OpenTopic], times: int) -> Iterator[tuple[_OpenTopic, list[Pair], _Read]]:
        """Yield each topic with all its pairs, those near the ends included."""
        ends = read(
            (topic.partitions for topic in some),
            lambda p: end_of(p.source_log, times * SOURCE_TAIL),
            lambda p: end_of(p.target_log, times * TARGET_TAIL),
        )
        found = [(topic, _all_pairs(topic, ends)) for topic in some]
        unsure = [topic for topic, pairs in found if not topic.by_syncs and _loses_time(pairs)]
        wanted = {p.source: _looked_for(ends[1][p.target]) for topic in unsure for p in topic.partitions}
        originals = _originals(source, unsure, wanted)
        for topic, pairs in found:
            keeps_time = _are_there(topic, wanted, originals)
            yield topic, _pairs_in_time(topic, originals, ends) if keeps_time else pairs, ends

    at_syncs = read(topics, lambda p: (pair[0] for pair in p.sync_pairs), lambda p: (pair[1] for pair in p.sync_pairs))
    left_open = []
    for partitions in topics:
        pairs = _named_pairs(partitions, at_syncs)
        # A few records may all lack what a converter changes: headers, or a value.
        if len(pairs) >= ANCHORS and not _is_in_doubt(pairs):
            yield _calibration(partitions, pairs, at_syncs, has_syncs=True)
        else:
            few = partitions[:TAILS_BESIDE_SYNCS] if pairs else partitions
            left_open.append(_OpenTopic(few, pairs))
    in_doubt = []
    for topic, pairs, ends in with_ends(left_open, 1) if left_open else ():
        if _is_in_doubt(pairs) and topic.has_more(FURTHER):
            in_doubt.append(topic)
        else:
            yield _calibration(topic.partitions, pairs, ends, bool(topic.by_syncs))
    # Fewer at a time, for more is held of each.
    waiting = iter(in_doubt)
    while some := list(islice(waiting, TOPICS_AT_ONCE // FURTHER)):
        for topic, pairs, ends in with_ends(some, FURTHER):
            yield _calibration(topic.partitions, pairs, ends, bool(topic.by_syncs))


def _named_pairs(partitions: CalibratedOn, read: _Read) -> list[Pair]:
    """Return the pairs of a topic that syncs name, as far as both records are there."""
    ours, theirs = read
    return [
        (ours[p.source][source_offset], theirs[p.target][target_offset])
        for p in partitions
        for source_offset, target_offset in p.sync_pairs
        if source_offset in ours[p.source] and target_offset in theirs[p.target]
    ]


def _all_pairs(topic: _OpenTopic, ends: _Read) -> list[Pair]:
    """Return the pairs that syncs name, and those that are alike near the ends."""
    alike, pairs = _way_to_pair(topic.by_syncs), list(topic.by_syncs)
    for p in topic.partitions:
        ours, theirs = ends[0][p.source], ends[1][p.target]
        named = {id(ours.get(source_offset)) for source_offset, _ in p.sync_pairs}
        # Those that syncs name have been paired: they count once.
        pairs += [pair for pair in alike(ours.values(), theirs.values()) if id(pair[0]) not in named]
    return pairs


def _loses_time(pairs: Collection[Pair]) -> bool:
    equality = calibrated(pairs)
    return equality is not None and not equality.keeps_time


def _looked_for(theirs: Contents) -> list[Content]:
    """Return some of the records near the target's end, from all of that stretch: each the first of its timestamp.

    A hundred may share one. Of the first timestamp, what comes before may lie above the stretch.
    """
    firsts: dict[int, Content] = {}
    for offset in sorted(theirs):
        firsts.setdefault(theirs[offset].timestamp, theirs[offset])
    chosen = list(firsts.values())[len(firsts) > 1 :]
    return chosen[:: max(1, len(chosen) // LOOKED_FOR)]


def _originals(
    source: LogReader, topics: Iterable[_OpenTopic], wanted: Mapping[TopicPartition, Collection[Content]]
) -> dict[TopicPartition, Contents]:
    """Read what the source has at the timestamps of some records near the target's ends."""
    ends = {p.source: p.source_log.end for topic in topics for p in topic.partitions}
    times = {place: sorted({record.timestamp for record in some}) for place, some in wanted.items() if some}
    stretches: dict[TopicPartition, set[int]] = {}
    for place, firsts in source.first_offsets(times).items():
        if not isinstance(firsts, Unreadable):
            there = (first for first in firsts.values() if first is not None)
            stretches[place] = {o for first in there for o in range(first, min(first + LOOKED_AT, ends[place]))}
    return _contents(source, {place: sorted(offsets) for place, offsets in stretches.items()})


def _are_there(
    topic: _OpenTopic,
    wanted: Mapping[TopicPartition, Collection[Content]],
    originals: Mapping[TopicPartition, Contents],
) -> bool:
    """True if half of the records that were looked for are on the source, with their timestamps: then these are kept.

    Fewer may be there by chance: on a busy source each millisecond has a record, and many say the same. False for a
    topic of which none was looked for.
    """
    asked = found = 0
    for p in topic.partitions:
        there = set(map(_TIME_KEY_VALUE, originals[p.source].values()))
        records = wanted.get(p.source, ())
        asked, found = asked + len(records), found + sum(_TIME_KEY_VALUE(record) in there for record in records)
    return 0 < asked <= 2 * found


def _pairs_in_time(topic: _OpenTopic, originals: Mapping[TopicPartition, Contents], ends: _Read) -> list[Pair]:
    return [
        pair
        for p in topic.partitions
        for pair in _alike_by_time({**ends[0][p.source], **originals[p.source]}.values(), ends[1][p.target].values())
    ]


def _is_in_doubt(pairs: Collection[Pair]) -> bool:
    """True where a few more pairs may change what is known of headers, and headers matter; or where there are none.

    The last records of a log may all be aborted, which nobody copies.
    """
    return not pairs or not is_clear(pairs) and calibrated(pairs) is not Equality.TIME_AND_KEY


def _contents(
    reader: LogReader, offsets_of: Mapping[TopicPartition, Collection[int]]
) -> dict[TopicPartition, Contents]:
    """Read single records; a partition that cannot be read has none: its matching will say why."""
    read = reader.contents({place: offsets for place, offsets in offsets_of.items() if offsets})
    return defaultdict(dict, {place: each for place, each in read.items() if not isinstance(each, Unreadable)})


def _calibration(partitions: CalibratedOn, pairs: Collection[Pair], read: _Read, has_syncs: bool) -> Calibration:
    ours, theirs = read
    equality = calibrated(pairs) if pairs else Equality.ALL
    return Calibration(
        partitions[0].source.topic,
        equality,
        _size(content for p in partitions for content in ours[p.source].values()),
        _size(content for p in partitions for content in theirs[p.target].values()),
        bool(pairs) and equality is not None and (has_syncs or equality.keeps_time),
    )


def _way_to_pair(pairs: Collection[Pair]) -> "Callable[[Collection[Content], Collection[Content]], list[Pair]]":
    """Return how to pair records near the ends, by what the pairs that syncs name agree in.

    Where syncs agree in nothing, all may be changed on the way: then records are not paired by timestamp and key, which
    agree by chance where many were written in a millisecond.
    """
    if not pairs:
        return _alike
    equality = calibrated(pairs)
    return _alike_by_time if equality is not None and equality.keeps_time else _alike_by_content


def _alike(ours: Collection[Content], theirs: Collection[Content]) -> list[Pair]:
    """Pair records of equal key and value, else of equal timestamp and key."""
    return _alike_by_content(ours, theirs) or _alike_by_time(ours, theirs)


def _alike_by_content(ours: Collection[Content], theirs: Collection[Content]) -> list[Pair]:
    """Pair records of equal key and value."""
    return _paired(ours, theirs, attrgetter("key", "value"))


def _alike_by_time(ours: Collection[Content], theirs: Collection[Content]) -> list[Pair]:
    """Pair records of equal timestamp and key.

    Where syncs show that timestamps are kept, records that only repeat what others said before them, and look like
    copies of those, must not outvote the syncs.
    """
    return _paired(ours, theirs, attrgetter("timestamp", "key"))


def _paired(ours: Collection[Content], theirs: Collection[Content], parts: Callable[[Content], Hashable]) -> list[Pair]:
    """Pair the records of equal parts that occur once on either side."""
    mine, copies = _once(ours, parts), _once(theirs, parts)
    return [(mine[each], copies[each]) for each in mine.keys() & copies.keys()]


def _once(contents: Collection[Content], parts: Callable[[Content], Hashable]) -> dict[Hashable, Content]:
    counts = Counter(map(parts, contents))
    return {parts(content): content for content in contents if counts[parts(content)] == 1}


def end_of(log: LogRange, count: int) -> range:
    """Return the last offsets of a log."""
    return range(max(log.start, log.end - count), log.end)


def _size(contents: Iterable[Content]) -> float | None:
    sizes = [
        OVERHEAD
        + len(content.key or b"")
        + len(content.value or b"")
        + sum(len(name) + len(value or b"") for name, value in content.headers or ())
        for content in contents
    ]
    return fmean(sizes) if sizes else None

"""What became of the records of one topic: where sums agree they are copied, elsewhere each is compared."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from migrate.errors import ClusterError
from migrate.extras.audit.pin import PinnedTopic
from migrate.extras.audit.records import (
    Classified,
    Comparison,
    Counts,
    Paired,
    all_of,
    both_logs,
    fingerprinted,
    inside,
    log_records,
    nothing,
    out_of_order,
)
from migrate.extras.audit.state import NamedFile
from migrate.extras.audit.stretches import Cut, Ranges, Stretch, TopicSums, pieces
from migrate.extras.audit.verdict import Bounds, Category, Lack, Named, PartitionFacts, TopicAudit, bounds_of
from migrate.model import LogRange, Side
from migrate.spark.dataframes import reading_topic
from migrate.spark.java_settings import JavaSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Readings of a log's differing stretches: each opens every partition once.
MOST_PIECES = 16


@dataclass(frozen=True)
class LogReading:
    """How logs are read: by which Spark, with which settings, the salt of the fingerprints, and how fast at most.

    `with_current_starts` is that of `pin`. `max_rate` are bytes a second, None for no limit. Records older than
    `since_ms` are not looked at, None for any.
    """

    spark: "SparkSession"
    java: Mapping[Side, JavaSettings]
    salt: int
    with_current_starts: Callable[[PinnedTopic], PinnedTopic]
    max_rate: int | None = field(default=None, kw_only=True)
    since_ms: int | None = field(default=None, kw_only=True)

    def records(
        self, topic: PinnedTopic, side: Side, readings: Sequence[Ranges], cut: Cut, isolation: str = "read_committed"
    ) -> "DataFrame":
        """Return the fingerprints of a topic's records in at least one set of ranges, none of which is empty."""
        log = self.spark, self.java[side], topic.name(side), readings, cut.equality
        records = log_records(*log, isolation, self.max_rate)
        return fingerprinted(records, cut, self.salt)

    def looked_at(self, topic: PinnedTopic, side: Side, readings: Sequence[Ranges], cut: Cut) -> "DataFrame":
        """Return the fingerprints that `records` does, but those of records that are too old."""
        prints = self.records(topic, side, readings, cut)
        return prints if self.since_ms is None else prints.where(f"time >= {self.since_ms}")

    def again(self, topic: PinnedTopic, side: Side, held: TopicSums, differing: Collection[Stretch]) -> "DataFrame":
        """Return what is still there of the differing stretches."""
        logs, sums = topic.logs(side), held.sums[side]
        there = ((each.partition, sums[each], logs[each.partition].start) for each in differing if each in sums)
        ranges = ((p, LogRange(max(s.first_offset, start), s.last_offset + 1)) for p, s, start in there)
        readings = pieces(((p, log) for p, log in ranges if log.start < log.end), MOST_PIECES)
        return inside(self.looked_at(topic, side, readings, held.cut), differing) if readings else nothing(self.spark)


def judged(
    reading: LogReading, topic: PinnedTopic, held: TopicSums, lasts: bool, found: NamedFile
) -> tuple[TopicAudit, dict[Stretch, Counter[Category]]]:
    """Return what was found of a topic whose logs have been summed, after comparing the stretches that differ.

    Beside it: of those that lack nothing, what their target has beyond the source. `lasts` is that of the topic's
    calibration. What is named goes to `found`.
    """
    differing = held.differing()
    counts = Counter[Category]()
    counts[Category.COPIED] = sum(s.records for each, s in held.sums[Side.SOURCE].items() if each not in differing)
    for each, extras in held.extras.items():
        if each not in differing:
            counts.update(extras.counts)
    # The others are in partitions that an earlier run read and this one could not: nothing of them is told.
    differing = {each for each in differing if each.partition in topic.source_logs}
    equality = held.cut.equality
    if not differing:
        return TopicAudit(topic.topic, topic.target, equality, +counts, unproven=topic.unproven), {}

    topic = reading.with_current_starts(topic)

    def both(stretches: Collection[Stretch]) -> "DataFrame":
        return both_logs(*(reading.again(topic, side, held, stretches) for side in Side))

    alone_in = defaultdict[Stretch, Counter[Category]](Counter)
    first, times, lacks = tuple[Named, ...](), None, tuple[Lack, ...]()
    with reading_topic(reading.java[Side.SOURCE], f"{topic.topic}, or its copy,"), ExitStack() as kept:
        if Side.TARGET in topic.compacted:
            # Its cleaner may have taken a copy because of a further one, in any stretch: counts are not enough.
            pairs, by_sums, records = dict[Stretch, Paired](), dict[Stretch, Category](), [both(differing)]
        else:
            pairs, by_sums, records = _judged_by_counts(reading, topic, held, differing, lasts, both, kept)
        for each, category in by_sums.items():
            pairs[each] = Paired(0, 0, *held.counts(each), None, None)
            alone_in[each][category] = pairs[each].alone
        if records:
            with closing(Comparison(all_of(records))) as comparison:
                looked = comparison.paired()
                pairs |= {each: pairs[each].plus(p) if each in pairs else p for each, p in looked.items()}
                if any(each.alone for each in looked.values()):
                    now = reading.with_current_starts(topic)
                    bounds = _bounds(topic, now, held, differing, pairs, lasts)
                    classified = _classified(reading, now, held, comparison, bounds, looked)
                    alone_in |= classified.counts()
                    lacks = classified.lacks(topic.owed_from) if topic.owed_from else ()
                    first, times = found.take(topic.topic, classified.named())
    beyond = {each: alone_in[each] + Counter({Category.COPIED_AGAIN: p.again}) for each, p in pairs.items()}
    for of_stretch in beyond.values():
        counts.update(of_stretch)
    counts[Category.COPIED] += sum(each.copied for each in pairs.values())
    begins = held.first_offsets(Side.SOURCE)
    is_cut = any(begins.get(p, log.start) < log.start for p, log in topic.source_logs.items())
    # A cleaner never moves a log's start: something else removed records, too.
    gone = Category.SUPERSEDED if topic.only_compacted and not is_cut else Category.REMOVED
    counts[gone] += _removed(held, differing, pairs)
    unproven = list(topic.unproven)
    if topic.hides_policy and counts.get(Category.SUPERSEDED):
        unproven.append(f"cleanup.policy of {topic.target} is not visible")
    settled = {each: b for each, b in beyond.items() if _lacks_nothing(topic, held, each, pairs[each].copied, b)}
    return TopicAudit(topic.topic, topic.target, equality, +counts, first, times, tuple(unproven), lacks), settled


def _judged_by_counts(
    reading: LogReading,
    topic: PinnedTopic,
    held: TopicSums,
    differing: Collection[Stretch],
    lasts: bool,
    both: Callable[[Collection[Stretch]], "DataFrame"],
    kept: ExitStack,
) -> tuple[dict[Stretch, Paired], dict[Stretch, Category], list["DataFrame"]]:
    """Judge differing stretches without comparing records: by counts what both sides have, by sums what one has.

    Returns what was found of records that have copies, the one-sided stretches whose place decides, and the records
    of `both` logs that must be compared; until `kept` ends these may be read.
    """
    on_both = {each for each in differing if held.is_on_both_sides(each)}
    one_sided = set(differing) - on_both
    equals = kept.enter_context(closing(Counts(both(on_both))))
    every = equals.paired()
    now = reading.with_current_starts(topic)
    by_sums = _judged_by_sums(now, held, one_sided, _bounds(topic, now, held, differing, every, lasts))
    # Where every record has a counterpart, as after replays, counts are enough.
    unequal, left = {each for each, p in every.items() if p.alone}, one_sided - by_sums.keys()
    records = [equals.others_of(both(unequal))] if unequal else []
    records += [both(left)] if left else []
    return equals.copied(), by_sums, records


def _judged_by_sums(
    topic: PinnedTopic, held: TopicSums, one_sided: Collection[Stretch], bounds: Mapping[int, Bounds]
) -> dict[Stretch, Category]:
    """Return the category of one-sided stretches where their place alone decides it, for all of their records.

    So it is where one log begins later than the other, and at the end of what is copied. Not for a plan's groups, each
    of which is told from where on it lacks something, nor where the source's cleaner may have taken some of them.
    """
    found = dict[Stretch, Category]()
    if topic.owed_from or Side.SOURCE in topic.compacted:
        return found
    logs, all_visible, may_hold_aborted = topic.logs(Side.SOURCE), _with_all_originals(topic), _with_gaps(topic, held)
    for each in one_sided:
        p, sums = each.partition, held.sums[Side.SOURCE].get(each)
        if sums is None:
            if p not in all_visible and p not in may_hold_aborted:
                found[each] = Category.NO_ORIGINAL_VISIBLE
        # Where the source has removed some since, only reading what is left tells how many.
        elif sums.first_offset >= logs[p].start:
            if sums.first_offset >= bounds[p].copied_to:
                found[each] = Category.NOT_COPIED_YET
            elif sums.last_offset < min(bounds[p].visible_from, bounds[p].copied_to):
                found[each] = Category.MAYBE_COPIED
    return found


def _with_gaps(topic: PinnedTopic, held: TopicSums) -> dict[int, LogRange]:
    """Return the source's logs that have offsets without a record that was summed: there aborted ones may lie."""
    records, begins = held.records(Side.SOURCE, held.sums[Side.SOURCE]), held.first_offsets(Side.SOURCE)
    # What was read and removed since is no gap.
    return {
        p: log
        for p, log in topic.logs(Side.SOURCE).items()
        if log.start < log.end and records.get(p, 0) != log.end - min(log.start, begins.get(p, log.start))
    }


def _with_all_originals(topic: PinnedTopic) -> set[int]:
    """Return the partitions of whose source nothing was removed and nothing is hidden."""
    # An original of what is looked at lies in the whole log, unless a plan tells where it would begin.
    logs = topic.logs(Side.SOURCE) if topic.owed_from else topic.source_logs
    is_cleaned = Side.SOURCE in topic.compacted
    return {p for p, log in logs.items() if log.start == 0 and not is_cleaned and p not in topic.open_on_source}


def _classified(
    reading: LogReading,
    topic: PinnedTopic,
    held: TopicSums,
    comparison: Comparison,
    bounds: Mapping[int, Bounds],
    looked: Mapping[Stretch, Paired],
) -> Classified:
    """Judge the records of these stretches that have no counterpart."""
    touched = {each.partition for each in looked}
    logs = {p: log for p, log in topic.logs(Side.SOURCE).items() if log.start < log.end and p in touched}
    gaps = {p: log for p, log in _with_gaps(topic, held).items() if p in touched}
    alone = any(each.alone_on_source for each in looked.values())
    others = any(each.alone_on_target for each in looked.values())
    return comparison.classified(
        held.cut,
        bounds,
        _with_all_originals(topic),
        inside(reading.records(topic, Side.SOURCE, [gaps], held.cut, "read_uncommitted"), looked)
        if others and gaps
        else None,
        reading.records(topic, Side.SOURCE, [logs], held.cut)
        if alone and logs and Side.TARGET in topic.compacted
        else None,
    )


def with_order(
    reading: LogReading, topic: PinnedTopic, held: TopicSums, audit: TopicAudit, found: NamedFile
) -> TopicAudit:
    """Return an audit of a topic with the records whose copies are out of order: all of both logs is read again."""
    try:
        topic = reading.with_current_starts(topic)
        logs = {side: {p: log for p, log in topic.logs(side).items() if log.start < log.end} for side in Side}
        if not all(logs.values()):
            return audit
        cut_short = {p for p, log in topic.target_logs.items() if log.start or p in topic.begins}
        source, target = (reading.looked_at(topic, side, [logs[side]], held.cut) for side in Side)
        with reading_topic(reading.java[Side.SOURCE], f"{topic.topic}, or its copy,"):
            late = out_of_order(source, target, cut_short).persist()
            count = late.count()
            rows = late.orderBy("partition", "offset").toLocalIterator()
            first, _ = found.take(topic.topic, (Named(Category.OUT_OF_ORDER, *row) for row in rows))
            late.unpersist()
    except ClusterError as error:
        # What is missing is known by now, and stays so.
        return replace(audit, unproven=(*audit.unproven, f"the order of copies was not looked at: {error.problem}"))
    counts = {**audit.counts, Category.OUT_OF_ORDER: count} if count else audit.counts
    return replace(audit, counts=counts, named=(*audit.named, *first))


def _lacks_nothing(
    topic: PinnedTopic, held: TopicSums, stretch: Stretch, copied: int, beyond: Counter[Category]
) -> bool:
    """True if all that was ever read of a stretch is known, and is copied, or is and stays an extra.

    Every run names what is foreign, by offsets and times that sums do not hold; what is superseded has no copy, which
    settled sums are taken to show of every record (`_bounds`): both are read again. While a transaction is open on the
    source, copies of its records have no original.
    """
    source, target = held.counts(stretch)
    return (
        stretch.partition not in topic.open_on_source
        and not beyond[Category.FOREIGN]
        and copied == source
        and copied + beyond.total() == target
    )


def _removed(held: TopicSums, differing: Collection[Stretch], pairs: Mapping[Stretch, Paired]) -> int:
    """Return how many of the source's records were summed and are no longer there, in stretches that differ."""
    read = sum(held.records(Side.SOURCE, differing).values())
    return max(0, read - sum(each.copied + each.alone_on_source for each in pairs.values()))


def _bounds(
    read: PinnedTopic,
    topic: PinnedTopic,
    held: TopicSums,
    differing: Collection[Stretch],
    pairs: Mapping[Stretch, Paired],
    lasts: bool,
) -> dict[int, Bounds]:
    """Return of each partition between which offsets records without a copy are missing.

    Logs began as in `read` before `pairs` were read, and do as in `topic` now: a copy that may be gone proves nothing.
    """
    first, last = dict[int, int](), dict[int, int]()
    target = held.sums[Side.TARGET]
    for each, sums in held.sums[Side.SOURCE].items():
        p = each.partition
        # Of a stretch that was summed earlier the target may have removed copies since.
        if p in topic.target_logs and each not in differing and target[each].first_offset >= topic.target_logs[p].start:
            first[p] = min(sums.first_offset, first.get(p, sums.first_offset))
            last[p] = max(sums.last_offset, last.get(p, sums.last_offset))
    for each, pair in pairs.items():
        p = each.partition
        if pair.first_copied is not None and read.target_logs[p].start == topic.target_logs[p].start:
            first[p] = min(pair.first_copied, first.get(p, pair.first_copied))
        if pair.last_copied is not None:
            last[p] = max(pair.last_copied, last.get(p, pair.last_copied))
    keeps_time = held.cut.equality.keeps_time
    logs = dict(topic.target_logs)
    for p, (_, begins) in topic.begins.items():
        if topic.owed_from and p in logs and logs[p].start <= begins:
            # Nothing was removed of what a plan's groups will read.
            logs[p] = LogRange(0, logs[p].end)
    bounds = {
        p: bounds_of(
            PartitionFacts(
                log,
                logs[p],
                topic.next_to_copy.get(p),
                first.get(p),
                last.get(p),
                p in topic.open_on_target,
                # Without timestamps a record may be equal to one that was written long after it.
                lasts and (keeps_time or (p in topic.next_to_copy and logs[p].start == 0)),
            )
        )
        for p, log in topic.source_logs.items()
    }
    if Side.TARGET not in topic.compacted:
        return bounds
    # What superseded a record there may have been removed from the source since.
    starts = {p: log.start for p, log in topic.source_logs.items()}
    return {p: replace(each, visible_from=max(each.visible_from, starts[p])) for p, each in bounds.items()}

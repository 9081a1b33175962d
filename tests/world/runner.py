"""Asks the matching about a world: serves what it needs from the logs in memory, as a reader of brokers would."""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from migrate.match.equality import Equality, calibrated
from migrate.match.matcher import matching
from migrate.match.protocol import (
    LogSlice,
    Needs,
    OffsetRange,
    PartitionAnswer,
    PartitionQuestion,
    Supply,
    Tail,
    Unmatched,
    Unreadable,
    WhyUnmatched,
    key_mark,
)
from migrate.mm2.chain import chain
from migrate.model import LogRange, TopicPartition
from tests.prints import fingerprint
from tests.world.model import Entry, World

MOST_ROUNDS = 300
PARTITION = TopicPartition("t", 0)
Matcher = Callable[[PartitionQuestion], Generator[Needs, Supply | Unreadable, PartitionAnswer]]


class BadNeeds(AssertionError):
    """The matching asked for something that a reader can't serve."""


@dataclass(frozen=True)
class Run:
    """An answer, what it cost (offsets asked for, rounds), and the log starts as they were in the end."""

    question: PartitionQuestion
    answer: PartitionAnswer
    rounds: int
    source_read: int
    target_read: int
    read_twice: int
    source_start: int
    target_start: int


def question(world: World, match_limit: int = 1_000_000) -> PartitionQuestion | None:
    """Ask about every commit of the world; None where no anchor agrees under any equality.

    Anchors are the syncs whose two records can be read, and those of the topic's other partitions. A topic without
    any is taken to keep everything, as nothing tells otherwise.
    """
    sync_pairs = tuple(
        (sync.source_offset, sync.target_offset)
        for sync in chain(world.syncs, world.source_log.end, world.target_log.end)
    )
    source = {entry.offset: entry.content for entry in world.source_seen}
    target = {entry.offset: entry.content for entry in world.target_seen}
    anchors = [(source[u], target[d]) for u, d in sync_pairs if u in source and d in target]
    anchors += world.elsewhere
    equality = calibrated(anchors) if anchors else Equality.ALL
    if equality is None:
        return None
    return PartitionQuestion(
        source=PARTITION,
        target=PARTITION,
        source_log=world.source_log,
        target_log=world.target_log,
        sync_pairs=sync_pairs,
        source_committed=world.commits,
        equality=equality,
        has_open_transaction=world.source_open,
        last_copied_offset=world.last_copied_offset,
        match_limit=match_limit,
        compacted="target-compaction" in world.troubles,
    )


def answer(world: World, matcher: Matcher = matching, match_limit: int = 1_000_000) -> Run:
    """Drive `matcher` over the world's logs until it answers. Raises `BadNeeds` for what can't be served."""
    asked = question(world, match_limit)
    if asked is None:
        places = {g: Unmatched(WhyUnmatched.RECORDS_CHANGED) for g in world.commits}
        whole = PartitionQuestion(
            PARTITION, PARTITION, world.source_log, world.target_log, world.commits, sync_pairs=(),
            equality=Equality.TIME_AND_KEY,
        )  # fmt: skip
        return Run(
            whole,
            PartitionAnswer(places, Tail(None), 0, 0),
            0, 0, 0, 0, world.source_log.start, world.target_log.start,
        )  # fmt: skip
    return conversed(world, asked, matcher)


def conversed(world: World, asked: PartitionQuestion, matcher: Matcher = matching) -> Run:
    """Drive `matcher` over the world's logs, with a question of one's own. Raises `BadNeeds` as `answer` does."""
    source = _Reader(world.source, world.source_seen, world.source_log, asked.equality)
    target = _Reader(world.target, world.target_seen, world.target_log, asked.equality)
    talk = matcher(asked)
    try:
        needs = next(talk)
        for rounds in range(1, MOST_ROUNDS):
            for at, on_source, start in world.retention:
                if at == rounds:
                    (source if on_source else target).delete_below(start)
            supply = Supply(
                source=source.read(needs.source),
                target=target.read(needs.target),
                source_first={time: source.first(time) for time in needs.source_times},
                target_first={time: target.first(time) for time in needs.target_times},
            )
            needs = talk.send(supply)
    except StopIteration as done:
        return Run(
            asked, done.value, locals().get("rounds", 0), source.offsets_read, target.offsets_read,
            source.read_twice + target.read_twice, source.readable_from, target.readable_from,
        )  # fmt: skip
    raise BadNeeds(f"no answer after {MOST_ROUNDS} rounds")


class _Reader:
    """One log, read as far as its pinned end by a read_committed consumer."""

    def __init__(self, physical: Sequence[Entry], seen: Sequence[Entry], log: LogRange, equality: Equality) -> None:
        self.log, self.readable_from = log, log.start
        self.offsets = [entry.offset for entry in seen]
        self.times = [entry.content.timestamp for entry in seen]
        self.prints = [fingerprint(entry.content, equality) for entry in seen]
        self.keys = [key_mark(entry.content.key, entry.content.value) for entry in seen]
        self.physical = physical
        self.delete_below(log.start)
        self.offsets_read = self.read_twice = 0
        self.was_read: set[int] = set()

    def delete_below(self, start: int) -> None:
        self.readable_from = max(self.readable_from, start)
        # Brokers search aborted records and markers too.
        self.physical = [entry for entry in self.physical if entry.offset >= self.readable_from]
        self.all_offsets = [entry.offset for entry in self.physical]
        self.greatest = list(accumulate((entry.content.timestamp for entry in self.physical), max))

    def read(self, ranges: Sequence[OffsetRange]) -> tuple[LogSlice, ...]:
        ends = [self.log.start, *(r.end for r in ranges)]
        for end_before, wanted in zip(ends, ranges, strict=False):
            if not (end_before <= wanted.start < wanted.end <= self.log.end):
                raise BadNeeds(f"ranges {ranges} of a log {self.log}: empty, overlapping, unsorted, or outside")
        return tuple(self._stretch(wanted) for wanted in ranges)

    def first(self, time: int) -> int:
        at = bisect_left(self.greatest, time)
        return min(self.all_offsets[at], self.log.end) if at < len(self.greatest) else self.log.end

    def _stretch(self, wanted: OffsetRange) -> LogSlice:
        covered = set(range(max(wanted.start, self.readable_from), wanted.end))
        self.offsets_read += len(covered)
        self.read_twice += len(covered & self.was_read)
        self.was_read |= covered
        low = bisect_left(self.offsets, max(wanted.start, self.readable_from))
        high = bisect_left(self.offsets, wanted.end)
        cut = slice(low, max(low, high))
        return LogSlice(
            wanted.start,
            wanted.end,
            min(max(wanted.start, self.readable_from), wanted.end),
            self.offsets[cut],
            self.times[cut],
            self.prints[cut],
            self.keys[cut],
        )

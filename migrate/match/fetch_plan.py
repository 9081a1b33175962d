"""What comparing will read, before it reads: the cost of each partition, limits, and who reads what. Pure."""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from migrate.match.comparison import FetchEstimate, Limits
from migrate.match.log_reader import GAP, SHORT_FETCH, runs_of
from migrate.match.protocol import Needs, OffsetPair, OffsetRange, PartitionQuestion
from migrate.match.task import Matching
from migrate.model import LogRange, TopicPartition

# Where a commit's syncs are far apart, its place is searched by timestamps: about what that reads, in offsets.
SEARCH = 1_000
# What a record takes if none was read, in bytes.
UNKNOWN_SIZE = 1_000.0
# A partition costs something even if nothing of it is read: a place in an assignment, its matching. In offsets.
PER_PARTITION = 200


@dataclass(frozen=True, slots=True)
class LogReading:
    """What is read of one log at first: `width` offsets in `runs` straight runs.

    `reach` offsets lie between the first of them and the log's end: no more can be fetched.
    """

    width: int
    runs: int
    reach: int

    def fetched_bytes(self, size: float) -> float:
        """Return what this will fetch, of records of `size` bytes: each run's last fetch brings more than its end."""
        return min(self.reach * size, self.width * size + self.runs * SHORT_FETCH)


NOTHING_READ = LogReading(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a partition's matching reads of either log at first, and its newest syncs."""

    source: TopicPartition
    source_reading: LogReading
    target_reading: LogReading
    newest: tuple[OffsetPair, ...]

    @property
    def width(self) -> int:
        """Offsets of both logs."""
        return self.source_reading.width + self.target_reading.width


@dataclass(frozen=True)
class FetchPlan:
    """Which partitions are left out, what the others take, and the task that each goes to."""

    estimate: FetchEstimate
    left_out: frozenset[TopicPartition]
    task_of: Mapping[TopicPartition, int]


def cost_of(question: PartitionQuestion, match: Matching, newest: int) -> Cost:
    """Return what the matching of a partition asks for first, which is mostly all; `newest` is how many syncs to name.

    Of a commit that its first windows leave out it is only known that its place will be searched.
    """
    try:
        needs = next(match(question))
    except StopIteration:
        needs = Needs()
    starts = [piece.start for piece in needs.source]
    searched = sum(not _holds(needs.source, starts, committed) for committed in question.source_committed)
    source, target = (
        _reading(log, pieces, searched, question.match_limit)
        for log, pieces in ((question.source_log, needs.source), (question.target_log, needs.target))
    )
    if not question.sync_pairs:
        # Where no sync says which stretch of the copy, it is found by timestamps later: about as long as the original.
        length = question.target_log.end - question.target_log.start
        target = LogReading(min(length, max(target.width, source.width)), max(target.runs, source.runs), length)
    return Cost(question.source, source, target, tuple(question.sync_pairs[-newest:]))


def cost_by_timestamp(question: PartitionQuestion, newest: int) -> Cost:
    """Return what Law 2b reads of a partition: the source once, from the lowest commit that may be read on."""
    log = question.source_log
    first = max(log.start, log.end - question.match_limit)
    lowest = next((committed for committed in question.source_committed if committed >= first), log.end)
    width = max(0, log.end - lowest)
    return Cost(
        question.source, LogReading(width, int(width > 0), width), NOTHING_READ, tuple(question.sync_pairs[-newest:])
    )


def _reading(log: LogRange, pieces: Sequence[OffsetRange], searched: int, limit: int) -> LogReading:
    """Return what is read of a log for these pieces, and for places to be searched that may lie anywhere in it."""
    length = log.end - log.start
    width = min(limit, length, sum(p.end - p.start for p in pieces) + searched * SEARCH)
    start = log.start if searched or not pieces else max(log.start, pieces[0].start)
    return LogReading(max(0, width), len(runs_of(pieces, GAP)) + searched, max(0, log.end - start))


def _holds(pieces: Sequence[OffsetRange], starts: Sequence[int], offset: int) -> bool:
    """True if an offset lies in one of these pieces, or at the end of one."""
    at = bisect_right(starts, offset) - 1
    return at >= 0 and offset <= pieces[at].end


def plan_fetch(
    costs: Collection[Cost], sizes: Mapping[str, tuple[float | None, float | None]], limits: Limits, tasks: int
) -> FetchPlan:
    """Leave out the widest partitions until both clusters' budgets hold, and spread the others evenly over tasks.

    `sizes` are average records by source topic, in bytes: (source, target).
    """
    known = [size for pair in sizes.values() for size in pair if size is not None]
    usual = sum(known) / len(known) if known else UNKNOWN_SIZE
    bytes_of: dict[TopicPartition, tuple[float, float]] = {}
    for cost in costs:
        on_source, on_target = sizes.get(cost.source.topic, (None, None))
        bytes_of[cost.source] = (
            cost.source_reading.fetched_bytes(on_source or on_target or usual),
            cost.target_reading.fetched_bytes(on_target or on_source or usual),
        )
    kept = sorted(costs, key=lambda cost: (sum(bytes_of[cost.source]), cost.source))
    left_out: set[TopicPartition] = set()
    totals = [sum(bytes_of[cost.source][side] for cost in kept) for side in (0, 1)]
    while kept and limits.fetch_bytes is not None and max(totals) > limits.fetch_bytes:
        widest = kept.pop().source
        left_out.add(widest)
        totals = [total - part for total, part in zip(totals, bytes_of[widest], strict=True)]
    estimate = FetchEstimate(
        partitions=len(kept),
        source_records=sum(cost.source_reading.width for cost in kept),
        target_records=sum(cost.target_reading.width for cost in kept),
        source_bytes=round(max(0.0, totals[0])),
        target_bytes=round(max(0.0, totals[1])),
        left_out=len(left_out),
    )
    return FetchPlan(estimate, frozenset(left_out), _spread(kept, tasks))


def _spread(costs: Sequence[Cost], tasks: int) -> dict[TopicPartition, int]:
    """Give each partition, the widest first, to the task with the least to do so far."""
    loads = [(0, task) for task in range(max(1, tasks))]
    heapify(loads)
    task_of = {}
    for cost in reversed(costs):
        load, task = loads[0]
        task_of[cost.source] = task
        heapreplace(loads, (load + cost.width + PER_PARTITION, task))
    return task_of

"""Comparing the records of all partitions: what is read for it, in which order, and which task reads it. Pure.

What each partition will read is known before a record is (`Cost`). Each topic is calibrated on a few anchors, then the
budget says which partitions are left out, and every commit is placed by its law, in tasks. A `TaskRunner` runs them:
one in this process (`TasksHere`), one in Spark (`migrate.spark.tasks`).
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import chain
from typing import NamedTuple, Protocol

from migrate.match.calibration import (
    ANCHORS,
    SOURCE_TAIL,
    TARGET_TAIL,
    CalibratedOn,
    Calibration,
    calibrate_topics,
    end_of,
    topic_questions,
)
from migrate.match.equality import Equality
from migrate.match.least_timestamp import topics_with_kept_timestamps
from migrate.match.log_reader import GAP, SHORT_FETCH, runs_of
from migrate.match.matcher import matching
from migrate.match.protocol import (
    ChainOf,
    Comparison,
    FetchEstimate,
    Limits,
    Listener,
    Matched,
    Needs,
    OffsetPair,
    OffsetRange,
    PartitionAnswer,
    PartitionQuestion,
    WhyUnmatched,
    Work,
)
from migrate.match.task import Answer, Asked, Fetched, OpenReaders, Task, answers_of, match_partitions
from migrate.model import LogRange, TopicPartition

# Where a commit's syncs are far apart, its place is searched by timestamps: about what that reads, in offsets.
SEARCH = 1_000
# What a record takes if none was read, in bytes.
UNKNOWN_SIZE = 1_000.0
# A partition costs something even if nothing of it is read: a place in an assignment, its matching. In offsets.
PER_PARTITION = 200
# The part of a budget that calibrating may take.
CALIBRATING = 0.5
# What one costs whose windows are not read, in the same measure.
PER_GUARDED = 1_000


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


class Assigned(NamedTuple):
    """Which task a partition goes to, what its records must agree in, and why its windows are not read, if so.

    A tuple: they travel to Spark's tasks by the hundred thousand.
    """

    task: int
    equality: Equality
    unread: WhyUnmatched | None

    def given_to(self, question: PartitionQuestion) -> PartitionQuestion:
        """Return the question as its task is asked it."""
        return replace(question, equality=self.equality, unread=self.unread)


Share = Callable[[float], None]
"""Hears which part of the tasks is done, from 0 to 1, perhaps from another thread."""


class Questions(Protocol):
    """The question of each partition, before it is known how its records compare."""

    def costs(self) -> Collection[Cost]:
        """Return what each will read; no record is read for it."""

    def run(
        self, task: Task[PartitionQuestion, Answer], assigned: Mapping[TopicPartition, Assigned], share: Share
    ) -> Iterable[Answer | Fetched]:
        """Give the questions of the assigned partitions to their tasks, and return the answers."""


class TaskRunner(Protocol):
    """Runs tasks, each with readers of its own; `cores` is how many at once. Raises `MigrateError` where one fails."""

    @property
    def cores(self) -> int:
        """How many tasks run at the same time."""

    def questions(self, works: Collection[Work], limits: Limits) -> AbstractContextManager[Questions]:
        """Return the questions about these works, with the chain of each, as long as they are wanted."""

    def run(
        self, task: Task[Asked, Answer], lists: Sequence[Sequence[Asked]], share: Share | None = None
    ) -> Iterable[Answer | Fetched]:
        """Run one task over each list, of which there is one at least; each says at its end what it fetched."""


class HeldQuestions:
    """Questions whose chains are held in this process: of all that few enough syncs were written for."""

    def __init__(self, runner: TaskRunner, works: Collection[Work], chain_of: ChainOf, limits: Limits) -> None:
        self._runner = runner
        self._questions = {
            work.source: PartitionQuestion.of(
                work, chain_of(work.original, work.source_log.end, work.target_log.end), limits
            )
            for work in works
        }

    def costs(self) -> list[Cost]:
        """Return what each will read."""
        return list(map(cost_of, self._questions.values()))

    def run(
        self, task: Task[PartitionQuestion, Answer], assigned: Mapping[TopicPartition, Assigned], share: Share
    ) -> Iterable[Answer | Fetched]:
        """Give each task its list."""
        lists: list[list[PartitionQuestion]] = [[] for _ in range(1 + max(each.task for each in assigned.values()))]
        for place, each in assigned.items():
            lists[each.task].append(each.given_to(self._questions[place]))
        return self._runner.run(task, lists, share)


class TasksHere:
    """Runs tasks in this process, one after the other with the same readers: a `TaskRunner` without Spark."""

    cores = 1

    def __init__(self, open_readers: OpenReaders, chain_of: ChainOf) -> None:
        self._open_readers = open_readers
        self._chain_of = chain_of

    def questions(self, works: Collection[Work], limits: Limits) -> AbstractContextManager[Questions]:
        """Return the questions about these works."""
        return nullcontext(HeldQuestions(self, works, self._chain_of, limits))

    def run(
        self, task: Task[Asked, Answer], lists: Sequence[Sequence[Asked]], share: Share | None = None
    ) -> Iterator[Answer | Fetched]:
        """Yield answers as they are found: that is how far the tasks are."""
        return answers_of(self._open_readers, task, chain.from_iterable(lists))


class _Answered(NamedTuple):
    """What was answered to a work, and under which equality: that holds as long as the answer does."""

    work: Work
    answer: PartitionAnswer
    equality: Equality | None


class Memory:
    """What comparisons have shown, for as long as it holds: how topics compare, and partitions that have not moved."""

    def __init__(self) -> None:
        self.calibrations: dict[str, Calibration] = {}
        self._answered: dict[TopicPartition, _Answered] = {}

    def forget(self) -> None:
        """Read everything anew from now on: a topic was created anew, say."""
        self.calibrations.clear()
        self._answered.clear()

    def of(self, works: Collection[Work]) -> list[_Answered]:
        """Return what is known of those works whose logs and commits are as they were."""
        return [
            known for work in works if (known := self._answered.get(work.source)) is not None and known.work == work
        ]

    def keep(self, works: Collection[Work], comparison: Comparison, left_out: Collection[TopicPartition]) -> None:
        """Remember the answers that another reading of the same logs would give again, and no others."""
        answers = comparison.answers
        self._answered = {
            work.source: _Answered(work, answers[work.source], comparison.equalities[work.source.topic])
            for work in works
            if work.source not in left_out and _holds(work, answers[work.source])
        }


def _holds(work: Work, answer: PartitionAnswer) -> bool:
    """True if another reading of the same logs would say the same: what was not readable may be by then."""
    if not work.source_committed:
        return answer.tail.uncopied == 0
    unplaced = (place.reason for place in answer.places.values() if not isinstance(place, Matched))
    return all(reason in (WhyUnmatched.MATCH_LIMIT, WhyUnmatched.RECORDS_CHANGED) for reason in unplaced)


def compare_records(
    runner: TaskRunner, works: Collection[Work], limits: Limits, listener: Listener, memory: Memory | None = None
) -> Comparison:
    """Place the commits of every work that the memory does not know, and remember there what holds: a `Comparer`.

    With a `memory`, what has not moved is compared only once. Raises `ClusterError` if a cluster, or Spark, does not
    answer.
    """
    remembered = memory or Memory()
    known = remembered.of(works)
    answers = {each.work.source: each.answer for each in known}
    equalities = {each.work.source.topic: each.equality for each in known}
    asked = {work.source: work for work in works if work.source not in answers}
    if not asked:
        estimate, _ = fetch_estimate([], {}, limits, (), Fetched())
        listener.expects(estimate)
        return Comparison(answers, equalities, estimate, 0, 0)
    with runner.questions(list(asked.values()), limits) as questions:
        costs = questions.costs()
        calibrations, spent = _calibrations(runner, asked, costs, remembered, limits)
        topics = {place.topic for place in asked}
        # Of what is not calibrated nothing is known: as of a topic without anchors.
        equalities = {**dict.fromkeys(topics, Equality.ALL), **equalities}
        equalities |= {topic: calibrations[topic].equality for topic in topics & calibrations.keys()}
        unread, also_spent = _unread(runner, asked, costs, equalities, limits)
        spent = spent.and_(also_spent)
        sizes = {topic: (each.source_size, each.target_size) for topic, each in calibrations.items()}
        wanted = [cost for cost in costs if cost.source not in unread]
        estimate, left_out = fetch_estimate(wanted, sizes, limits, calibrations.keys(), spent)
        listener.expects(estimate)
        unread |= dict.fromkeys(left_out, WhyUnmatched.MATCH_LIMIT)
        widths = {cost.source: PER_GUARDED if cost.source in unread else cost.width for cost in costs}
        task_of = spread(widths, task_count(sum(widths.values()), runner.cores))
        # Where no equality holds, no sync is proven: what is asked under any of them is the guard.
        assigned = {
            place: Assigned(task, equalities[place.topic] or Equality.TIME_AND_KEY, unread.get(place))
            for place, task in task_of.items()
        }
        fresh: dict[TopicPartition, PartitionAnswer] = {}

        def share(part: float) -> None:
            listener.advance(int(part * len(asked)), len(asked))

        for outcome in questions.run(match_partitions, assigned, share):
            if isinstance(outcome, Fetched):
                spent = spent.and_(outcome)
            else:
                place, fresh[place] = outcome
                listener.advance(len(fresh), len(asked))
    lacking = asked.keys() - fresh.keys()
    assert not lacking, f"no answer for {len(lacking)} partitions"
    comparison = Comparison(answers | fresh, equalities, estimate, spent.source_bytes, spent.target_bytes)
    if memory is not None:
        memory.keep(works, comparison, left_out)
    return comparison


# Offsets of either log that are read of all tails in one round, and of each at least and at most.
TAILS_PER_ROUND = 2_000_000
LEAST_PER_TAIL = 5_000
MOST_PER_TAIL = 50_000


def compare_tails(
    runner: TaskRunner, memory: Memory, works: Collection[Work], limits: Limits, listener: Listener
) -> Comparison:
    """Read whether MM2 has copied everything, and place no commits: a `Comparer`, of which the listener hears nothing.

    Only what is behind the last proven sync is read; what was drained and has not moved, not again. Raises
    `ClusterError` if a cluster does not answer.
    """
    tails = [replace(work, source_committed=(), last_copied_offset=None, compacted=False) for work in works]
    moved = len(tails) - len(memory.of(tails))
    most = min(limits.match_records, tail_limit(moved))
    unheard = Listener(lambda estimate: None, lambda done, total: None)
    return compare_records(runner, tails, replace(limits, match_records=most), unheard, memory)


def tail_limit(partitions: int) -> int:
    """Return how many offsets of either log may be read of each of so many tails."""
    return max(LEAST_PER_TAIL, min(MOST_PER_TAIL, TAILS_PER_ROUND // max(1, partitions)))


def _calibrations(
    runner: TaskRunner, asked: Mapping[TopicPartition, Work], costs: Collection[Cost], memory: Memory, limits: Limits
) -> tuple[Mapping[str, Calibration], Fetched]:
    """Return how the records of topics compare, and what it took; what anchors agree on is not asked again.

    Topics that half the budget does not reach are not among them: the other half is for comparing.
    """
    unknown = [cost for cost in costs if cost.source.topic not in memory.calibrations]
    topics = _affordable(_topics(asked, unknown), limits)
    found, spent = _ask_topics(runner, calibrate_topics, topics)
    calibrations = memory.calibrations | {each.topic: each for each in found}
    memory.calibrations |= {each.topic: each for each in found if each.lasts}
    return calibrations, spent


def _affordable(topics: Sequence[CalibratedOn], limits: Limits) -> Sequence[CalibratedOn]:
    """Return the topics that may be calibrated, those that take the least first."""
    if limits.fetch_bytes is None:
        return topics
    taken, chosen = [0.0, 0.0], list[CalibratedOn]()
    for takes, topic in sorted(((calibrating_bytes(topic), topic) for topic in topics), key=lambda each: max(each[0])):
        taken = [sum(side) for side in zip(taken, takes, strict=True)]
        if max(taken) > limits.fetch_bytes * CALIBRATING:
            break
        chosen.append(topic)
    return chosen


def calibrating_bytes(topic: CalibratedOn) -> tuple[float, float]:
    """Return about what calibrating a topic fetches from the source and from the target, in bytes."""
    return (
        sum(_reading_of(p.source_log, [pair[0] for pair in p.sync_pairs], SOURCE_TAIL) for p in topic),
        sum(_reading_of(p.target_log, [pair[1] for pair in p.sync_pairs], TARGET_TAIL) for p in topic),
    )


def _reading_of(log: LogRange, anchors: Sequence[int], tail: int) -> float:
    """Return what it takes to read some records of a log, or some of its last where there are none, in bytes."""
    last = end_of(log, tail)
    pieces = [OffsetRange(at, at + 1) for at in sorted(anchors)] or [OffsetRange(last.start, last.stop)]
    return _reading(log, pieces, 0, log.end - log.start).fetched_bytes(UNKNOWN_SIZE)


def _unread(
    runner: TaskRunner,
    asked: Mapping[TopicPartition, Work],
    costs: Collection[Cost],
    equalities: Mapping[str, Equality | None],
    limits: Limits,
) -> tuple[dict[TopicPartition, WhyUnmatched], Fetched]:
    """Return why the commits of some partitions cannot be placed by records or timestamps, and what it took to know."""
    if not limits.match_records:
        return dict.fromkeys(asked, WhyUnmatched.NO_MATCH), Fetched()
    if not limits.by_timestamp:
        changed = (place for place in asked if equalities[place.topic] is None)
        return dict.fromkeys(changed, WhyUnmatched.RECORDS_CHANGED), Fetched()
    timed = [cost for cost in costs if asked[cost.source].may_keep_timestamps]
    kept, spent = _ask_topics(runner, topics_with_kept_timestamps, _topics(asked, timed))
    return {place: WhyUnmatched.TIMESTAMPS_NOT_KEPT for place in asked if place.topic not in frozenset(kept)}, spent


def _topics(asked: Mapping[TopicPartition, Work], costs: Collection[Cost]) -> list[CalibratedOn]:
    """Return the topics of some partitions, each by those of its partitions that have most syncs."""
    return topic_questions((asked[cost.source], cost.newest) for cost in costs)


def _ask_topics(
    runner: TaskRunner, task: Task[CalibratedOn, Answer], topics: Sequence[CalibratedOn]
) -> tuple[list[Answer], Fetched]:
    """Ask something about each topic; return the answers, and what they took."""
    tasks = min(len(topics), runner.cores)
    answers, spent = list[Answer](), Fetched()
    for outcome in runner.run(task, [topics[n::tasks] for n in range(tasks)]) if topics else ():
        if isinstance(outcome, Fetched):
            spent = spent.and_(outcome)
        else:
            answers.append(outcome)
    return answers, spent


# Less is not worth a task and its connections, or the second task of a core, in offsets of both logs.
LEAST_PER_TASK, LEAST_PER_SECOND_TASK = 100_000, 500_000
TASKS_PER_CORE = 2
# Each has up to four connections to the brokers.
MOST_TASKS = 128


def task_count(width: int, cores: int) -> int:
    """Return how many tasks share a job of this width, in offsets of both logs."""
    one_each = min(cores, 1 + width // LEAST_PER_TASK)
    return min(MOST_TASKS, max(one_each, min(TASKS_PER_CORE * cores, width // LEAST_PER_SECOND_TASK)))


def cost_of(question: PartitionQuestion) -> Cost:
    """Return what is asked for first of a partition, which is mostly all, however its records compare.

    Of a commit that its first windows leave out it is only known that its place will be searched.
    """
    newest = tuple(question.sync_pairs[-ANCHORS:])
    if question.by_timestamp:
        return Cost(question.source, _by_timestamp(question), NOTHING_READ, newest)
    try:
        needs = next(matching(question))
    except StopIteration:
        needs = Needs()
    starts = [piece.start for piece in needs.source]
    searched = sum(not _covers(needs.source, starts, committed) for committed in question.source_committed)
    source, target = (
        _reading(log, pieces, searched, question.match_limit)
        for log, pieces in ((question.source_log, needs.source), (question.target_log, needs.target))
    )
    if not question.sync_pairs:
        # Where no sync says which stretch of the copy, it is found by timestamps later: about as long as the original.
        length = question.target_log.end - question.target_log.start
        target = LogReading(min(length, max(target.width, source.width)), max(target.runs, source.runs), length)
    return Cost(question.source, source, target, newest)


def _by_timestamp(question: PartitionQuestion) -> LogReading:
    """Return what Law 2b reads of a partition: the source once, from the lowest commit that may be read on."""
    log = question.source_log
    first = max(log.start, log.end - question.match_limit)
    lowest = next((committed for committed in question.source_committed if committed >= first), log.end)
    width = max(0, log.end - lowest)
    return LogReading(width, int(width > 0), width)


def _reading(log: LogRange, pieces: Sequence[OffsetRange], searched: int, limit: int) -> LogReading:
    """Return what is read of a log for these pieces, and for places to be searched that may lie anywhere in it."""
    length = log.end - log.start
    width = min(limit, length, sum(p.end - p.start for p in pieces) + searched * SEARCH)
    start = log.start if searched or not pieces else max(log.start, pieces[0].start)
    return LogReading(max(0, width), len(runs_of(pieces, GAP)) + searched, max(0, log.end - start))


def _covers(pieces: Sequence[OffsetRange], starts: Sequence[int], offset: int) -> bool:
    """True if an offset lies in one of these pieces, or at the end of one."""
    at = bisect_right(starts, offset) - 1
    return at >= 0 and offset <= pieces[at].end


def fetch_estimate(
    costs: Collection[Cost],
    sizes: Mapping[str, tuple[float | None, float | None]],
    limits: Limits,
    topics: Collection[str],
    spent: Fetched,
) -> tuple[FetchEstimate, frozenset[TopicPartition]]:
    """Leave out the widest partitions until both clusters' budgets hold; return what the others take, and those.

    Left out are those of other than these `topics`, too. `sizes` are average records by source topic, in bytes:
    (source, target). `spent` was fetched already: it counts, and is part of the estimate.
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
    known_costs = [cost for cost in costs if cost.source.topic in topics]
    kept = sorted(known_costs, key=lambda cost: (sum(bytes_of[cost.source]), cost.source))
    left_out = {cost.source for cost in costs if cost.source.topic not in topics}
    fetched = spent.source_bytes, spent.target_bytes
    totals = [fetched[side] + sum(bytes_of[cost.source][side] for cost in kept) for side in (0, 1)]
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
    return estimate, frozenset(left_out)


def spread(widths: Mapping[TopicPartition, int], tasks: int) -> dict[TopicPartition, int]:
    """Give each partition, the widest first, to the task with the least to do so far."""
    loads = [(0, task) for task in range(max(1, tasks))]
    heapify(loads)
    task_of = {}
    for place in sorted(widths, key=lambda place: (-widths[place], place)):
        load, task = loads[0]
        task_of[place] = task
        heapreplace(loads, (load + widths[place] + PER_PARTITION, task))
    return task_of

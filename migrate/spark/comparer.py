"""Comparing the records of all partitions, spread over Spark: the adapter behind `RecordComparer`.

Three passes over the questions (`migrate.spark.questions`): what each partition will read (no record is read), the
calibration of each topic on a few anchors, the matching. What comes back to the driver are small values; no record and
no list of fingerprints. How far a job is, the driver asks for while it runs.

The clusters' settings, with their secrets, travel inside the tasks. PySpark writes a large task to a file, so whatever
grows with the number of topics travels as data, apart from them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.match.calibration import Calibration, calibrate_topics, topic_questions
from migrate.match.comparison import Comparison, FetchEstimate, Limits, Listener
from migrate.match.equality import Equality
from migrate.match.fetch_plan import Cost, plan_fetch
from migrate.match.kept_timestamps import topics_with_kept_timestamps
from migrate.match.least_timestamp import by_timestamp
from migrate.match.matcher import matching
from migrate.match.protocol import PartitionAnswer, WhyUnmatched, Work
from migrate.match.sync_only import guarding
from migrate.match.task import Fetched, Matching, OpenReaders, match_partitions
from migrate.model import TopicPartition
from migrate.spark.background import Session
from migrate.spark.java_errors import last_line
from migrate.spark.machine import log_file
from migrate.spark.questions import HeldQuestions, Questions, SpreadQuestions, SyncPairsOf
from migrate.spark.shipping import ship_package
from migrate.spark.syncs import Syncs
from migrate.text import bytes_text

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

ASK_SECONDS = 1.0


class JobProgress:
    """Reports of jobs that follow each other how many of their partitions are done, by the tasks that have finished.

    `advance` takes how many are done and how many there are in all. It is called from a thread of its own.
    """

    def __init__(self, spark: "SparkSession", advance: Callable[[int, int], None], total: int) -> None:
        self._context = spark.sparkContext
        self._advance = advance
        self._total = total
        self._done = 0

    @contextmanager
    def of(self, partitions: int) -> Iterator[None]:
        """Watch the jobs that are started inside; together they see to so many partitions, evenly spread."""
        group = f"mm2-migrate-{id(self)}-{self._done}"
        self._context.setJobGroup(group, "comparing records")
        over = Event()
        watch = Thread(target=self._watch, args=(group, partitions, over), daemon=True)
        watch.start()
        try:
            yield
        finally:
            over.set()
            watch.join()
            self._context._jsc.clearJobGroup()
        self._done += partitions
        self._advance(self._done, self._total)

    def _watch(self, group: str, partitions: int, over: Event) -> None:
        # Without an answer nothing is reported: whoever waits for the job learns why.
        with suppress(Exception):
            while not over.wait(ASK_SECONDS):
                self._advance(self._done + int(partitions * self._share(group)), self._total)

    def _share(self, group: str) -> float:
        """Return which part of the tasks of the newest stage is finished."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(max(job.stageIds)) for job in jobs if job is not None and len(job.stageIds)]
        newest = max((stage for stage in stages if stage is not None), key=lambda stage: stage.stageId, default=None)
        if newest is None or not newest.numTasks:
            return 0.0
        return float(newest.numCompletedTasks / newest.numTasks)


# Less is not worth a task and its connections, or the second task of a core, in offsets of both logs.
LEAST_PER_TASK, LEAST_PER_SECOND_TASK = 100_000, 500_000
TASKS_PER_CORE = 2
# Each has up to four connections to the brokers.
MOST_TASKS = 128
# What a partition that is not compared costs, in the same measure.
PER_GUARDED = 1_000
# What a task needs beside the settings.
TASK_OWN_BYTES = 64 * 1024
NOTHING = FetchEstimate(0, 0, 0, 0, 0, 0)


def task_count(width: int, cores: int) -> int:
    """Return how many tasks share a job of this width, in offsets of both logs."""
    one_each = min(cores, 1 + width // LEAST_PER_TASK)
    return min(MOST_TASKS, max(one_each, min(TASKS_PER_CORE * cores, width // LEAST_PER_SECOND_TASK)))


class SparkComparer:
    """Compares records with tasks of Spark.

    `chains` gives the offset syncs that were read, or what gives a partition's chain; `open_readers` travels to the
    tasks and opens the readers there.
    """

    def __init__(self, session: Session, chains: Callable[[], Syncs | SyncPairsOf], open_readers: OpenReaders) -> None:
        self._session = session
        self._chains = chains
        self._open_readers = open_readers

    @property
    def _spark(self) -> "SparkSession":
        return self._session()

    def compare(
        self, works: Collection[Work], limits: Limits, listener: Listener, failback: bool = False
    ) -> Comparison:
        """Place the commits of every work; raises `ClusterError` if a cluster, or Spark, does not answer."""
        if not works:
            listener.expects(NOTHING)
            return Comparison({}, {}, NOTHING, 0, 0)
        ship_package(self._spark)
        by_place = {work.source: work for work in works}
        questions = self._questions(works, failback, limits.match_records)
        try:
            return self._compare(questions, by_place, limits, listener)
        finally:
            questions.close()

    def _compare(
        self, questions: Questions, works: Mapping[TopicPartition, Work], limits: Limits, listener: Listener
    ) -> Comparison:
        limit = limits.match_records
        with _spark_errors():
            costs = questions.costs(limits.by_timestamp)
        calibrations = self._calibrate(works, costs)
        equalities = {topic: calibration.equality for topic, calibration in calibrations.items()}
        usable = self._usable(works, costs, equalities, limits)
        sizes = {
            topic: (calibration.source_size, calibration.target_size) for topic, calibration in calibrations.items()
        }
        comparable = [cost for cost in costs if cost.source.topic in usable]
        width = sum(cost.width for cost in comparable)
        plan = plan_fetch(comparable, sizes, limits, self._tasks(width))
        listener.expects(plan.estimate)

        unusable = WhyUnmatched.TIMESTAMPS_NOT_KEPT if limits.by_timestamp else WhyUnmatched.RECORDS_CHANGED
        places = {
            WhyUnmatched.NO_MATCH: [] if limit else list(works),
            unusable: [p for p in works if limit and p.topic not in usable],
            WhyUnmatched.MATCH_LIMIT: list(plan.left_out),
        }
        # Where no equality holds, no sync is proven: what is asked under any of them is the guard.
        asked_under = {topic: equality or Equality.TIME_AND_KEY for topic, equality in equalities.items()}
        jobs = [_Job(by_timestamp if limits.by_timestamp else matching, plan.task_of)] + [
            _Job(partial(guarding, reason=reason, is_bounded=reason is WhyUnmatched.MATCH_LIMIT), self._spread(guarded))
            for reason, guarded in places.items()
        ]
        answers: dict[TopicPartition, PartitionAnswer] = {}
        source_bytes = target_bytes = 0
        progress = JobProgress(self._spark, listener.advance, len(works))
        for job in jobs:
            if not job.task_of:
                continue
            with progress.of(len(job.task_of)):
                outcomes = self._run(questions, asked_under, job)
            for outcome in outcomes:
                if isinstance(outcome, Fetched):
                    source_bytes += outcome.source_bytes
                    target_bytes += outcome.target_bytes
                else:
                    place, answer = outcome
                    answers[place] = answer
        lacking = works.keys() - answers.keys()
        assert not lacking, f"no answer for {len(lacking)} partitions"
        return Comparison(answers, equalities, plan.estimate, source_bytes, target_bytes)

    def _tasks(self, width: int) -> int:
        return task_count(width, self._spark.sparkContext.defaultParallelism)

    def _spread(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        tasks = self._tasks(len(places) * PER_GUARDED)
        return {place: number % tasks for number, place in enumerate(sorted(places))}

    def _questions(self, works: Collection[Work], failback: bool, match_limit: int) -> Questions:
        chains = self._chains()
        if isinstance(chains, Syncs):
            return SpreadQuestions(self._spark, works, chains, failback, match_limit)
        return HeldQuestions(self._spark, works, chains, failback, match_limit)

    def _usable(
        self,
        works: Mapping[TopicPartition, Work],
        costs: Collection[Cost],
        equalities: Mapping[str, Equality | None],
        limits: Limits,
    ) -> frozenset[str]:
        """Return the topics whose commits can be placed by comparing records, or by their timestamps."""
        if not limits.match_records:
            return frozenset()
        if not limits.by_timestamp:
            return frozenset(topic for topic, equality in equalities.items() if equality is not None)
        timed = [cost for cost in costs if works[cost.source].may_keep_timestamps]
        return frozenset(self._ask(topics_with_kept_timestamps, works, timed)) if timed else frozenset()

    def _calibrate(self, works: Mapping[TopicPartition, Work], costs: Collection[Cost]) -> dict[str, Calibration]:
        calibrations: list[Calibration] = self._ask(calibrate_topics, works, costs)
        return {calibration.topic: calibration for calibration in calibrations}

    def _ask(
        self, of_topics: "Callable[..., Iterator[Any]]", works: Mapping[TopicPartition, Work], costs: Collection[Cost]
    ) -> list[Any]:
        """Ask something about each topic, on the partitions that have most syncs."""
        topics = topic_questions((works[cost.source], cost.newest) for cost in costs)
        tasks = min(len(topics), self._spark.sparkContext.defaultParallelism)
        task = partial(of_topics, self._open_readers)
        _stays_in_memory(self._spark, task)
        return _collected(self._spark.sparkContext.parallelize(topics, tasks).mapPartitions(task))

    def _run(
        self, questions: Questions, equalities: Mapping[str, Equality], job: "_Job"
    ) -> list[tuple[TopicPartition, PartitionAnswer] | Fetched]:
        task = partial(match_partitions, self._open_readers, match=job.match)
        _stays_in_memory(self._spark, task)
        assigned = {place: (number, equalities[place.topic]) for place, number in job.task_of.items()}
        with questions.by_task(assigned) as by_task:
            return _collected(by_task.mapPartitions(task))


@dataclass(frozen=True)
class _Job:
    """How partitions are answered, and which task takes which."""

    match: Matching
    task_of: Mapping[TopicPartition, int]


def _stays_in_memory(spark: "SparkSession", task: object) -> None:
    """Raise `EnvironmentLacks` if a task is so large that PySpark would write it to a file, secrets and all."""
    from pyspark.serializers import CloudPickleSerializer

    context: Any = spark.sparkContext
    size = len(CloudPickleSerializer().dumps(task)) + TASK_OWN_BYTES
    most: int = context._jvm.PythonUtils.getBroadcastThreshold(context._jsc)
    if size > most:
        raise EnvironmentLacks(
            f"The security settings of both clusters take {bytes_text(size)}: Spark would write them to a file, with "
            f"the passwords, as it does with all that goes to its tasks and is larger than {bytes_text(most)}.",
            "Name truststores with fewer certificates, or allow more in memory: "
            f"--spark-conf spark.broadcast.UDFCompressionThreshold={4 * size}",
        )


def _collected(results: "RDD[Any]") -> list[Any]:
    """Run a job; a task that failed, and what Spark raises, become one paragraph."""
    with _spark_errors():
        outcomes = results.collect()
    for outcome in outcomes:
        if isinstance(outcome, MigrateError):
            raise outcome
    return list(outcomes)


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Make one paragraph of what Spark raises."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise ClusterError(
            f"Spark could not compare records: {last_line(error)}.",
            f"Spark's own log is {log_file()}. Executors need the same Python as this machine, with "
            "confluent-kafka: pip install 'confluent-kafka>=2.14.2'.",
        ) from error

"""The tasks of a comparison spread over Spark: behind `migrate.match.compare.TaskRunner`.

What comes back to the driver are small values; no record and no list of fingerprints. How far a job is, the driver asks
for while it runs. Where syncs are many, they stay in Spark, and the works meet them there.

The clusters' settings, with their secrets, travel inside the tasks. PySpark writes a large task to a file, so whatever
grows with the number of topics travels as data, apart from them.
"""

import json
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from migrate.errors import ClusterError, EnvironmentLacks, MigrateError
from migrate.match.compare import Assigned, Cost, HeldQuestions, Questions, Share, cost_of
from migrate.match.protocol import ChainOf, Limits, PartitionQuestion, Work
from migrate.match.task import Answer, Asked, Fetched, OpenReaders, Task, answers_or_error
from migrate.mm2.wire import encode_sync_key
from migrate.model import LogRange, TopicPartition
from migrate.spark.background import Session
from migrate.spark.dataframes import into_spark
from migrate.spark.executors import ship_package
from migrate.spark.java_errors import last_line
from migrate.spark.machine import log_file
from migrate.spark.syncs import Syncs
from migrate.text import bytes_text

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

ASK_SECONDS = 1.0
# What a task needs beside the settings.
TASK_OWN_BYTES = 64 * 1024


class SparkTasks:
    """Runs tasks in Spark.

    `chains` gives the offset syncs that were read, or what gives a partition's chain; `open_readers` travels to the
    tasks and opens the readers there.
    """

    def __init__(self, session: Session, chains: Callable[[], Syncs | ChainOf], open_readers: OpenReaders) -> None:
        self._session = session
        self._chains = chains
        self._open_readers = open_readers

    @property
    def _context(self) -> "SparkContext":
        return self._session().sparkContext

    @property
    def cores(self) -> int:
        """How many tasks run at the same time, on all executors."""
        cores: int = self._context.defaultParallelism
        return cores

    @contextmanager
    def questions(self, works: Collection[Work], limits: Limits) -> Iterator[Questions]:
        """Yield the questions about these works."""
        spark, chains = self._session(), self._chains()
        ship_package(spark)
        if not isinstance(chains, Syncs):
            yield HeldQuestions(self, works, chains, limits)
            return
        spread = SpreadQuestions(self, spark, works, chains, limits)
        try:
            yield spread
        finally:
            spread.close()

    def run(
        self, task: Task[Asked, Answer], lists: Sequence[Sequence[Asked]], share: Share | None = None
    ) -> list[Answer | Fetched]:
        """Run one task over each list: a job."""
        return self.run_over(self._context.parallelize(lists, len(lists)).flatMap(list), task, share)

    def run_over(self, asked: "RDD[Asked]", task: Task[Asked, Answer], share: Share | None) -> list[Answer | Fetched]:
        """Run one task over each of Spark's partitions; what ends one, and what Spark raises, is one paragraph."""
        ours = partial(answers_or_error, self._open_readers, task)
        _stays_in_memory(self._context, ours)
        with _spark_errors(), _watched(self._context, share) if share else nullcontext():
            answers: list[Any] = asked.mapPartitions(ours).collect()
        for answer in answers:
            if isinstance(answer, MigrateError):
                raise answer
        return answers


class SpreadQuestions:
    """Questions whose chains stay in Spark, where the works meet them."""

    def __init__(
        self,
        runner: SparkTasks,
        spark: "SparkSession",
        works: Collection[Work],
        syncs: Syncs,
        limits: Limits,
    ) -> None:
        from pyspark.storagelevel import StorageLevel

        self._runner = runner
        self._context = spark.sparkContext
        self._question_of = partial(question_of, limits=limits)
        self._joined = _joined(spark, list(works), syncs).persist(StorageLevel.MEMORY_AND_DISK)

    def costs(self) -> list[Cost]:
        """Return what each will read: a job."""
        question_of = self._question_of
        with _spark_errors():
            return list(self._joined.rdd.map(lambda row: cost_of(question_of(row))).collect())

    def run(
        self, task: Task[PartitionQuestion, Answer], assigned: Mapping[TopicPartition, Assigned], share: Share
    ) -> list[Answer | Fetched]:
        """Shuffle the questions to their tasks."""
        places, question_of = self._context.broadcast(dict(assigned)), self._question_of

        def placed(row: Any) -> Iterator[tuple[int, tuple[tuple[Any, ...], Assigned]]]:
            if found := places.value.get(TopicPartition(*json.loads(row[0])[0])):
                # Packed: of a hundred thousand numbers in a list each is pickled, and made, by itself.
                yield found.task, ((row[0], *(array("q", column or ()) for column in row[1:])), found)

        def given(each: tuple[int, tuple[tuple[Any, ...], Assigned]]) -> PartitionQuestion:
            row, found = each[1]
            return found.given_to(question_of(row))

        tasks = 1 + max(each.task for each in assigned.values())
        try:
            shuffled = self._joined.rdd.flatMap(placed).partitionBy(tasks, int).map(given)
            return self._runner.run_over(shuffled, task, share)
        finally:
            places.destroy()

    def close(self) -> None:
        """Let Spark forget them."""
        self._joined.unpersist()


def question_of(row: Any, limits: Limits) -> PartitionQuestion:
    """Return the question of a row of works and chains."""
    source, target, source_log, target_log, committed, *rest = json.loads(row[0])
    places = TopicPartition(*source), TopicPartition(*target)
    work = Work(*places, LogRange(*source_log), LogRange(*target_log), tuple(committed), *rest)
    return PartitionQuestion.of(work, tuple(zip(row[1] or (), row[2] or (), strict=True)), limits)


def _joined(spark: "SparkSession", works: list[Work], syncs: Syncs) -> "DataFrame":
    """Return one row per work: `doc`, the work as JSON, and `sources` and `targets`, the offsets of its chain."""
    keys = (encode_sync_key(*work.original).hex() for work in works)
    rows = (
        (key, _document(work), work.source_log.end, work.target_log.end) for key, work in zip(keys, works, strict=True)
    )
    asked = into_spark(spark, rows, "hex string, doc string, source_end bigint, target_end bigint")
    asked = asked.selectExpr("unhex(hex) as key", "doc", "source_end", "target_end")
    chains = syncs.chains(asked.select("key", "source_end", "target_end"))
    return asked.join(chains, "key", "left").selectExpr(
        "doc", "sync_pairs.source_offset as sources", "sync_pairs.target_offset as targets"
    )


def _document(work: Work) -> str:
    """Return a work as `question_of` reads it: its fields in their order, the source partition first."""
    logs = ((log.start, log.end) for log in (work.source_log, work.target_log))
    return json.dumps(
        (
            work.source, work.target, *logs, work.source_committed, work.has_open_transaction,
            work.last_copied_offset, work.compacted, work.source_has_copies,
        )
    )  # fmt: skip


@contextmanager
def _watched(context: "SparkContext", share: Share) -> Iterator[None]:
    """Tell which part of the tasks of the job inside is done, once in a while, from a thread of its own."""
    group, over = f"mm2-migrate-{uuid4().hex}", Event()

    def watch() -> None:
        # Without an answer nothing is reported: whoever waits for the job learns why.
        with suppress(Exception):
            while not over.wait(ASK_SECONDS):
                share(_share(context, group))

    context.setJobGroup(group, "comparing records")
    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        context._jsc.clearJobGroup()


def _share(context: "SparkContext", group: str) -> float:
    """Return which part of the tasks of the newest stage is finished."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(max(job.stageIds)) for job in jobs if job is not None and len(job.stageIds)]
    newest = max((stage for stage in stages if stage is not None), key=lambda stage: stage.stageId, default=None)
    if newest is None or not newest.numTasks:
        return 0.0
    return float(newest.numCompletedTasks / newest.numTasks)


def _stays_in_memory(context: "SparkContext", task: object) -> None:
    """Raise `EnvironmentLacks` if a task is so large that PySpark would write it to a file, secrets and all."""
    from pyspark.serializers import CloudPickleSerializer

    jvm: Any = context._jvm
    size = len(CloudPickleSerializer().dumps(task)) + TASK_OWN_BYTES
    most: int = jvm.PythonUtils.getBroadcastThreshold(context._jsc)
    if size > most:
        raise EnvironmentLacks(
            f"The security settings of both clusters take {bytes_text(size)}: Spark would write them to a file, with "
            f"the passwords, as it does with all that goes to its tasks and is larger than {bytes_text(most)}.",
            "Name truststores with fewer certificates, or allow more in memory: "
            f"--spark-conf spark.broadcast.UDFCompressionThreshold={4 * size}",
        )


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

"""How far a Spark job is, told while it runs: the driver asks for the tasks that are done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_SECONDS = 1.0


class JobProgress:
    """Tells of jobs that follow each other how many of their partitions are done, as far as finished tasks tell.

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
        # Without an answer nothing is told: whoever waits for the job learns why.
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

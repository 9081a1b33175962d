"""The questions about all partitions, from works and their chains: held here, or, where syncs are many, in Spark."""

import json
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from migrate.match.calibration import ANCHORS
from migrate.match.equality import Equality
from migrate.match.fetch_plan import Cost, cost_by_timestamp, cost_of
from migrate.match.matcher import matching
from migrate.match.pair_table import PairTable
from migrate.match.protocol import OffsetPair, PartitionQuestion, Work
from migrate.mm2.wire import encode_sync_key
from migrate.model import LogRange, TopicPartition
from migrate.spark.dataframes import into_spark
from migrate.spark.syncs import Syncs

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

SyncPairsOf = Callable[[TopicPartition, int, int], tuple[OffsetPair, ...]]
"""Gives the chain of a partition, by its name on MM2's source and the ends of the plan's two logs."""

Assigned = Mapping[TopicPartition, tuple[int, Equality]]
"""By place: which task matches it, and what records must agree in."""


def no_chain(place: TopicPartition, source_end: int, target_end: int) -> tuple[OffsetPair, ...]:
    """Return the chain of any partition where there are no syncs."""
    return ()


class Questions(Protocol):
    """The question of each partition, before it is known how its records are compared."""

    def costs(self, by_timestamp: bool) -> list[Cost]:
        """Return what each will read, with Law 2b or by comparing; no record is read for it."""

    def by_task(self, assigned: Assigned) -> "AbstractContextManager[RDD[PartitionQuestion]]":
        """Give the questions of the assigned places to their tasks."""

    def close(self) -> None:
        """Let go of them."""


class HeldQuestions:
    """Questions whose chains are held in this process: no query, and no shuffle."""

    def __init__(
        self, spark: "SparkSession", works: Collection[Work], chain_of: SyncPairsOf, failback: bool, match_limit: int
    ) -> None:
        self._spark = spark
        self._questions = {
            work.source: _question(
                work, chain_of(_on_mm2s_source(work, failback), work.source_log.end, work.target_log.end),
                failback, match_limit,
            )
            for work in works
        }  # fmt: skip

    def costs(self, by_timestamp: bool) -> list[Cost]:
        """Return what each will read."""
        return [_cost(question, by_timestamp) for question in self._questions.values()]

    @contextmanager
    def by_task(self, assigned: Assigned) -> "Iterator[RDD[PartitionQuestion]]":
        """Give each task its list."""
        tasks: list[list[PartitionQuestion]] = [[] for _ in range(1 + max(task for task, _ in assigned.values()))]
        for place, (task, equality) in assigned.items():
            tasks[task].append(replace(self._questions[place], equality=equality))
        yield self._spark.sparkContext.parallelize(tasks, len(tasks)).flatMap(list)

    def close(self) -> None:
        """Nothing is kept anywhere else."""


class SpreadQuestions:
    """Questions whose chains stay in Spark, where the works meet them."""

    def __init__(
        self, spark: "SparkSession", works: Collection[Work], syncs: Syncs, failback: bool, match_limit: int
    ) -> None:
        from pyspark.storagelevel import StorageLevel

        self._spark = spark
        self._match_limit = match_limit
        self._joined = _joined(spark, list(works), syncs, failback).persist(StorageLevel.MEMORY_AND_DISK)

    def costs(self, by_timestamp: bool) -> list[Cost]:
        """Return what each will read: a job."""
        limit = self._match_limit
        costs = self._joined.rdd.map(lambda row: _cost(question_of(row, Equality.ALL, limit), by_timestamp))
        return list(costs.collect())

    @contextmanager
    def by_task(self, assigned: Assigned) -> "Iterator[RDD[PartitionQuestion]]":
        """Shuffle the questions to their tasks."""
        places, limit = self._spark.sparkContext.broadcast(dict(assigned)), self._match_limit

        def placed(row: Any) -> Iterator[tuple[int, tuple[tuple[Any, ...], Equality]]]:
            if found := places.value.get(TopicPartition(*json.loads(row[0])["places"][0])):
                task, equality = found
                # Packed: of a hundred thousand numbers in a list each is pickled, and made, by itself.
                yield task, ((row[0], *(array("q", column or ()) for column in row[1:])), equality)

        tasks = 1 + max(task for task, _ in assigned.values())
        try:
            yield (
                self._joined.rdd.flatMap(placed)
                .partitionBy(tasks, int)
                .map(lambda each: question_of(each[1][0], each[1][1], limit))
            )
        finally:
            places.destroy()

    def close(self) -> None:
        """Let Spark forget them."""
        self._joined.unpersist()


def question_of(row: Any, equality: Equality, match_limit: int) -> PartitionQuestion:
    """Return the question of a row of works and chains."""
    document = json.loads(row[0])
    (source, target), (source_log, target_log) = document["places"], document["logs"]
    work = Work(
        TopicPartition(*source),
        TopicPartition(*target),
        LogRange(*source_log),
        LogRange(*target_log),
        tuple(document["committed"]),
        has_open_transaction=document["open"],
        last_copied_offset=document["last_copied_offset"],
        compacted=document["compacted"],
    )
    sync_pairs = PairTable(row[1] or (), row[2] or ())
    return replace(_question(work, sync_pairs, document["failback"], match_limit), equality=equality)


def _question(work: Work, sync_pairs: Sequence[OffsetPair], failback: bool, match_limit: int) -> PartitionQuestion:
    return PartitionQuestion(
        source=work.source,
        target=work.target,
        source_log=work.source_log,
        target_log=work.target_log,
        sync_pairs=sync_pairs,
        source_committed=tuple(sorted(set(work.source_committed))),
        equality=Equality.ALL,
        has_open_transaction=work.has_open_transaction,
        last_copied_offset=work.last_copied_offset,
        match_limit=match_limit,
        failback=failback,
        compacted=work.compacted,
    )


def _cost(question: PartitionQuestion, by_timestamp: bool) -> Cost:
    if by_timestamp:
        return cost_by_timestamp(question, ANCHORS)
    # What is asked for first does not depend on how records are compared.
    return cost_of(question, matching, ANCHORS)


def _on_mm2s_source(work: Work, failback: bool) -> TopicPartition:
    return work.target if failback else work.source


def _joined(spark: "SparkSession", works: list[Work], syncs: Syncs, failback: bool) -> "DataFrame":
    """Return one row per work: `doc`, the work as JSON, and `sources` and `targets`, the offsets of its chain."""
    keys = (encode_sync_key(*_on_mm2s_source(work, failback)).hex() for work in works)
    rows = (
        (key, _document(work, failback), work.source_log.end, work.target_log.end)
        for key, work in zip(keys, works, strict=True)
    )
    asked = into_spark(spark, rows, "hex string, doc string, source_end bigint, target_end bigint")
    asked = asked.selectExpr("unhex(hex) as key", "doc", "source_end", "target_end")
    chains = syncs.chains(asked.select("key", "source_end", "target_end"))
    return asked.join(chains, "key", "left").selectExpr(
        "doc", "sync_pairs.source_offset as sources", "sync_pairs.target_offset as targets"
    )


def _document(work: Work, failback: bool) -> str:
    return json.dumps(
        {
            "places": (work.source, work.target),
            "logs": [(log.start, log.end) for log in (work.source_log, work.target_log)],
            "committed": sorted(set(work.source_committed)),
            "open": work.has_open_transaction,
            "last_copied_offset": work.last_copied_offset,
            "failback": failback,
            "compacted": work.compacted,
        }
    )

"""Checks whose subject is a holder of positions outside Kafka: a Spark query, a Flink job, a table of offsets."""

from collections.abc import Iterable

from migrate.checks import registry as checks
from migrate.checks.check import CheckFacts, judges
from migrate.model import CheckResult, Decision, Grade, Level
from migrate.row_table import PlanRows
from migrate.survey.policies import Policies
from migrate.text import many, some


@judges(checks.SPARK_BATCH_OPEN)
def spark_batch_open(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block Spark queries that have begun a batch and not finished it: part of it may be written already."""
    for holder, batch in sorted(facts.positions.open_batches.items()):
        yield checks.SPARK_BATCH_OPEN.blocks(
            holder, "a query that was stopped between two batches",
            f"batch {batch.begun} was begun and not finished: its rows stand where batch {batch.finished} ended",
            f"Start the query once more on {facts.source.alias}, let it finish that batch, stop it and plan again; or "
            "waive with --accept spark-batch-open:HOLDER and start it with a new checkpoint: what that batch has "
            "already written is written twice, unless the sink undoes it.",
        )  # fmt: skip
    fine = facts.positions.of_spark - facts.positions.open_batches.keys()
    if fine:
        yield checks.SPARK_BATCH_OPEN.passes(many(len(fine), "query"), "the last batch begun finished", "it is")


@judges(checks.STATE_WOULD_COUNT_TWICE)
def state_would_count_twice(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block holders that keep a state and may read a record twice: sums and counts would take it twice."""
    fine = 0
    for holder in sorted(facts.positions.stateful & rows.groups().keys()):
        table = rows.groups()[holder]
        facts_of_rows = table.values("decision", "grade", "rereads_at_most", "source_topic", "partition")
        inexact = [
            f"{topic}-{partition}"
            for decision, grade, at_most, topic, partition in facts_of_rows
            if decision is not Decision.SKIP and (grade is not Grade.EXACT or at_most != 0)
        ]
        if not inexact:
            fine += 1
            continue
        yield checks.STATE_WOULD_COUNT_TWICE.blocks(
            holder, "exact positions with nothing read twice, for a holder that keeps a state",
            f"{many(len(inexact), 'position')} may read records twice: {some(inexact, 5)}",
            "Build the state anew from the beginning of the topics, or waive with --accept "
            "state-would-count-twice:HOLDER if what it counts may be too high.",
        )  # fmt: skip
    if fine:
        yield checks.STATE_WOULD_COUNT_TWICE.passes(
            many(fine, "holder"), "exact positions with nothing read twice", "they are"
        )


@judges(checks.SINK_REMEMBERS_BATCHES)
def sink_remembers_batches(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block queries whose sink knows batch numbers: a new checkpoint begins at batch 0, and the sink drops those."""
    expected = "a sink that takes batches by numbers it has had before"
    way_out = (
        "Continue with a new output folder, or with `positions --format spark-checkpoint`, which goes on with the "
        "batch number"
    )
    for holder, remembers in sorted(facts.positions.sinks.items()):
        if remembers:
            yield checks.SINK_REMEMBERS_BATCHES.blocks(
                holder, expected,
                "it keeps Spark's log of batches (_spark_metadata): the first batches of a new checkpoint would be "
                "dropped in silence",
                f"{way_out}; then waive with --accept sink-remembers-batches:HOLDER.",
            )  # fmt: skip
    for holder in sorted(facts.positions.of_spark - facts.positions.sinks.keys()):
        yield checks.SINK_REMEMBERS_BATCHES.unseen(
            Level.WARN, holder, expected,
            "where the query writes to was not given: a file sink, or a foreachBatch that skips batch numbers which it "
            "has had, drops the first batches of a new checkpoint in silence",
            f"Name the folder with --sink HOLDER=URL. {way_out}.",
        )  # fmt: skip
    fine = sum(not remembers for remembers in facts.positions.sinks.values())
    if fine:
        yield checks.SINK_REMEMBERS_BATCHES.passes(
            many(fine, "holder"), expected, "no log of batches in the folder that was named"
        )


@judges(checks.POSITION_MOVES)
def position_moves(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block holders whose position was another at the second look: they still run."""
    expected = "the same position at two looks"
    for holder, seen in sorted(facts.positions.moved.items()):
        yield checks.POSITION_MOVES.blocks(
            holder, expected, seen, "Stop the job and plan again; or waive with --accept position-moves:HOLDER."
        )
    fine = rows.groups().keys() - facts.positions.moved.keys()
    if queries := fine & facts.positions.of_spark:
        yield checks.POSITION_MOVES.passes(many(len(queries), "query"), expected, "it is")
    if jobs := fine - facts.positions.of_spark:
        yield checks.POSITION_MOVES.unseen(
            Level.PASS, many(len(jobs), "holder"), expected,
            "the file was the same; whether the job itself still runs cannot be seen",
            "Stop each job before its positions are exported.",
        )  # fmt: skip


@judges(checks.POSITIONS_DIFFER)
def positions_differ(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Block holders whose name a group has that committed something else: one of the two is not where the job is."""
    for holder, places in sorted(facts.positions.differing.items()):
        yield checks.POSITIONS_DIFFER.blocks(
            holder, "the same positions as the commits of the group of that name", some(places, 5),
            "A job that keeps a state goes on from its own position (Flink: its savepoint). Find out which of the two "
            "counts, then waive with --accept positions-differ:HOLDER, or give the holder another name.",
        )  # fmt: skip


@judges(checks.HOLDER_PARTITIONS)
def holder_partitions(facts: CheckFacts, rows: PlanRows, policies: Policies) -> Iterable[CheckResult]:
    """Name partitions of a holder's topics that it has no position for."""
    for holder, places in sorted(facts.positions.missing.items()):
        yield checks.HOLDER_PARTITIONS.warns(
            holder, "a position on every partition of its topics", f"none on {some(places, 5)}",
            "Spark reads a partition that it does not know from its beginning; another reader starts where its own "
            "settings say.",
        )  # fmt: skip

"""Checks whose subject is a holder of positions outside Kafka: a Spark query, a Flink job, a table of offsets."""

from collections.abc import Iterable

from migrate.checks.check import check
from migrate.commit_table import CommitTable
from migrate.model import CheckResult, Commits, Decision, Grade, HolderKind, Level, Scope
from migrate.row_table import PlanRows
from migrate.survey.positions import HeldPositions, partitions_without
from migrate.survey.survey import Survey
from migrate.text import many, some


def _queries(held: HeldPositions) -> frozenset[str]:
    """Return the holders that are Spark queries."""
    return frozenset(holder for holder, kind in held.kinds.items() if kind is HolderKind.SPARK_CHECKPOINT)


@check("spark-batch-open", Scope.HOLDER, can_be_accepted=True)
def spark_batch_open(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block Spark queries that have begun a batch and not finished it: part of it may be written already."""
    unfinished = {
        read.holder: (read.open_batch, read.batch)
        for read in survey.held.reads
        if read.open_batch is not None and read.batch is not None
    }
    for holder, (begun, finished) in sorted(unfinished.items()):
        yield spark_batch_open.blocks(
            holder, "a query that was stopped between two batches",
            f"batch {begun} was begun and not finished: its rows stand where batch {finished} ended",
            f"Start the query once more on {survey.flow.source.alias}, let it finish that batch, stop it and plan "
            "again; or waive with --accept spark-batch-open:HOLDER and start it with a new checkpoint: what that batch "
            "has already written is written twice, unless the sink undoes it.",
        )  # fmt: skip
    if fine := _queries(survey.held) - unfinished.keys():
        yield spark_batch_open.passes(many(len(fine), "query"), "the last batch begun finished", "it is")


@check("state-would-count-twice", Scope.HOLDER, can_be_accepted=True, needs_records=True)
def state_would_count_twice(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders that keep a state and may read a record twice: sums and counts would take it twice."""
    expected, fine = "exact positions with nothing read twice", 0
    for holder in sorted(survey.held.stateful & rows.groups().keys()):
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
        yield state_would_count_twice.blocks(
            holder, f"{expected}, for a holder that keeps a state",
            f"{many(len(inexact), 'position')} may read records twice: {some(inexact, 5)}",
            "Build the state anew from the beginning of the topics, or waive with --accept "
            "state-would-count-twice:HOLDER if what it counts may be too high.",
        )  # fmt: skip
    if fine:
        yield state_would_count_twice.passes(many(fine, "holder"), expected, "they are")


@check("sink-remembers-batches", Scope.HOLDER, can_be_accepted=True)
def sink_remembers_batches(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block queries whose sink knows batch numbers: a new checkpoint begins at batch 0, and the sink drops those."""
    sinks = survey.held.sinks
    expected = "a sink that takes batches by numbers it has had before"
    way_out = (
        "Continue with a new output folder, or with `positions --format spark-checkpoint`, which goes on with the "
        "batch number"
    )
    for holder, remembers in sorted(sinks.items()):
        if remembers:
            yield sink_remembers_batches.blocks(
                holder, expected,
                "it keeps Spark's log of batches (_spark_metadata): the first batches of a new checkpoint would be "
                "dropped in silence",
                f"{way_out}; then waive with --accept sink-remembers-batches:HOLDER.",
            )  # fmt: skip
    for holder in sorted(_queries(survey.held) - sinks.keys()):
        yield sink_remembers_batches.unseen(
            Level.WARN, holder, expected,
            "where the query writes to was not given: a file sink, or a foreachBatch that skips batch numbers which it "
            "has had, drops the first batches of a new checkpoint in silence",
            f"Name the folder with --sink HOLDER=URL. {way_out}.",
        )  # fmt: skip
    fine = sum(not remembers for remembers in sinks.values())
    if fine:
        yield sink_remembers_batches.passes(
            many(fine, "holder"), expected, "no log of batches in the folder that was named"
        )


@check("position-moves", Scope.HOLDER, can_be_accepted=True)
def position_moves(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders whose position was another at the second look: they still run."""
    expected, moved = "the same position at two looks", _moved(survey.held)
    for holder, seen in sorted(moved.items()):
        yield position_moves.blocks(
            holder, expected, seen, "Stop the job and plan again; or waive with --accept position-moves:HOLDER."
        )
    fine, of_spark = rows.groups().keys() - moved.keys(), _queries(survey.held)
    if queries := fine & of_spark:
        yield position_moves.passes(many(len(queries), "query"), expected, "it is")
    if jobs := fine - of_spark:
        yield position_moves.unseen(
            Level.PASS, many(len(jobs), "holder"), expected,
            "the file was the same; whether the job itself still runs cannot be seen",
            "Stop each job before its positions are exported.",
        )  # fmt: skip


def _moved(held: HeldPositions) -> dict[str, str]:
    """Return, by holder, where a second look found something else, or why there was none."""
    moved: dict[str, str] = {}
    for read in held.reads:
        if read.origin in held.moved:
            why = f"a second look failed: {held.unread}" if held.unread else "it had changed at a second look"
            moved |= dict.fromkeys((position.holder for position in read.positions), f"{read.origin}: {why}")
    return moved


@check("positions-differ", Scope.HOLDER, can_be_accepted=True)
def positions_differ(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders whose name a group has that committed something else: one of the two is not where the job is."""
    selected = survey.selected
    # Filters choose which groups move; what a holder is compared with is there all the same.
    live = selected.unfiltered if selected.as_of is None else selected.live
    for holder, table in sorted(survey.held.commits.groups().items()):
        commits = live.get(holder)
        if commits is not None and (places := _differences(table, commits)):
            yield positions_differ.blocks(
                holder, "the same positions as the commits of the group of that name", some(places, 5),
                "A job that keeps a state goes on from its own position (Flink: its savepoint). Find out which of the "
                "two counts, then waive with --accept positions-differ:HOLDER, or give the holder another name.",
            )  # fmt: skip


def _differences(positions: CommitTable, commits: Commits) -> list[str]:
    places = []
    for place, position in positions.items():
        commit = commits.get(place)
        if commit is None or commit.offset != position.offset:
            has = "nothing" if commit is None else str(commit.offset)
            places.append(f"{place}: {position.offset}, the group has {has}")
    return places


@check("holder-partitions", Scope.HOLDER)
def holder_partitions(survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name partitions of a holder's topics that it has no position for."""
    missing = partitions_without(survey.held.commits, survey.source.topics)
    for holder, places in sorted(missing.items()):
        yield holder_partitions.warns(
            holder, "a position on every partition of its topics", f"none on {some(places, 5)}",
            "Spark reads a partition that it does not know from its beginning; another reader starts where its own "
            "settings say.",
        )  # fmt: skip

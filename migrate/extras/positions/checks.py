"""Checks whose subject is a holder of positions: a Spark query, a Flink job, a table of offsets. Pure.

Beside them run those of the core that judge clusters, topics and rows: `judged` runs all.
"""

from collections.abc import Callable, Iterable
from typing import cast

from migrate.checks import checklist
from migrate.checks.check import Check, Judge, check
from migrate.commit_table import CommitTable
from migrate.extras.positions.held import HeldPositions, HolderKind
from migrate.model import CheckResult, Commits, Decision, Failure, Grade, Level, Scope, TopicPartition
from migrate.row_table import PlanRows
from migrate.survey.survey import Survey
from migrate.text import many, some

# Of the core's checks that are not on groups, those that speak of groups or of connectors all the same.
_OF_OTHERS = frozenset({"checkpointed-groups-listed", "two-looks", "connect-internal-topics", "vendor-groups"})
JudgeOfHolders = Callable[[HeldPositions, Survey, PlanRows], Iterable[CheckResult]]


def _check(name: str, can_be_accepted: bool | None = None) -> Callable[[JudgeOfHolders], Check]:
    """Make a check on holders, whose function takes what they keep as well; in their rows the holder is the group."""
    return lambda judge: check(name, Scope.GROUP, can_be_accepted=can_be_accepted)(cast(Judge, judge))


def judged(held: HeldPositions, survey: Survey, rows: PlanRows) -> tuple[CheckResult, ...]:
    """Return what all checks say of the holders' rows, what was waived as accepted warnings."""
    own = (cast(JudgeOfHolders, check.judge)(held, survey, rows) for check in OF_HOLDERS)
    policies = survey.request.policies
    return (
        *checklist.run(survey, rows, OF_ROWS),
        *(checklist.waived(result, policies) for results in own for result in results),
    )


def _queries(held: HeldPositions) -> frozenset[str]:
    """Return the holders that are Spark queries."""
    return frozenset(holder for holder, kind in held.kinds.items() if kind is HolderKind.SPARK_CHECKPOINT)


@_check("spark-batch-open", can_be_accepted=True)
def spark_batch_open(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block Spark queries that have begun a batch and not finished it: part of it may be written already."""
    unfinished = {
        read.holder: (read.open_batch, read.batch)
        for read in held.reads
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
    if fine := _queries(held) - unfinished.keys():
        yield spark_batch_open.passes(many(len(fine), "query"), "the last batch begun finished", "it is")


@_check("state-would-count-twice", can_be_accepted=True)
def state_would_count_twice(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders that keep a state and may read a record twice: sums and counts would take it twice."""
    expected, fine = "exact positions with nothing read twice", 0
    for holder in sorted(held.stateful & rows.groups().keys()):
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


@_check("sink-remembers-batches", can_be_accepted=True)
def sink_remembers_batches(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block queries whose sink knows batch numbers: a new checkpoint begins at batch 0, and the sink drops those."""
    sinks = held.sinks
    expected = "a sink that takes batches by numbers it has had before"
    way_out = (
        "Continue with a new output folder, or with `positions print --format spark-checkpoint`, which goes on with "
        "the batch number"
    )
    for holder, remembers in sorted(sinks.items()):
        if remembers:
            yield sink_remembers_batches.blocks(
                holder, expected,
                "it keeps Spark's log of batches (_spark_metadata): the first batches of a new checkpoint would be "
                "dropped in silence",
                f"{way_out}; then waive with --accept sink-remembers-batches:HOLDER.",
            )  # fmt: skip
    for holder in sorted(_queries(held) - sinks.keys()):
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


@_check("position-moves", can_be_accepted=True)
def position_moves(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders whose position was another at the second look: they still run."""
    expected, moved = "the same position at two looks", dict[str, str]()
    for read in held.reads:
        if read.origin in held.moved:
            why = f"a second look failed: {held.unread}" if held.unread else "it had changed at a second look"
            moved |= dict.fromkeys((position.holder for position in read.positions), f"{read.origin}: {why}")
    for holder, seen in sorted(moved.items()):
        yield position_moves.blocks(
            holder, expected, seen, "Stop the job and plan again; or waive with --accept position-moves:HOLDER."
        )
    if still := rows.groups().keys() - moved.keys():
        # A query without new records leaves its folder as it is, and so does a job that exports its positions once.
        yield position_moves.unseen(
            Level.PASS, many(len(still), "holder"), expected,
            "it was the same; whether the job itself still runs cannot be seen",
            "Stop each job before its positions are read.",
        )  # fmt: skip


@_check("positions-differ", can_be_accepted=True)
def positions_differ(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Block holders whose name a group has that committed something else: one of the two is not where the job is."""
    expected = "the same positions as the commits of the group of that name"
    for holder, table in sorted(held.commits.groups().items()):
        commits = held.groups.get(holder, {})
        if isinstance(commits, Failure):
            yield positions_differ.unseen(
                Level.WARN, holder, expected, f"its commits were not read: {commits.code} ({commits.message})",
                f"Grant DESCRIBE on that group and its topics on {survey.flow.source.alias}.",
            )  # fmt: skip
        elif commits and (places := _differences(table, commits)):
            yield positions_differ.blocks(
                holder, expected, some(places, 5),
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


@_check("holder-partitions")
def holder_partitions(held: HeldPositions, survey: Survey, rows: PlanRows) -> Iterable[CheckResult]:
    """Name partitions of a holder's topics that it has no position for."""
    for holder, table in held.commits.groups().items():
        absent = [
            f"{topic}-{partition}"
            for topic in sorted({place.topic for place in table.partitions})
            for partition in range(survey.source.topics.get(topic, 0))
            if TopicPartition(topic, partition) not in table
        ]
        if absent:
            yield holder_partitions.warns(
                holder, "a position on every partition of its topics", f"none on {some(absent, 5)}",
                "Spark reads a partition that it does not know from its beginning; another reader starts where its own "
                "settings say.",
            )  # fmt: skip


OF_HOLDERS = (
    spark_batch_open, state_would_count_twice, sink_remembers_batches, position_moves, positions_differ,
    holder_partitions,
)  # fmt: skip
OF_ROWS = tuple(c for c in checklist.CHECKS if c.scope is not Scope.GROUP and c.name not in _OF_OTHERS)
ALL = (*OF_ROWS, *OF_HOLDERS)

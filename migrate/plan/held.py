"""What a plan says of positions outside Kafka: their rows, where they were read, and facts for their checks. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from migrate.checks.check import CheckFacts, OpenBatch, PositionFacts
from migrate.commit_table import CommitTable
from migrate.mm2.flow import Flow
from migrate.model import Commits, Decision, Grade, HolderKind, Row
from migrate.plan.plan import TARGET_PARTITIONS, Plan, PositionOrigin
from migrate.row_table import PlanRows
from migrate.survey.other_log import LogProofs
from migrate.survey.positions import HeldPositions, partitions_without
from migrate.survey.survey import Survey


def position_row(row: Row, held: HeldPositions) -> Row:
    """Return a translated row as a holder's: whatever would have been set is for its owner to set."""
    return row._replace(
        decision=Decision.MANUAL if row.decision is Decision.SET else row.decision,
        holder_kind=str(held.kinds[row.group]),
        position_meaning=str(held.meaning(row.group, row.source_topic, row.partition)),
    )


def with_open_batches(rows: PlanRows, ends: Iterable[Row], held: HeldPositions) -> PlanRows:
    """Return positions that tell of the batch that was begun at them and not finished; `ends` are where it ends.

    Nobody knows what it has written. All of it may be, so that all of it counts as read twice.
    """
    batches = {read.holder: read.open_batch for read in held.reads if read.open_batch is not None}
    if not batches:
        return rows
    end_of = {end.key: end for end in ends}
    return PlanRows.of(
        _with_open_batch(row, batches[row.group], end_of.get(row.key)) if row.group in batches else row for row in rows
    )


def _with_open_batch(row: Row, batch: int, end: Row | None) -> Row:
    told = f"{row.sentence} Batch {batch} was begun and not finished"
    if row.target_offset is None:
        return row._replace(sentence=f"{told}.")
    if end is None or end.target_offset is None:
        why = "it does not name this partition" if end is None else f"its end has no place there ({end.reason})"
        return row._replace(
            sentence=f"{told}: it begins here, and {why}. What it has written is written twice.",
            rereads_at_most=None if end is not None else row.rereads_at_most,
        )
    # What lies before the end's offset on the target, and what is read again from there on.
    between = max(0, end.target_offset - row.target_offset)
    is_bounded = row.rereads_at_most is not None and end.rereads_at_most is not None
    beyond = end.rereads_estimate if end.rereads_at_most is None else end.rereads_at_most
    twice = None if beyond is None else between + beyond
    return row._replace(
        sentence=(
            f"{told}: it begins here and ends before {end.target_offset}. What it has written of that is written twice."
        ),
        rereads_at_most=twice if is_bounded else None,
        rereads_estimate=None if is_bounded else twice,
        grade=Grade.BOUNDED if row.grade is Grade.EXACT and twice != 0 else row.grade,
    )


def origins(held: HeldPositions) -> tuple[PositionOrigin, ...]:
    """Return where positions were read, as the header has it."""
    return tuple(
        PositionOrigin(
            r.origin, str(r.kind), r.holder, r.sha256, r.batch, len(r.positions), r.content, r.holder in held.stateful
        )
        for r in held.reads
    )


def counts_of_copies(flow: Flow, survey: Survey) -> dict[str, int]:
    """Return how many partitions each topic has on the target that a holder has positions on, as `Header.counts`."""
    topics = {partition.topic for partition in survey.held.commits.partitions()}
    counts = partition_counts(flow, survey, sorted(topics)).values()
    return {f"{TARGET_PARTITIONS}{copy}": count for _, copy, count in counts if count is not None}


def partitions_without_place(plan: Plan, holder: str) -> tuple[tuple[str, int], ...]:
    """Return the partitions of a holder's topics on the target that the plan gives it no offset for, sorted.

    None of a topic whose number of partitions is not known.
    """
    table = plan.holders()[holder]
    places = set(table.values("target_topic", "partition", "target_offset"))
    placed = {(topic, partition) for topic, partition, offset in places if offset is not None}
    topics = sorted({topic for topic, _, _ in places})
    every = ((topic, p) for topic in topics for p in range(plan.header.counts.get(f"{TARGET_PARTITIONS}{topic}", 0)))
    return tuple(place for place in every if place not in placed)


def partition_counts(
    flow: Flow, survey: Survey, topics: Iterable[str]
) -> dict[str, tuple[int | None, str, int | None]]:
    """Return how many partitions topics have on the source, their copies' names, and how many these have."""
    copies = {topic: flow.policy.target_topic(topic) for topic in topics}
    on_source, on_target = survey.source.topics, survey.target.topics
    return {topic: (on_source.get(topic), copy, on_target.get(copy)) for topic, copy in copies.items()}


def facts_of_positions(facts: CheckFacts, flow: Flow, survey: Survey) -> CheckFacts:
    """Return the facts of a plan as the checks of its positions look at them: of their own topics alone."""
    topics = {partition.topic for partition in survey.held.commits.partitions()}
    return replace(
        facts,
        topics=replace(
            facts.topics,
            partitions=partition_counts(flow, survey, topics),
            foreign_records={t: n for t, n in facts.topics.foreign_records.items() if t in topics},
        ),
        # What is proven of a group's commits says nothing of a holder that has its name.
        source=replace(facts.source, logs=LogProofs()),
        target=replace(facts.target, logs=LogProofs()),
        positions=position_facts(survey),
    )


def position_facts(survey: Survey) -> PositionFacts:
    """Return what the checks of holders look at."""
    held, open_batches = survey.held, {}
    for read in held.reads:
        if read.open_batch is not None and read.batch is not None:
            open_batches[read.holder] = OpenBatch(read.open_batch, read.batch)
    return PositionFacts(
        open_batches=open_batches,
        moved=_moved(held),
        sinks=held.sinks,
        of_spark=frozenset(h for h, kind in held.kinds.items() if kind is HolderKind.SPARK_CHECKPOINT),
        stateful=held.stateful,
        differing=_differing(held, survey),
        missing=partitions_without(held.commits, survey.source.topics),
    )


def _moved(held: HeldPositions) -> dict[str, str]:
    moved: dict[str, str] = {}
    for read in held.reads:
        if read.origin in held.moved:
            why = f"a second look failed: {held.unread}" if held.unread else "it had changed at a second look"
            moved |= dict.fromkeys((position.holder for position in read.positions), f"{read.origin}: {why}")
    return moved


def _differing(held: HeldPositions, survey: Survey) -> dict[str, tuple[str, ...]]:
    """Return, by holder, where the group of its name has committed something else, or nothing."""
    differing = {}
    selected = survey.selected
    # Filters choose which groups move; what a holder is compared with is there all the same.
    live = selected.unfiltered if selected.as_of is None else selected.live
    for holder, table in held.commits.groups().items():
        commits = live.get(holder)
        if commits is not None and (places := _differences(table, commits)):
            differing[holder] = places
    return differing


def _differences(positions: CommitTable, commits: Commits) -> tuple[str, ...]:
    places = []
    for place, position in positions.items():
        commit = commits.get(place)
        if commit is None or commit.offset != position.offset:
            has = "nothing" if commit is None else str(commit.offset)
            places.append(f"{place}: {position.offset}, the group has {has}")
    return tuple(places)

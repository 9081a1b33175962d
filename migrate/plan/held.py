"""What a plan says of positions outside Kafka: their rows, and where they were read. Pure."""

from collections.abc import Iterable

from migrate.model import Decision, Grade, Row
from migrate.plan.plan import TARGET_PARTITIONS, Plan, PositionOrigin
from migrate.row_table import PlanRows
from migrate.survey.positions import HeldPositions
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


def counts_of_copies(survey: Survey) -> dict[str, int]:
    """Return how many partitions each topic has on the target that a holder has positions on, as `Header.counts`."""
    topics = {partition.topic for partition in survey.held.commits.partitions()}
    copies, on_target = map(survey.flow.policy.target_topic, sorted(topics)), survey.target.topics
    return {f"{TARGET_PARTITIONS}{copy}": on_target[copy] for copy in copies if copy in on_target}


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

"""Facts about one commit that a row is made of."""

from dataclasses import fields, replace
from typing import Any

from migrate.match.equality import Equality
from migrate.match.place_table import PlaceTable
from migrate.mm2.chain import NO_WINDOW, Window
from migrate.model import Commit, LogRange, OffsetSync, Row, TopicPartition
from migrate.plan.rows import build_row
from migrate.plan.translate import PartitionFacts, RowFacts, Rules
from migrate.survey.commits_source import FROM_CHECKPOINTS, FROM_COORDINATORS
from migrate.survey.policies import Policies

BELOW, ABOVE = OffsetSync(1, 100, 110), OffsetSync(2, 200, 208)

FACTS = RowFacts(
    group="g",
    source=TopicPartition("t", 0),
    shared=PartitionFacts(
        target=TopicPartition("A.t", 0),
        source_log=LogRange(0, 1000),
        target_log=LogRange(0, 1100),
        target_partitions=1,
        not_replicated="",
        places=PlaceTable({}),
        window_at=lambda committed: NO_WINDOW,
        equality=Equality.ALL,
    ),
    commit=Commit(150),
    answer=None,
    around=Window(BELOW, ABOVE),
    prior=None,
    checkpoint=(150, 105),
)


def facts_with(**changes: Any) -> RowFacts:
    """Return `FACTS` with other values of its fields, or of what it shares with its partition's."""
    shared = {field.name: changes.pop(field.name) for field in fields(PartitionFacts) if field.name in changes}
    return FACTS._replace(shared=replace(FACTS.shared, **shared), **changes)


def row_of(policies: Policies | None = None, source_down: bool = False, syncs_read: bool = True, **changes: Any) -> Row:
    """Return the row of `facts_with(**changes)`."""
    commits = FROM_CHECKPOINTS if source_down else FROM_COORDINATORS
    return build_row(facts_with(**changes), Rules(policies or Policies(), commits, syncs_read))

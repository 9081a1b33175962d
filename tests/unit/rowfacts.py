"""Facts about one commit that a row is made of."""

from migrate.mm2.chain import Window
from migrate.mm2.topics import CheckpointRecord
from migrate.model import Commit, GroupPartition, LogRange, OffsetSync
from migrate.plan.translate import RowFacts

BELOW, ABOVE = OffsetSync(1, 100, 110), OffsetSync(2, 200, 208)


FACTS = RowFacts(
    key=GroupPartition("g", "t", 0),
    target_topic="A.t",
    commit=Commit(150),
    source_log=LogRange(0, 1000),
    target_log=LogRange(0, 1100),
    target_partitions=1,
    not_replicated="",
    prior=None,
    around=Window(BELOW, ABOVE),
    checkpoint=CheckpointRecord(150, 105, "", 1, 1),
)

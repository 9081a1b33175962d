"""A table of checkpoints holds of each key what was written last, as the dictionary would."""

from hypothesis import given
from hypothesis import strategies as st

from migrate.mm2.checkpoint_table import (
    CheckpointTable,
    WrittenCheckpoints,
    checkpoints_at,
)
from migrate.mm2.topics import CheckpointKey, CheckpointRecord
from migrate.model import TopicPartition

OFFSETS = st.integers(0, 2**63 - 1)
# Partition, whether it is a tombstone, the offsets, the timestamp, metadata.
RECORDS = st.tuples(
    st.integers(0, 5), st.booleans(), OFFSETS, OFFSETS, st.integers(-1, 2**62), st.sampled_from(["", "m\x00,é"])
)
PLACES = st.sampled_from([("g", "A.orders"), ("g", "A.bills"), ("h", "A.orders")])


@given(st.lists(st.tuples(PLACES, RECORDS)), st.randoms())
def test_the_newest_of_each_key_counts_and_a_tombstone_takes_it_away(written, random) -> None:
    plain: dict[CheckpointKey, CheckpointRecord] = {}
    by_topic: dict[tuple[str, str], list[tuple[int, ...]]] = {}
    for position, (place, (partition, is_tombstone, source, target, time, metadata)) in enumerate(written):
        key = CheckpointKey(*place, partition)
        plain.pop(key, None)
        if not is_tombstone:
            plain[key] = CheckpointRecord(source, target, metadata, position, time)
        by_topic.setdefault(place, []).append((partition, position, is_tombstone, source, target, time, metadata))
    for records in by_topic.values():
        random.shuffle(records)
    columns = ((place, zip(*records, strict=True)) for place, records in by_topic.items())
    table = CheckpointTable(WrittenCheckpoints(*place, *map(list, each)) for place, each in columns)
    assert table == plain and len(table) == len(plain) and set(table) == set(plain)
    for latest in (table, plain):
        copies = [TopicPartition(topic, n) for topic in ("A.orders", "A.bills") for n in (5, 0, 3)]
        found = [plain.get(CheckpointKey("g", *copy)) for copy in copies]
        assert checkpoints_at(latest, "g", copies) == [
            record and (record.source_offset, record.target_offset) for record in found
        ]

"""What Spark finds of groups' records is what one walk through the whole topic finds."""

import random

import pytest

from migrate.extras.inventory.spark_records import records_in
from migrate.model import LogRange
from migrate.spark.consumer_offsets import offsets_session
from migrate.survey.offsets_pin import CompactedMeanwhileError
from migrate.survey.offsets_topic import PACE_COMMITS, PACE_PARTITIONS, logs_of, partition_of, records_of
from migrate.survey.offsets_wire import CommitValue
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue
from tests.spark.offsetstopic import topic_of
from tests.spark.records import EPOCH_MS

GROUPS = ["a", "b", "grüppe", "quiet", "absent", "g,\"'\x00"]


@pytest.fixture(scope="module")
def quick(spark):
    return offsets_session(lambda: spark, is_small=True)


PARTITIONS = 3
OF_A, OF_B = (partition_of(group, PARTITIONS) for group in "ab")


def walked(records, groups):
    logs = logs_of(groups, PARTITIONS)
    for number in logs.keys() & {partition for partition, _, _ in records}:
        of_one = [record for record in records if record[0] == number]
        logs[number].take([key for _, key, _ in of_one], [value for _, _, value in of_one])
    return records_of(logs.values())


def commit(group, partition, offset, number, record_type=1):
    key = commit_key(group, "t", partition)
    return record_type.to_bytes(2, "big") + key[2:], commit_value(CommitValue(3, offset, None, "", EPOCH_MS + number))


def some_records(rnd, count=1500):
    records = []
    for number in range(count):
        group = rnd.choice([*GROUPS[:3], *GROUPS[5:], "somebody else's"])
        log_partition = partition_of(group, PARTITIONS)
        record_type = 0 if rnd.random() < 0.05 else 1
        key, value = commit(group, min(int(rnd.expovariate(0.4)), 9), number, number * number, record_type)
        pick = rnd.random()
        if pick < 0.05:
            key, value = group_key(2, group), group_value(GroupValue("classic", 3, "consumer", 1, None, None, EPOCH_MS))
        elif pick < 0.08:
            key = group_key(rnd.choice([3, 5, 99]), group, b"m")
        elif pick < 0.1:
            key = rnd.choice([None, b"", b"\0", b"\0\1\0", key[:5], key + b"x"])
        pick = rnd.random()
        records.append((log_partition, key, None if pick < 0.12 else value[:5] if pick < 0.15 else value))
    records.append((partition_of("quiet", PARTITIONS), *commit("quiet", 0, 7, 7)))
    return records


@pytest.mark.parametrize("seed", range(3))
def test_every_group_has_the_record_that_a_walk_gives_it(quick, seed):
    records = some_records(random.Random(seed))
    found = records_in(*topic_of(quick, records), GROUPS, PARTITIONS)
    assert found == walked(records, GROUPS) and "quiet" in found and "absent" not in found
    assert any(record.newest for record in found.values()) and any(record.expires_ms == {} for record in found.values())


def test_the_pace_is_told_by_the_newest_commits_of_the_first_partitions_that_have_one(quick):
    quiet = [(OF_A, *commit("a", 50 + n, n, n)) for n in range(6)]
    busy = [(OF_A, *commit("a", n % 7, n, n)) for n in range(7 * (PACE_COMMITS + 3))]
    records = quiet + busy
    found = records_in(*topic_of(quick, records), ["a"], PARTITIONS)
    assert found == walked(records, ["a"])
    assert [*map(len, found["a"].newest.values())] == [PACE_COMMITS] * PACE_PARTITIONS


def test_a_deletion_ends_what_came_before_it_and_nothing_else(quick):
    gone = (OF_A, commit("a", 0, 0, 0)[0], None)
    records = [(OF_A, *commit("a", 0, n, n)) for n in range(4)] + [gone]
    records += [(OF_A, *commit("a", 0, n, n)) for n in (8, 9)] + [
        (OF_B, *commit("b", 0, 1, 1)),
        (OF_B, *commit("b", 0, 2, 2)),
    ]
    found = records_in(*topic_of(quick, records), ["a", "b"], PARTITIONS)
    assert found == walked(records, ["a", "b"]) and [len(*found[group].newest.values()) for group in "ab"] == [2, 2]
    assert records_in(*topic_of(quick, [*records, gone]), ["a"], PARTITIONS) == walked([*records, gone], ["a"]) == {}


def test_what_a_group_left_in_a_partition_that_is_not_its_own_any_more_says_nothing(quick):
    """The topic was given more partitions: the group's records of before stay where they are, whatever their number."""
    stray = next(p for p in (2, 1, 0) if p != OF_A)
    left = [(stray, *commit("a", p, 1, 1)) for p in range(9)] + [(stray, *commit("a", 0, 2, 2))]
    records = [(OF_A, *commit("a", 0, 7, 7)), (OF_A, *commit("a", 0, 9, 9)), *left]
    found = records_in(*topic_of(quick, records), ["a"], PARTITIONS)
    assert found == walked(records, ["a"]) and set(found["a"].committed_ms.values()) == {EPOCH_MS + 9}
    assert [*map(len, found["a"].newest.values())] == [2]


def test_what_compaction_took_between_the_passes_is_no_shorter_answer(quick):
    records = [(OF_A, *commit("a", 0, n, n)) for n in range(3)]
    read, logs = topic_of(quick, records)
    asked = []

    def compacting(ranges):
        asked.append(ranges)
        return read(ranges if len(asked) == 1 else {OF_A: LogRange(1, 3)})

    with pytest.raises(CompactedMeanwhileError):
        records_in(compacting, logs, ["a"], PARTITIONS)


def test_a_topic_without_records_has_none(quick):
    read, _ = topic_of(quick, [(OF_A, *commit("a", 0, 1, 1))])
    assert records_in(read, {}, ["a"], PARTITIONS) == {}

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


def found_in(quick, records, groups):
    """What Spark finds, which is what a walk finds."""
    found = records_in(*topic_of(quick, records), groups, PARTITIONS)
    assert found == walked(records, groups)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_every_group_has_the_record_that_a_walk_gives_it(quick, seed):
    found = found_in(quick, some_records(random.Random(seed)), GROUPS)
    assert "quiet" in found and "absent" not in found
    assert any(record.newest for record in found.values()) and any(record.expires_ms == {} for record in found.values())


def of(group, *commits):
    """Its commits, each by partition, offset and number, in its own partition of the topic."""
    return [(partition_of(group, PARTITIONS), *commit(group, *each)) for each in commits]


def test_the_newest_commits_of_a_group_are_those_that_nothing_has_ended_in_its_own_partition(quick):
    # The pace is told by the newest commits of the first partitions that have one.
    paced = of("paced", *((50 + n, n, n) for n in range(6)))
    paced += of("paced", *((n % 7, n, n) for n in range(7 * (PACE_COMMITS + 3))))
    # A deletion ends what came before it and nothing else.
    whole, again = of("cut", *((0, n, n) for n in range(4))), of("cut", (0, 8, 8), (0, 9, 9))
    gone = (*whole[0][:2], None)
    others = of("whole", (0, 1, 1), (0, 2, 2))
    ended = [*of("ended", (0, 1, 1)), (*of("ended", (0, 1, 1))[0][:2], None)]
    # The topic was given more partitions: what a group left in others stays there, whatever its number.
    moved = of("moved", (0, 7, 7), (0, 9, 9))
    stray = (moved[0][0] + 1) % PARTITIONS
    left = [(stray, *each[1:]) for each in of("moved", *((p, 1, 1) for p in range(9)), (0, 2, 2))]
    records = [*paced, *whole, gone, *again, *others, *ended, *moved, *left]
    found = found_in(quick, records, ["paced", "cut", "whole", "ended", "moved"])
    newest = {group: [len(made) for made in record.newest.values()] for group, record in found.items()}
    assert newest == {"paced": [PACE_COMMITS] * PACE_PARTITIONS, "cut": [2], "whole": [2], "moved": [2]}
    assert set(found["moved"].committed_ms.values()) == {EPOCH_MS + 9}


def test_what_compaction_took_between_the_passes_is_no_shorter_answer_and_a_topic_without_records_has_none(quick):
    read, logs = topic_of(quick, of("a", (0, 0, 0), (0, 1, 1), (0, 2, 2)))
    asked = []

    def compacting(ranges):
        asked.append(ranges)
        return read(ranges if len(asked) == 1 else {partition_of("a", PARTITIONS): LogRange(1, 3)})

    with pytest.raises(CompactedMeanwhileError):
        records_in(compacting, logs, ["a"], PARTITIONS)
    assert records_in(read, {}, ["a"], PARTITIONS) == {}

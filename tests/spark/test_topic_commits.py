"""The commits that a plan reads in the offsets topic are those that a plain walk through its records finds."""

import random

import pytest

from migrate.errors import ClusterError
from migrate.model import Commit, TopicPartition
from migrate.spark.topic_commits import newest_commits
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import COMMIT_TYPES, CommitValue, Fault, GroupValue, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.spark.offsetstopic import topic_of
from tests.spark.records import EPOCH_MS

PARTITIONS = 3


def record(group="g", offset=1, topic="t", partition=0, record_type=1, said=None):
    said = said or CommitValue(3, offset, None, "", EPOCH_MS)
    return partition_of(group, PARTITIONS), commit_key(group, topic, partition, record_type), commit_value(said)


def gone(record):
    return record[0], record[1], None


def read(spark, *records, as_of_ms=None):
    reader, logs = topic_of(spark, records)
    return newest_commits(reader, logs, PARTITIONS, as_of_ms)


def some_records(rnd, count=400):
    """Records of all kinds and versions, some taken away again, some cut short, some of keys that are none."""
    records = []
    for _ in range(count):
        group = rnd.choice(["a", "b", "grüppe", "with,\"'", "🦀"])
        epoch, id_ = rnd.choice([None, 0, 7]), rnd.choice([None, "AAECAwQFBgcICQoLDA0ODw"])
        version = rnd.randrange(5)
        said = CommitValue(
            version, rnd.randrange(2**40), epoch if version >= 3 else None,
            rnd.choice(["", "m\0é", "x" * rnd.randrange(300)]), EPOCH_MS, None, id_ if version == 4 else None,
            version == 4 and rnd.random() < 0.2,
        )  # fmt: skip
        partition, key, value = record(group, 0, rnd.choice("tuv"), rnd.randrange(3), rnd.choice([0, 1, 1]), said)
        pick = rnd.random()
        if pick < 0.1:
            key, value = group_key(2, group), group_value(GroupValue("classic", 3, "consumer", 1))
        elif pick < 0.15:
            value = None
        elif pick < 0.2:
            value = value[: rnd.randrange(len(value))]
        elif pick < 0.23:
            key = key[: rnd.randrange(2, len(key))]
        records.append((partition, key, value))
    return records


def walked(records):
    """By group the newest commit of each place, and the places whose newest record nobody can read."""
    newest = {}
    for partition, key, value in records:
        if key[:2] in (b"\0\0", b"\0\1"):
            newest[partition, key[2:]] = key, value
    commits, undecodable, keys = {}, {}, 0
    for key, value in newest.values():
        about = decode_key(key)
        if isinstance(about, Fault):
            keys += 1
            continue
        assert about.record_type in COMMIT_TYPES
        place = TopicPartition(about.topic, about.partition)
        said = None if value is None else decode_commit(value)
        if isinstance(said, Fault):
            undecodable.setdefault(about.group, {})[place] = str(said)
        elif said is not None:
            commits.setdefault(about.group, {})[place] = Commit(said.offset, said.metadata, said.leader_epoch)
    return commits, undecodable, keys


@pytest.mark.parametrize("seed", range(3))
def test_the_newest_record_of_every_place_is_what_a_plain_walk_finds(spark, seed):
    records = some_records(random.Random(seed))
    found = read(spark, *records)
    assert (found.commits, found.undecodable, found.undecodable_keys) == walked(records)
    assert found.undecodable and found.undecodable_keys and len(found.commits) == 5


def test_partitions_are_in_order_so_that_groups_share_them(spark):
    found = read(spark, *(record("g", 5, topic, partition) for topic in "ut" for partition in (1, 0)))
    assert list(found.commits["g"]) == [("t", 0), ("t", 1), ("u", 0), ("u", 1)]


def test_what_takes_a_commit_away_counts_whichever_type_its_key_is_of(spark):
    found = read(spark, record("a", 5), gone(record("a")), gone(record("b", record_type=0)), record("b", 6))
    assert found.commits == {"b": {("t", 0): Commit(6)}}
    assert read(spark, record("a", 5), gone(record("a", record_type=0))).commits == {}


def test_a_record_that_nobody_can_read_hides_none_before_it(spark):
    partition, key, value = record("g", 9)
    found = read(spark, record("g", 5), (partition, key, value + b"x"), record("g", 3, "u"))
    assert found.commits == {"g": {("u", 0): Commit(3)}}
    assert found.undecodable == {"g": {("t", 0): "bad-length"}}


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\1", b"\0\1\0\5ab"])
def test_a_key_that_nobody_can_read_is_counted(spark, key):
    found = read(spark, record("g", 5), (0, key, b"x"))
    assert found.undecodable_keys == 1 and set(found.commits) == {"g"}


def test_a_group_counts_in_its_own_partition_alone(spark):
    """Somebody who adds partitions to the offsets topic leaves copies behind that no coordinator reads."""
    partition, key, value = record("g", 9)
    found = read(spark, record("g", 5), ((partition + 1) % PARTITIONS, key, value))
    assert found.commits == {"g": {("t", 0): Commit(5)}}


def test_an_empty_topic_holds_no_commit(spark):
    reader, _ = topic_of(spark, [record()])
    found = newest_commits(reader, {}, PARTITIONS)
    assert (found.commits, found.undecodable, found.undecodable_keys) == ({}, {}, 0)


def test_what_is_compacted_away_between_the_passes_is_not_missed_in_silence(spark):
    """Nor read again with the same ends: the record that has superseded it may lie beyond them."""
    reader, logs = topic_of(spark, [record("g", 1), record("h", 2), record("g", 3)])
    passes = []

    def compacting(part):
        passes.append(part)
        return reader(part).where("true" if len(passes) == 1 else f"partition <> {partition_of('g', PARTITIONS)}")

    with pytest.raises(ClusterError, match="compacted while it was read"):
        newest_commits(compacting, logs, PARTITIONS)
    assert len(passes) == 2


def test_an_earlier_time_is_told_beside_the_commits_of_now(spark):
    """A record a millisecond; the fourth is of the very moment that is asked for, and so of later."""
    found = read(
        spark, record("g", 5), record("g", 6, "u"), record("g", 7), record("g", 8), record("h", 1),
        gone(record("g", 6, "u")), as_of_ms=EPOCH_MS + 3,
    )  # fmt: skip
    assert found.then == {"g": {("t", 0): Commit(7), ("u", 0): Commit(6)}}
    assert found.commits == {"g": {("t", 0): Commit(8)}, "h": {("t", 0): Commit(1)}}
    assert found.gone == {("h", "t", 0)} and found.none_then == frozenset()


@pytest.mark.parametrize("seed", range(2))
def test_the_newest_records_before_a_time_are_what_a_plain_walk_to_there_finds(spark, seed):
    records = some_records(random.Random(seed))
    found = read(spark, *records, as_of_ms=EPOCH_MS + 40)
    commits, undecodable, _ = walked(records[:40])
    assert found.then == commits and undecodable.keys() <= found.undecodable.keys()
    assert found.commits == walked(records)[0] and found.gone
    # What is gone has no commit of then, and what has one is not gone.
    assert not {(g, *place) for g, places in commits.items() for place in places} & found.gone

"""The commits that a plan reads in the offsets topic are those that a plain walk through its records finds."""

import random

import pytest

from migrate.errors import ClusterError
from migrate.model import Commit, LogRange, TopicPartition
from migrate.spark.topic_commits import newest_commits
from migrate.survey.offsets_topic import CommitTopic, partition_of
from migrate.survey.offsets_wire import COMMIT_TYPES, CommitValue, Fault, decode_commit, decode_key
from tests.offsetsbytes import commit_key, commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue
from tests.spark.offsetstopic import timed_topic, topic_of
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
    assert found.none_then == {("h", "t", 0)} and found.gone == frozenset()


OWN = partition_of("h", PARTITIONS)
# Of h's partition: two records of others before the time that is asked for, then h's first commit, then another one.
LATER = [(OWN, 0, b"\0\2\0\1x", b""), (OWN, 1, b"\0\2\0\1y", b""), (OWN, 5, *record("h", 1)[1:]),
         (OWN, 6, *record("h", 2)[1:])]  # fmt: skip


@pytest.mark.parametrize(
    ("lacks", "start", "after_ms", "is_known"),
    [
        (None, 0, 2, True),
        (None, 0, 0, True),
        (3, 0, 2, True),
        (0, 0, 2, False),
        (1, 0, 2, False),
        (2, 0, 2, False),
        (0, 0, 0, False),
        (None, 1, 2, False),
    ],
    ids=[
        "whole", "nothing is of before", "the newest lacks", "the first lacks", "the last of before lacks",
        "the first of later lacks", "nothing is left of before", "the log does not begin at 0",
    ],
)  # fmt: skip
def test_a_first_commit_of_later_is_no_compacted_one_where_no_record_of_before_is_missing(
    spark, lacks, start, after_ms, is_known
):
    """Compaction and transaction markers leave the same gaps: with one of them nobody can tell."""
    reader, logs = timed_topic(spark, LATER)
    logs = {OWN: LogRange(start, logs[OWN].end)}

    def compacted(part):
        return reader(part).where("true" if lacks is None else f"offset <> {lacks}")

    found = newest_commits(compacted, logs, PARTITIONS, EPOCH_MS + after_ms)
    place = frozenset({("h", "t", 0)})
    assert (found.none_then, found.gone) == ((place, frozenset()) if is_known else (frozenset(), place))


def test_a_clock_that_ran_back_over_the_time_that_is_asked_for_leaves_it_open(spark):
    """A record of before behind one of later: another of before may have been there, and have been compacted away."""
    reader, logs = timed_topic(spark, [*LATER, (OWN, 1, b"\0\2\0\1z", b"")])
    found = newest_commits(reader, logs, PARTITIONS, EPOCH_MS + 2)
    assert (found.none_then, found.gone) == (frozenset(), {("h", "t", 0)})


def test_the_topic_id_of_a_commit_of_then_is_kept(spark):
    old, new = "AAECAwQFBgcICQoLDA0ODw", "_-ECAwQFBgcICQoLDA0ODw"

    def with_id(offset, topic_id):
        return record("g", said=CommitValue(4, offset, None, "", EPOCH_MS, None, topic_id))

    found = read(spark, with_id(5, old), record("g", 6, "u"), with_id(7, new), as_of_ms=EPOCH_MS + 2)
    assert found.then_made_on == {"g": {("t", 0): CommitTopic(5, old)}}


@pytest.mark.parametrize("seed", range(2))
def test_the_newest_records_before_a_time_are_what_a_plain_walk_to_there_finds(spark, seed):
    records = some_records(random.Random(seed))
    found = read(spark, *records, as_of_ms=EPOCH_MS + 40)
    commits, undecodable, _ = walked(records[:40])
    assert found.then == commits and undecodable.keys() <= found.undecodable.keys()
    assert found.commits == walked(records)[0] and found.none_then
    # Nothing was compacted away, and what was not there has no commit of then.
    assert not {(g, *place) for g, places in commits.items() for place in places} & found.none_then
    assert not found.gone

"""The commits that a plan reads in the offsets topic are those that a plain walk through its records finds."""

import random

import pytest

from migrate.errors import ClusterError
from migrate.model import Commit, LogRange, TopicPartition
from migrate.spark.topic_commits import newest_commits
from migrate.survey.offsets_topic import partition_of
from migrate.survey.offsets_wire import COMMIT_TYPES, Fault, decode_commit, decode_key
from tests.offsetsbytes import commit_value, group_key, group_value
from tests.offsetsdecoded import GroupValue
from tests.spark.offsetstopic import PARTITIONS, commit, some_commit, timed_topic, topic_of
from tests.spark.records import EPOCH_MS


def read(spark, *records, as_of_ms=None):
    reader, logs = topic_of(spark, records)
    return newest_commits(reader, logs, PARTITIONS, as_of_ms)


def some_records(rnd):
    """Records of all kinds and versions, some taken away again, some cut short, some of keys that are none."""
    records = []
    for _ in range(250):
        group = rnd.choice(["a", "b", "grüppe", "with,\"'", "🦀"])
        partition, key, _ = commit(group, 0, rnd.choice("tuv"), rnd.randrange(3), rnd.choice([0, 1, 1]))
        value = commit_value(some_commit(rnd))
        pick = rnd.random()
        if pick < 0.1:
            key, value = group_key(2, group), group_value(GroupValue("classic", 3, "consumer", 1))
        elif pick < 0.15:
            value = None
        elif pick < 0.2:
            value = value[: rnd.randrange(len(value))]
        elif pick < 0.23:
            key = key[: rnd.randrange(len(key))]
        records.append((partition, key, value))
    return records


def walked(records):
    """By group the newest commit of each place, and the places whose newest record nobody can read."""
    newest = {}
    for partition, key, value in records:
        if len(key) < 2 or key[:2] in (b"\0\0", b"\0\1"):
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
        if said is Fault.WITHOUT_OFFSET:
            continue
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


def test_an_empty_topic_holds_no_commit(spark):
    reader, _ = topic_of(spark, [commit()])
    found = newest_commits(reader, {}, PARTITIONS)
    assert (found.commits, found.undecodable, found.undecodable_keys) == ({}, {}, 0)


def test_what_is_compacted_away_between_the_passes_is_not_missed_in_silence(spark):
    """Nor read again with the same ends: the record that has superseded it may lie beyond them."""
    reader, logs = topic_of(spark, [commit("g", 1), commit("h", 2), commit("g", 3)])
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
        spark, commit("g", 5), commit("g", 6, "u"), commit("g", 7), commit("g", 8), commit("h", 1),
        commit("g", None, "u"), as_of_ms=EPOCH_MS + 3,
    )  # fmt: skip
    assert found.then == {"g": {("t", 0): Commit(7), ("u", 0): Commit(6)}}
    assert found.commits == {"g": {("t", 0): Commit(8)}, "h": {("t", 0): Commit(1)}}
    assert found.none_then == {("h", "t", 0)} and found.gone == frozenset()


OWN = partition_of("h", PARTITIONS)
# Of h's partition: two records of others before the time that is asked for, then h's first commit, then another one.
LATER = [(OWN, 0, b"\0\2\0\1x", b""), (OWN, 1, b"\0\2\0\1y", b""), (OWN, 5, *commit("h", 1)[1:]),
         (OWN, 6, *commit("h", 2)[1:])]  # fmt: skip


# Which offset lacks, where the log begins, which time is asked for, and whether the first commit is known to be later.
LACKING = {
    "whole": (None, 0, 2, True), "nothing is of before": (None, 0, 0, True), "the newest lacks": (3, 0, 2, True),
    "the first lacks": (0, 0, 2, False), "the last of before lacks": (1, 0, 2, False),
    "the first of later lacks": (2, 0, 2, False), "nothing is left of before": (0, 0, 0, False),
    "the log does not begin at 0": (None, 1, 2, False),
}  # fmt: skip


@pytest.mark.parametrize(("lacks", "start", "after_ms", "is_known"), LACKING.values(), ids=LACKING)
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
